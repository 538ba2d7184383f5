"""PyTorch's compiler with neo beside Inductor: ``python -m benchmarks.torch_compile --threads 2``.

Networks of torchvision and encoders of transformers, with random weights, are compiled by ``torch.compile`` with both backends;
their outputs are compared with PyTorch's own, and calls of the three are timed in turns. A time is the least median of the
rounds. Needs torch, torchvision, transformers and, for Inductor, a C++ compiler.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import neo.torch
import torch

#: Constructors of torchvision.models; an image of 224 x 224 goes in.
IMAGES = (
    "resnet18",
    "resnet50",
    "mobilenet_v2",
    "mobilenet_v3_large",
    "efficientnet_b0",
    "squeezenet1_1",
    "shufflenet_v2_x1_0",
    "mnasnet1_0",
    "regnet_y_400mf",
    "densenet121",
)
#: Configurations and models of transformers; 64 tokens go in.
TOKENS = ("Bert", "DistilBert", "Roberta")
ROUND_SECONDS = 0.5


def main() -> None:
    """Print a row of a table for each model, and the geometric mean over Inductor."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default=",".join((*IMAGES, *TOKENS)), help="which, with commas")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"torch {torch.__version__}, neo {neo.__version__}, {options.threads} threads, batch 1, float32\n")
    print("| model | PyTorch, ms | Inductor, ms | neo, ms | neo over Inductor | largest difference |")
    print("|---|---|---|---|---|---|")
    ratios = []
    for name in options.models.split(","):
        line, ratio = _row(name, options.rounds)
        ratios.append(ratio)
        print(line, flush=True)
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    print(f"\ngeometric mean over Inductor: {mean:.2f}")


def _model(name: str) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    """A model with random weights that are the same in each run, and what it is called with."""
    torch.manual_seed(0)
    if name in IMAGES:
        import torchvision

        return torchvision.models.get_model(name, weights=None).eval(), (torch.randn(1, 3, 224, 224),)
    import transformers

    settings: dict[str, Any] = {"attn_implementation": "eager", "return_dict": False}
    config = getattr(transformers, f"{name}Config")(**settings)
    return getattr(transformers, f"{name}Model")(config).eval(), (torch.randint(5, 30000, (1, 64)),)


def _row(name: str, rounds: int) -> tuple[str, float]:
    model, inputs = _model(name)
    calls = {"eager": model, **{b: torch.compile(model, backend=b) for b in ("inductor", "neo")}}
    with torch.no_grad():
        outputs = {key: _first(call(*inputs)) for key, call in calls.items()}
        times = dict.fromkeys(calls, math.inf)
        for _ in range(rounds):
            for key, call in calls.items():
                times[key] = min(times[key], _median_ms(call, inputs))
    torch._dynamo.reset()
    difference = (outputs["neo"] - outputs["eager"]).abs().max().item() / outputs["eager"].abs().max().item()
    ratio = times["inductor"] / times["neo"]
    cells = " | ".join(f"{times[key]:.2f}" for key in ("eager", "inductor", "neo"))
    return f"| {name} | {cells} | {ratio:.2f} | {difference:.1e} |", ratio


def _first(result: Any) -> torch.Tensor:
    return result[0] if isinstance(result, tuple) else result


def _median_ms(call: Callable[..., Any], inputs: tuple[torch.Tensor, ...]) -> float:
    times = []
    end = time.perf_counter() + ROUND_SECONDS
    while time.perf_counter() < end or not times:
        begin = time.perf_counter()
        call(*inputs)
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1000


if __name__ == "__main__":
    main()
