# SPDX-License-Identifier: Apache-2.0
"""An ament_python package that is a plain Python package too."""

import hashlib
import sys
from pathlib import Path

from setuptools import Extension, find_packages, setup

HERE = Path(__file__).resolve().parent  # `colcon build --symlink-install` runs it elsewhere
NAME = "robot_dynamics"
SHARE = f"share/{NAME}"
ASSETS = ("js", "css", "html")  # of pages


def files(folder: str) -> tuple[str, list[str]]:
    """What `folder` holds goes to the share folder under the same name."""
    return f"{SHARE}/{folder}", [str(path) for path in Path(folder).iterdir() if path.is_file()]


def extensions() -> list[Extension]:
    """What calls kernels. Where it can't be built it is compiled when it is first needed."""
    try:
        import numpy
    except ImportError:
        print(
            "robot_dynamics: NumPy is missing at build time, so the extension that calls kernels "
            "is not built but compiled at first use. To build it now, install python3-numpy.",
            file=sys.stderr,
        )
        return []
    source = Path(NAME, "codegen", "c", "caller.c")
    built_from = hashlib.sha256(source.read_bytes()).hexdigest()
    return [
        Extension(
            f"{NAME}.codegen._caller",
            [str(source)],
            include_dirs=[numpy.get_include()],
            define_macros=[("BUILT_FROM", f'"{built_from}"')],
            libraries=["pthread"],
            optional=True,
        )
    ]


ROS = [  # the real rclpy over Fast DDS from wheels; on a ROS machine the distribution's own
    f"ros-kilted-{name}; platform_system == 'Linux'"
    for name in (
        "rclpy",
        "rmw-fastrtps-cpp",
        "sensor-msgs",
        "std-msgs",
        "trajectory-msgs",
        "geometry-msgs",
        "diagnostic-msgs",
        "std-srvs",
    )
]
SIM = ["mujoco>=3.3.7"]  # the simulated robot's physics
IDENTIFY = [
    "msgspec>=0.18",  # tables of numbers, read about twice as fast as by NumPy
    "rosbags>=0.11",  # rosbag2 folders, .db3 and .mcap without ROS
    "scipy>=1.10",  # zero-phase filters, spectra and splines
    "threadpoolctl>=3.1",  # one thread of BLAS: the same rounding on every machine's cores
]
DOCS = [
    "sphinx>=7",  # the documentation site
    "myst-nb>=1.1",  # its pages in Markdown, and notebooks that run
    "furo>=2024.1",  # its looks, light and dark
    "sphinx-click>=6",  # the commands' reference
]
CASADI = ["casadi>=3.6"]  # rd.functions(…, "casadi")
JAX = ["jax>=0.4.30"]  # rd.functions(…, "jax")
ROBOTS = [
    "example-robot-data>=4.3",  # robots by name, their files with them
    "robot_descriptions>=1.12",  # more of them, fetched when first asked for
]
MESHES = [
    "trimesh>=4.0",  # a URDF's meshes, for pages and collisions: STL, OBJ, PLY
    "pycollada>=0.8",  # the same as DAE
]
COLLISIONS = ["coal>=3.0", *MESHES]  # distances between bodies, for exciting motions
FMU = ["fmpy>=0.3.20"]  # the C headers of FMI 3.0; it also runs and checks FMUs
FLEET = ["distributed>=2023.5"]  # recordings reduced by many machines, workers that may die

