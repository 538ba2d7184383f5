"""``python -m tests.models.compile_kernels``: compiles every kernel of networks, each distinct one once.

Networks are those of the benchmarks in float32, the float models of the zoo in float16, and the quantized models of the
zoo. clang takes the OpenCL kernels as OpenCL C 1.2 with cl_khr_fp16, nvcc those of CUDA for sm_87 and sm_90. No device is
needed: texts are made in a process that sees no driver. Status 1 where a compiler refuses one.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.models import networks
from tests.kernel_ir.compilers import CAPABILITIES, compile_cuda, compile_opencl, extensions_of

from . import zoo
from .half_twin import half_twin

_TARGETS = ("opencl", "mali", "intel_graphics", "cuda")
_HEADINGS = {
    "float32": "Networks of the benchmarks, float32",
    "float16": "Float models of the zoo, float16",
    "codes": "Quantized models of the zoo",
}
_CACHE = Path(networks.__file__).parent / "cache"
_WRITE = """
import sys, neo
from neo.kernels import write_kernels
for target in sys.argv[3:]:
    write_kernels(neo.compile(sys.argv[1], target=target), f"{sys.argv[2]}/{target}")
"""


@dataclass(frozen=True)
class Source:
    """A network: ``write`` makes the file where nobody has it, and returns its path."""

    name: str
    kind: str
    write: Callable[[Path], Path]


def sources(cache: Path) -> Iterator[Source]:
    """Every network, the smallest models of the zoo first."""
    models = [m for m in zoo.MODELS if (m.onnxruntime or m.references) and m.path.exists()]
    for model in sorted(models, key=lambda m: (m.kind == "light", m.path.stat().st_size)):
        if model.quantized:
            yield Source(model.name, "codes", lambda _, model=model: model.path)  # type: ignore[misc]
        else:
            yield Source(model.name, "float16", lambda folder, model=model: _twin(model, folder))  # type: ignore[misc]
    for name in networks.NETWORKS:
        yield Source(name, "float32", lambda _, name=name: networks.export(name, cache))  # type: ignore[misc]


def _twin(model: zoo.Model, folder: Path) -> Path:
    path = folder / "twin.onnx"
    path.write_bytes(half_twin(zoo.load(model)))
    return path


def texts_of(model: Path, targets: Sequence[str], folder: Path) -> dict[str, list[str]]:
    """Return the distinct kernels of a model for targets whose devices are absent."""
    environment = os.environ | {"OCL_ICD_VENDORS": str(folder / "none")}
    command = [sys.executable, "-c", _WRITE, str(model), str(folder), *targets]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    return {
        target: [p.read_text(encoding="utf-8") for p in sorted((folder / target).iterdir()) if p.suffix != ".json"]
        for target in targets
    }


def compile_texts(target: str, texts: Sequence[str]) -> list[str]:
    """Return the first line that each compiler says of the texts, nothing where it takes them."""
    compilers: list[Callable[[], None]] = [lambda: compile_opencl(texts)]
    if target == "cuda":
        compilers = [lambda capability=c: compile_cuda(texts, capability) for c in CAPABILITIES]  # type: ignore[misc]
    failures = []
    for compile_all in compilers:
        try:
            compile_all()
        except AssertionError as error:
            failures.append(str(error).strip().splitlines()[0])
    return failures


@dataclass(frozen=True)
class Report:
    """What the page says: rows by kind, distinct texts by language, what was refused."""

    rows: Mapping[str, list[str]]
    seen: Mapping[str, set[str]]
    failures: Sequence[str]
    targets: Sequence[str]

    def page(self) -> str:
        """Write the page of docs/."""
        needs = sorted({e for text in self.seen["opencl"] for e in extensions_of(text)})
        lines = [
            "# Kernels of networks",
            "",
            "Written by `python -m tests.models.compile_kernels`: distinct kernels of each network by target. Those in OpenCL C are compiled",
            "by clang as OpenCL C 1.2 with `cl_khr_fp16` and no other extension but the ones that a kernel enables itself",
            f"({', '.join(f'`{e}`' for e in needs) or 'none does'}); those of CUDA by nvcc for {' and '.join(f'sm_{c}' for c in CAPABILITIES)}.",
            f"{len(self.seen['opencl'])} distinct OpenCL kernels, {len(self.seen['cuda'])} distinct CUDA kernels (twice), {len(self.failures)} failures.",
        ]
        for kind, rows in self.rows.items():
            if rows:
                lines += ["", f"## {_HEADINGS[kind]}", "", f"| network | {' | '.join(self.targets)} |"]
                lines += [f"|---|{'---|' * len(self.targets)}", *rows]
        lines += ["", *(f"- {failure}" for failure in self.failures)]
        return "\n".join(lines).strip() + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.models.compile_kernels", description=__doc__)
    parser.add_argument("--kinds", nargs="+", default=list(_HEADINGS), choices=_HEADINGS)
    parser.add_argument("--match", default="*", help="only networks of this pattern")
    parser.add_argument("--targets", nargs="+", default=list(_TARGETS), choices=_TARGETS)
    parser.add_argument("--cache", type=Path, default=_CACHE, help="folder of the exported networks")
    parser.add_argument("--page", type=Path, help="where to write the page of docs/, after every network")
    options = parser.parse_args(arguments)
    failures: list[str] = []
    report = Report({kind: [] for kind in _HEADINGS}, {"opencl": set(), "cuda": set()}, failures, options.targets)
    for source in sources(options.cache):
        if source.kind not in options.kinds or not fnmatch.fnmatchcase(source.name, options.match):
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                texts = texts_of(source.write(Path(folder)), options.targets, Path(folder))
            except subprocess.CalledProcessError as error:
                failures.append(f"{source.name}: {error.stderr.decode().strip().splitlines()[-1]}")
                continue
        for target in options.targets:
            seen = report.seen["cuda" if target == "cuda" else "opencl"]
            fresh = [text for text in texts[target] if text not in seen]
            seen.update(fresh)
            failures += [f"{source.name}, {target}: {line}" for line in compile_texts(target, fresh)]
        report.rows[source.kind].append(
            f"| {source.name} | {' | '.join(str(len(texts[t])) for t in options.targets)} |"
        )
        print(report.rows[source.kind][-1], failures[-1:], flush=True)
        if options.page:
            options.page.write_text(report.page(), encoding="utf-8")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
