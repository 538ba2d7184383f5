"""Top-1 and logits on crops of photographs beside ONNX Runtime: ``python -m benchmarks.crops``.

Every crop is a random part of a photograph of the shared models folder, between a quarter and all of its area, squashed
to the network's input and mirrored half of the time; the draws are seeded. Trained networks say whether the answers
hold, the full-size networks of the papers (random weights) how large the errors of fast algorithms become.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import neo
import numpy as np
from rich.progress import track

from benchmarks import results
from benchmarks.suites import find_entries

#: Networks of the suite of full-size networks: residual, plain, factorised and dense ones.
NETWORKS = ("resnet18", "resnet50", "vgg16", "inception_v3", "googlenet", "densenet121", "squeezenet1_0")
IMAGENET = (np.float32([0.485, 0.456, 0.406]) * 255, np.float32([0.229, 0.224, 0.225]) * 255)
CENTRED = (np.float32([128, 128, 128]), np.float32([128, 128, 128]))


@dataclass
class Compared:
    """One network: crops, how many agree on the first class, and the largest error of a logit over the largest logit."""

    name: str
    crops: int
    agree: int
    error: float
    margin: float


def crops(folder: Path, size: tuple[int, int], count: int) -> np.ndarray:
    """Return ``count`` crops as float32 RGB ``[count, height, width, 3]``, 0 to 255."""
    from PIL import Image

    rng = np.random.default_rng(2026)
    files = sorted(path for path in folder.iterdir() if path.suffix in {".bmp", ".jpg"})
    pictures = [Image.open(path).convert("RGB") for path in files]
    taken = np.empty((count, *size, 3), dtype=np.float32)
    for index in range(count):
        picture = pictures[index % len(pictures)]
        side = np.sqrt(rng.uniform(0.25, 1))
        width, height = picture.width * side, picture.height * side
        left, top = rng.uniform(0, picture.width - width), rng.uniform(0, picture.height - height)
        box = (left, top, left + width, top + height)
        part = np.asarray(picture.resize(size[::-1], Image.Resampling.BILINEAR, box=box), dtype=np.float32)
        taken[index] = part[:, ::-1] if rng.random() < 0.5 else part
    return taken


def compare(name: str, path: Path, folder: Path, scaling: tuple[np.ndarray, np.ndarray], count: int) -> Compared:
    """Run the crops through neo (default accuracy) and ONNX Runtime.

    Parameters
    ----------
    name : str
        What the row is called.
    path : Path
        A network of one image ``[1, 3, height, width]`` and one row of scores.
    folder : Path
        The photographs.
    scaling : tuple of ndarray
        Mean and deviation of the channels that the network expects, for values 0 to 255.
    count : int
        Crops.
    """
    import onnxruntime

    module = neo.compile(str(path))
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    [given] = session.get_inputs()
    height, width = given.shape[2:]
    found = Compared(name, count, 0, 0.0, np.inf)
    for crop in track(crops(folder, (height, width), count), description=name, transient=True):
        x = np.ascontiguousarray(((crop - scaling[0]) / scaling[1]).transpose(2, 0, 1)[None], dtype=np.float32)
        [expected] = session.run(None, {given.name: x})
        actual: Any = module(x)
        expected, actual = expected.ravel(), np.asarray(actual).ravel()
        found.agree += int(actual.argmax() == expected.argmax())
        found.error = max(found.error, float(np.abs(actual - expected).max() / np.abs(expected).max()))
        second, first = np.partition(expected, -2)[-2:]
        found.margin = min(found.margin, float((first - second) / np.abs(expected).max()))
    return found


def main() -> None:
    """Write the section of the results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.crops", description=__doc__)
    parser.add_argument("--models", type=Path, required=True, help="the shared models folder")
    parser.add_argument("--cache", type=Path, default=Path(__file__).parent / "models" / "cache", help="exported files")
    parser.add_argument("--crops", type=int, default=512, help="per network (default: %(default)s)")
    parser.add_argument("--networks", default=",".join(NETWORKS), help="with random weights (default: %(default)s)")
    parser.add_argument("--results", type=Path, default=results.PAGE_PATH, help="the page (default: %(default)s)")
    arguments = parser.parse_args()
    folder = arguments.models / "images"
    trained = {
        "mobilenet-v1 0.5, trained": ("mobilenetv1-050-imagenet/mobilenet_v1_0.5_160-fp32-derived.onnx", CENTRED),
        "mobilenet-v2, trained": ("mobilenetv2-imagenet/mobilenetv2-12-fp32-derived.onnx", IMAGENET),
    }
    rows = [
        compare(name, arguments.models / file, folder, scaling, arguments.crops)
        for name, (file, scaling) in trained.items()
    ]
    for entry in find_entries("networks", arguments.networks.split(",")):
        path, _ = entry.prepare(arguments.cache.resolve())
        rows.append(compare(f"{entry.name}, random weights", path, folder, IMAGENET, arguments.crops))
    head = ["network", "crops", "top-1 agrees", "largest error of a logit", "least margin of top-1"]
    section = results.Section(
        title="Crops of photographs beside ONNX Runtime",
        text="Default accuracy. Errors and margins are relative to the largest logit of a crop: where the margin between "
        "the first two classes is below the error, which of them comes first is a matter of rounding.",
        head=head,
        rows=[[r.name, str(r.crops), str(r.agree), f"{r.error:.2g}", f"{r.margin:.2g}"] for r in rows],
        notes=[f"`python -m benchmarks.crops --crops {arguments.crops} --networks {arguments.networks}`"],
    )
    results.record_section(
        "crops", section, arguments.results.with_name(arguments.results.stem.lower() + ".json"), arguments.results
    )


if __name__ == "__main__":
    main()