setup(
    name=NAME,
    version="0.1.0",
    packages=find_packages(include=[NAME, f"{NAME}.*"]),
    ext_modules=extensions(),
    package_data={
        NAME: [
            "py.typed",
            "codegen/c/*",
            "description/*.json",
            *(f"app/show/*.{x}" for x in ASSETS),
            "controller/templates/*.j2",
            "controller/templates/*/*.j2",
            "controller/mujoco_hardware/*",
        ]
    },
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
        (SHARE, ["package.xml"]),
        files("config"),
        files("config/sros2"),
        files("launch"),
        files("urdf"),
        files("controllers"),
        files("rviz"),
    ],
    python_requires=">=3.10",
    install_requires=[
        "click>=8.1",  # the command line
        "jinja2>=3.1",  # the files of a generated controller
        "jsonschema>=4.10",  # every mistake in a description at once
        "matplotlib>=3.6",  # charts, of reports and as files
        "numpy>=1.24",  # arrays
        "sympy>=1.11",  # equations in symbols
        "pyyaml>=6.0",  # descriptions
        "platformdirs>=2.6",  # where each system keeps caches
        "lxml>=4.9",  # URDF and SDF
        "xacro>=2.1",  # ROS's own macros
    ],
    extras_require={
        "ros": ROS,
        "sim": SIM,
        "identify": IDENTIFY,
        "robots": ROBOTS,
        "meshes": MESHES,
        "collisions": [*IDENTIFY, *COLLISIONS],
        "fleet": [*IDENTIFY, *FLEET],
        "casadi": CASADI,
        "fmu": FMU,
        "jax": JAX,
        "torch": ["torch>=2.1"],  # rd.functions(…, "torch")
        "cupy": ["cupy-cuda12x>=13"],  # rd.functions(…, "cupy"): kernels on a GPU
        "docs": [*DOCS, *IDENTIFY, *SIM],
        "test": ["pytest"],  # where colcon looks for the test runner
        "dev": [
            "pytest>=7",
            "pytest-timeout>=2",
            "hypothesis>=6",  # inputs that nobody thought of
            "cosmic-ray>=8.3",  # would the tests notice a mutation?
            "jsonschema>=4.18",  # outputs against their schemas
            "pytest-cov>=7",  # which tests run a line
            "coverage>=7.10",  # in the processes that they start, too
            "pytest-xdist>=3",  # test files side by side on several cores
            *CASADI,
            *JAX,  # not torch: on Linux its wheel brings gigabytes of CUDA; tests of it skip aloud
            *DOCS,
            *IDENTIFY,
            *FLEET,
            *FMU,
            "selenium>=4.11",  # pages in a real browser
            "nox>=2026.10.20",  # the core's tests on other Pythons
            "ruff>=0.9",
            "mypy>=1.10",
            "types-PyYAML",
            "pin>=3.0",  # the yardstick of every torque
            *ROBOTS,
            *MESHES,
            "roboticstoolbox-python>=1.1",  # its conventions for rotors and friction
            "colcon-common-extensions",
            "colcon-ros",
        ],
    },
    zip_safe=False,
    maintainer="robot_dynamics maintainers",
    maintainer_email="robot-dynamics@example.org",
    description="Feed-forward joint torques from a robot's description",
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    keywords="robotics ROS inverse-dynamics parallel-robots identification feed-forward",
    license="Apache-2.0",
    license_files=["LICENSE"],
    classifiers=[
        "Development Status :: 4 - Beta",
        "Intended Audience :: Education",
        "Intended Audience :: Manufacturing",
        "Intended Audience :: Science/Research",
        "Operating System :: MacOS",
        "Operating System :: Microsoft :: Windows",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: C",
        "Programming Language :: Python :: 3 :: Only",
        *(f"Programming Language :: Python :: 3.{minor}" for minor in range(10, 15)),
        "Topic :: Scientific/Engineering :: Physics",
        "Typing :: Typed",
    ],
    tests_require=["pytest"],
    entry_points={
        "console_scripts": [
            "robot_dynamics = robot_dynamics.__main__:main",
            "feed_forward = robot_dynamics.ros.executables:feed_forward",
            "simulated_robot = robot_dynamics.ros.executables:simulated_robot",
            "trajectory_source = robot_dynamics.ros.executables:trajectory_source",
            "watch = robot_dynamics.ros.executables:watch",
        ],
    },
)
