"""One table over the records of all machines: how much faster neo is than the best peer of each model."""

from __future__ import annotations

from pathlib import Path

from benchmarks import page, results

FOLDER = Path(__file__).parent / "results"
PAGE_PATH = FOLDER / "README.md"

#: The folders of records, with what each machine is.
MACHINES = {
    "zen5": "AMD EPYC (Zen 5), AVX-512",
    "zen4": "AMD EPYC (Zen 4), AVX-512",
    "xeon": "Intel Xeon (family 6, model 167), AVX-512",
    "busy_xeon": "Intel Xeon (family 6, model 207), AVX-512, busy neighbours",
    "xeon16": "Intel Xeon (family 6, model 207), AVX-512",
    "avx2": "AMD EPYC (Zen 3), AVX2 alone",
}

_HEAD = """# Results by machine

Written by `python -m benchmarks.overview` from the records in the folders beside it; do not edit. The speed-up of a model is the time of
its fastest peer over neo's, both with the same number of threads, batch 1, float32, without tuning; the table has the geometric mean over
the suite's models. The peers are ONNX Runtime, OpenVINO, ncnn and MNN, and LiteRT where the model exists in its format, as far as they
are named in the record. "Slower" counts the models whose 95 % interval begins below 0.98. A link leads to every model's times,
versions and the command.

"""


def rows() -> list[list[str]]:
    """Return a row for each machine, suite and number of threads."""
    found = []
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
            found.append(
                [
                    f"[{machine}]({folder}/RESULTS.md)",
                    page.SUITES[table.suite][0],
                    f"{table.threads} of {table.environment['cores']}",
                    f"{len(ups)}",
                    f"**{mean:.2f}**",
                    f"{ups[worst].ratio.median:.2f} ({worst})",
                    f"{sum(not up.not_slower for up in ups.values())}",
                    max(row.measured for row in table.rows.values()),
                    ", ".join(versions),
                ]
            )
    return found


def text() -> str:
    """Return the page."""
    head = ["machine", "models", "threads of cores", "number", "speed-up", "worst", "slower", "measured", "neo"]
    return _HEAD + "\n".join(page.markdown(head, rows())) + "\n"


def main() -> None:
    """Write the page."""
    results.write_atomically(PAGE_PATH, text())


if __name__ == "__main__":
    main()
