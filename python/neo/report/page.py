"""One HTML file that shows a module: it needs no network and runs no script but its own."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
from collections.abc import Mapping
from importlib import resources
from typing import Any

__all__ = ["plain", "render_page"]

#: In the order in which they are embedded: each uses those before it.
_SCRIPTS = ("base.js", "layout.js", "graph.js", "details.js", "timeline.js", "roofline.js", "memory.js", "choices.js")
_LAST = "page.js"


def render_page(data: Mapping[str, Any]) -> str:
    """The page as text.

    Parameters
    ----------
    data : mapping
        What ``Profile.data`` or ``Explanation.data`` is. Its names may be anybody's: they reach the page as JSON
        without ``<``, and the document as text only.
    """
    style = _asset("page.css")
    script = "\n".join(_asset(name) for name in (*_SCRIPTS, _LAST))
    text = json.dumps(plain(data), separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    fields = {
        "policy": f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; base-uri 'none'",
        "title": html.escape(f"{data['model'][:80] or 'model'} · neo"),
        "style": style,
        "data": text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"),
        "script": script,
    }
    page = ""
    rest = _asset("page.html")
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
