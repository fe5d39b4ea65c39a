# SPDX-License-Identifier: Apache-2.0
"""A URDF's pictures: what is found is drawn where the URDF puts it, what is not found is named."""

from __future__ import annotations

import base64

import numpy as np
import pytest

from robot_dynamics.app.show import meshes
from robot_dynamics.description import link_shapes

trimesh = pytest.importorskip("trimesh", reason="trimesh is not installed: extra `meshes`")


def urdf(*visuals: str) -> str:
    return f'<robot name="r"><link name="a">{"".join(visuals)}</link></robot>'


def visual(geometry: str, origin: str = "") -> str:
    return f"<visual>{origin}<geometry>{geometry}</geometry></visual>"


def points(mesh) -> np.ndarray:
    grid = np.frombuffer(base64.b64decode(mesh["points"]), "<u2").reshape(-1, 3)
    low, high = map(np.array, mesh["box"])
    return low + (high - low) * grid / 65535


def volume(mesh) -> float:
    triangles = np.frombuffer(base64.b64decode(mesh["triangles"]), "<u2").reshape(-1, 3)
    a, b, c = np.moveaxis(points(mesh)[triangles], 1, 0)
    return float(np.einsum("ij,ij->", a, np.cross(b, c)) / 6)


@pytest.fixture
def file(tmp_path):
    folder = tmp_path / "pack" / "meshes"
    folder.mkdir(parents=True)
    sphere = trimesh.creation.icosphere(subdivisions=6, radius=0.5)
    assert len(sphere.faces) > 20 * meshes.MOST_TRIANGLES
    sphere.export(folder / "ball.stl")
    (folder / "broken.stl").write_text("nothing")
    return tmp_path / "pack" / "robot.urdf"


def test_a_mesh_keeps_its_shape_with_few_triangles(file):
    origin = '<origin xyz="1 2 3" rpy="0 0 1.5707963267948966"/>'
    shape = '<mesh filename="package://pack/meshes/ball.stl" scale="2 1 1"/>'
    file.write_text(urdf(visual(shape, origin)))
    drawn, left_out = meshes.found(str(file))
    assert left_out == []
    (mesh,) = drawn["a"]
    # scaled along its own x, which the origin turns onto y
    assert np.allclose(mesh["box"], [[0.5, 1, 2.5], [1.5, 3, 3.5]], atol=0.03)
    assert len(base64.b64decode(mesh["triangles"])) / 6 <= meshes.MOST_TRIANGLES
    # seen from its middle
    middle = {**mesh, "box": [list(np.array(x) - [1, 2, 3]) for x in mesh["box"]]}
    assert volume(middle) == pytest.approx(2 * 4 / 3 * np.pi * 0.5**3, rel=0.03)


def test_boxes_cylinders_and_spheres_are_drawn(file):
    file.write_text(
        urdf(
            visual('<box size="1 2 3"/>'),
            visual('<cylinder radius="0.5" length="2"/>'),
            visual('<sphere radius="0.25"/>'),
        )
    )
    drawn, _ = meshes.found(str(file))
    spans = [np.ptp(points(mesh), axis=0) for mesh in drawn["a"]]
    assert np.allclose(spans, [[1, 2, 3], [1, 1, 2], [0.5, 0.5, 0.5]], atol=0.02)


def test_what_is_missing_or_broken_is_said_and_the_rest_drawn(file):
    long = "n" * 5000
    names = ("meshes/broken.stl", "nowhere.stl", "/etc/hostname", "package://no/such.dae")
    names += (long, f"package://pack/{long}", f"package://{long}/a.stl", f"file:///{long}")
    broken = [visual(f'<mesh filename="{name}"/>') for name in names]
    file.write_text(urdf(*broken, visual('<box size="1 x 1"/>'), visual('<sphere radius="1"/>')))
    drawn, (words,) = meshes.found(str(file))
    assert len(drawn["a"]) == 1
    assert words.startswith("9 meshes are left out, such as ")
    assert "\n" not in words


def test_a_mesh_of_another_kind_or_too_large_is_told_from_the_other(file, monkeypatch):
    file.write_text(urdf(visual('<mesh filename="/etc/hostname"/>')))
    assert "hostname: the file's extension: found '', expected one of .stl" in link_words(file)
    monkeypatch.setattr(link_shapes, "MOST_BYTES", 10)
    (file.parent / "large.stl").write_text("solid a b c")
    file.write_text(urdf(visual('<mesh filename="large.stl"/>')))
    assert "large.stl: bytes: found 11, expected at most 10" in link_words(file)


def link_words(file) -> str:
    return " ".join(link_shapes.link_shapes(str(file), "visual")[1])


def test_of_a_yaml_beside_a_urdf_they_are_the_urdfs(file):
    file.write_text(urdf(visual('<sphere radius="1"/>')))
    beside = file.with_name("robot.yaml")
    beside.write_text("urdf: robot.urdf\n")
    assert meshes.found(str(beside))[0].keys() == {"a"}
    beside.write_text("links: []\n")
    assert meshes.found(str(beside)) == ({}, [])
    assert meshes.found(urdf(visual('<sphere radius="1"/>'))) == ({}, [])
