# SPDX-License-Identifier: Apache-2.0
"""The documentation site: `nox -s docs`, or rosdoc2."""

from __future__ import annotations

import runpy
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

project = "robot_dynamics"
author = "robot_dynamics maintainers"
copyright = "robot_dynamics maintainers, Apache-2.0"
version = release = installed("robot_dynamics")

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.intersphinx",
    "sphinx_click",
]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb"}
exclude_patterns = ["_build", "**.ipynb_checkpoints"]
nitpicky = False

myst_enable_extensions = ["colon_fence", "dollarmath", "html_image"]
myst_heading_anchors = 4
nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_timeout = 300

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_class_signature = "mixed"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
intersphinx_mapping: dict[str, tuple[str, None]] = {}

html_theme = "furo"
html_title = "robot_dynamics"
html_theme_options = {"source_directory": "docs/"}


def robots(app: Any) -> None:
    """Write the gallery beside the pages."""
    if app.builder.format != "html":
        return
    gallery = runpy.run_path(str(Path(__file__).with_name("gallery.py")))
    known = gallery["KNOWN"] if app.tags.has("known") else ()
    gallery["write"](Path(app.outdir) / "gallery", (*map(str, gallery["SHIPPED_FILES"]), *known))


def setup(app: Any) -> None:
    """What Sphinx calls."""
    app.connect("builder-inited", robots)
