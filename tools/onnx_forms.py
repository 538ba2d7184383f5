"""How every version of every ONNX operator is written, by the installed onnx package: ``python -m tools.onnx_forms``.

Writes ``python/neo/frontend/onnx/forms.json``, from which the importer knows it without that package. Renew it when a
newer onnx has opsets that the table lacks.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
from neo.frontend.onnx.signature import form_of

TABLE = Path(__file__).parent.parent / "python" / "neo" / "frontend" / "onnx" / "forms.json"


def rows() -> dict[str, list[list[Any]]]:
    """The versions of each operator, the oldest first, by domain and name."""
    found: dict[str, list[list[Any]]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        form = form_of(schema)
        attributes = [[name, a.type, int(a.is_required)] for name, a in form.attributes.items()]
        row = [form.since, list(form.inputs), list(form.outputs), int(form.has_function), attributes]
        found.setdefault(f"{schema.domain}:{schema.name}", []).append(row)
    return {name: sorted(versions) for name, versions in sorted(found.items())}


def opsets() -> dict[str, int]:
    """The newest opset of each domain."""
    found = {"": onnx.defs.onnx_opset_version()}
    for schema in onnx.defs.get_all_schemas():
        if schema.domain:
            found[schema.domain] = max(found.get(schema.domain, 0), schema.since_version)
    return found


def main() -> None:
    """Write the table, an operator on a line."""
    lines = [f"{json.dumps(name)}:{json.dumps(versions, separators=(',', ':'))}" for name, versions in rows().items()]
    text = f'{{"opsets":{json.dumps(opsets(), separators=(",", ":"))},\n"operators":{{\n' + ",\n".join(lines) + "\n}}\n"
    TABLE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
