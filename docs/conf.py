"""The site that Sphinx makes of this folder: ``sphinx-build -W docs build/site``."""

from __future__ import annotations

import argparse
from typing import Any

import neo
from neo import _native, cli

project = "neo"
author = "the authors of neo"
copyright = author  # noqa: A001  (Sphinx's name)
release = version = neo.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = f"neo {release}"
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["wide.css"]
exclude_patterns = ["pictures"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_google_docstring = False
napoleon_use_rtype = False
pygments_dark_style = "monokai"
suppress_warnings = ["misc.highlighting_failure"]


def commands() -> str:
    """Every command with the help that it prints."""
    subparsers = next(a for a in cli.make_parser()._actions if isinstance(a, argparse._SubParsersAction))
    parts = []
    for name, command in subparsers.choices.items():
        parts.append(f"## neo {name}\n\n```text\n{command.format_help().strip()}\n```")
    return "\n\n".join(parts)


def knobs() -> str:
    """Every environment variable that neo reads."""
    rows = [f"| `{k['name']}` | {k['type']} | {k['default']} | {k['summary']} |" for k in _native.knobs()]
    return "\n".join(["| variable | type | default | what it does |", "|---|---|---|---|", *rows])


def fill_in(_: Any, name: str, source: list[str]) -> None:
    """Put what the program says of itself into the page of commands."""
    if name == "reference/commands":
        source[0] = source[0].replace("<!-- commands -->", commands()).replace("<!-- knobs -->", knobs())


def setup(app: Any) -> None:
    """Register the hook; Sphinx calls this."""
    app.connect("source-read", fill_in)
