"""One table over the records of all machines: how much faster neo is than the best peer of each model.

``python -m benchmarks.overview`` writes ``results/README.md`` and the table of the first page.
"""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks import page, results
from benchmarks.peers import OURS
from benchmarks.results import Table

FOLDER = Path(__file__).parent / "results"
PAGE_PATH = FOLDER / "README.md"
FIRST_PAGE_PATH = FOLDER.parent.parent / "README.md"

#: The folders of records, with what each machine is.
MACHINES = {
    "zen5": "AMD EPYC (Zen 5), AVX-512",
    "zen4": "AMD EPYC (Zen 4), AVX-512",
    "xeon": "Intel Xeon (family 6, model 167), AVX-512",
    "busy_xeon": "Intel Xeon (family 6, model 207), AVX-512, busy neighbours",
    "xeon16": "Intel Xeon (family 6, model 207), AVX-512",
    "avx2": "AMD EPYC (Zen 3), AVX2 alone",
}

#: The tables of the first page: records and keys of their tables. All machines, all suites, on most threads.
FIRST_PAGE = (
    ("zen4", "networks-2"),
    ("zen4", "zoo-2"),
    ("zen4", "encoders-2"),
    ("zen4", "decoders-2"),
    ("zen4", "recurrent-2"),
    ("zen4", "quantized-2"),
    ("zen5", "quantized-2"),
    ("xeon", "networks-2"),
    ("busy_xeon", "networks-2"),
    ("xeon16", "networks-16"),
    ("avx2", "networks-2"),
)

_NAMES = {"ort": "ONNX Runtime", "openvino": "OpenVINO", "ncnn": "ncnn", "mnn": "MNN", "litert": "LiteRT"}

_HEAD = """# Results by machine

Written by `python -m benchmarks.overview` from the records in the folders beside it; do not edit. The speed-up of a model is the time of
its fastest peer over neo's, both with the same number of threads, without tuning; the table has the geometric mean over the suite's
models. Float models are computed in float32, quantized ones as their files say. "Peers" are the engines that were measured, with the number of
models where some have no time. "Not shown" counts the models whose 95 % interval begins below 0.98: they are slower, or their rounds
differ too much to say. A link leads to every model's times, versions and the command.

"""


def peers_of(table: Table) -> str:
    """Return the engines that a table's models were measured with."""
    parts = []
    for engine in page.engines_of(table):
        timed = sum(
            (cell := row.cells.get(engine)) is not None and cell.median_ms is not None for row in table.rows.values()
        )
        if engine not in OURS and timed:
            parts.append(_NAMES.get(engine, engine) + (f" ({timed})" if timed < len(table.rows) else ""))
    return ", ".join(parts)


def rows() -> dict[tuple[str, str], list[str]]:
    """Return a row for each machine, suite and number of threads, by the record and the key of the table."""
    found = {}
    for folder, machine in MACHINES.items():
        tables = results.read_tables(FOLDER / folder / "results.json")
        for table in sorted(tables.values(), key=lambda t: (t.suite, t.threads)):
            ups = {name: up for name, row in table.rows.items() if (up := page.speed_up(row)) is not None}
            if not ups:
                continue
            mean = page.geometric_mean([up.ratio.median for up in ups.values()])
            worst = min(ups, key=lambda name: ups[name].ratio.median)
            mine = [cell for row in table.rows.values() if (cell := row.cells.get("neo"))]
            versions = sorted({cell.version.removeprefix("neo ") for cell in mine if cell.version})
            found[folder, table.key] = [
                f"[{machine}]({folder}/RESULTS.md)",
                page.SUITES[table.suite][0],
                f"{table.threads} of {table.environment['cores']}",
                f"{len(ups)}",
                f"**{mean:.2f}**",
                f"{ups[worst].ratio.median:.2f} ({worst})",
                f"{sum(not up.not_slower for up in ups.values())}",
                peers_of(table),
                max(row.measured for row in table.rows.values()),
                ", ".join(versions),
            ]
    return found


def text() -> str:
    """Return the page."""
    head = [
        "machine",
        "models",
        "threads of cores",
        "number",
        "speed-up",
        "worst",
        "not shown",
        "peers",
        "measured",
        "neo",
    ]
    return _HEAD + "\n".join(page.markdown(head, list(rows().values()))) + "\n"


def first_page() -> str:
    """Return the first page with the table of today's records."""
    head = ["machine", "models", "threads of cores", "speed-up", "worst", "peers", "measured"]
    known = rows()
    picked = [[known[key][i] for i in (0, 1, 2, 4, 5, 7, 8)] for key in FIRST_PAGE]
    table = "\n".join(page.markdown(head, picked)).replace("](", "](benchmarks/results/")
    before = FIRST_PAGE_PATH.read_text(encoding="utf-8")
    return re.sub(r"^\| machine \|.*?\n\n", lambda _: table + "\n\n", before, count=1, flags=re.MULTILINE | re.DOTALL)


def main() -> None:
    """Write both pages."""
    results.write_atomically(PAGE_PATH, text())
    results.write_atomically(FIRST_PAGE_PATH, first_page())


if __name__ == "__main__":
    main()
