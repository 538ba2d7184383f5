"""One HTML file that shows a module: it needs no network and runs no script but its own."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

__all__ = ["fill_page", "plain", "render_page"]

#: In the order in which they are embedded: each uses those before it.
_SCRIPTS = (
    "theme.js",
    "base.js",
    "layout.js",
    "graph.js",
    "details.js",
    "timeline.js",
    "roofline.js",
    "memory.js",
    "choices.js",
)
_LAST = "page.js"


def render_page(data: Mapping[str, Any]) -> str:
    """The page as text.

    Parameters
    ----------
    data : mapping
        What ``Profile.data`` or ``Explanation.data`` is. Its names may be anybody's: they reach the page as JSON
        without ``<``, and the document as text only.
    """
    text = json.dumps(plain(data), separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    fields = {
        "title": html.escape(f"{data['model'][:80] or 'model'} · neo"),
        "data": text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"),
    }
    return fill_page("page.html", fields, (*_SCRIPTS, _LAST))


def fill_page(template: str, fields: Mapping[str, str], scripts: Sequence[str]) -> str:
    """A template of the assets with its fields, the style, the scripts and the policy that lets nothing else run.

    Parameters
    ----------
    template : str
        The name of an asset, which stands behind the common head, with ``{{name}}`` for each field.
    fields : mapping of str to str
        What stands there, as HTML: names of a model are escaped by the caller.
    scripts : sequence of str
        Names of assets, in the order in which they are embedded.
    """
    style = _asset("page.css")
    script = "\n".join(_asset(name) for name in scripts)
    policy = f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; base-uri 'none'"
    fields = {**fields, "policy": policy, "style": style, "script": script}
    page = ""
    rest = _asset("head.html") + _asset(template)
    while "{{" in rest:
        before, _, rest = rest.partition("{{")
        name, _, rest = rest.partition("}}")
        page += before + fields[name]
    return page + rest


def plain(value: Any) -> Any:
    """The same with lists for tuples, and None for numbers that JSON has no word for."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    return value


def _asset(name: str) -> str:
    return resources.files("neo.report").joinpath("assets", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
