"""Build the benchmark networks as ONNX files with random weights.

``python -m benchmarks.models.networks --cache DIR [NAME ...]``

Needs torch and torchvision, for the export alone: neither neo nor its tests use them. Every network is built from seed
0, its batch norms hold the statistics of two batches of standard-normal data (so activations keep their scale through
the depth), and it is exported at opset 17 with a fixed shape. Detectors end at their raw heads. Feed standard-normal
values.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn

IMAGE = (1, 3, 224, 224)


@dataclass(frozen=True)
class Network:
    """A network of the benchmarks: how to build it and the shape it is exported at."""

    name: str
    shape: tuple[int, ...]
    build: Callable[[], nn.Module]
    recurrent: bool = False


def _torchvision(name: str, **arguments: Any) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        import torchvision

        module: nn.Module = getattr(torchvision.models, name)(weights=None, **arguments)
        return module

    return build


def _conv_norm_relu(src: int, dst: int, kernel: int, stride: int, groups: int = 1) -> list[nn.Module]:
    from torch import nn

    conv = nn.Conv2d(src, dst, kernel, stride, kernel // 2, groups=groups, bias=False)
    return [conv, nn.BatchNorm2d(dst), nn.ReLU()]


def _mobilenet_v1_stages() -> tuple[list[nn.Module], list[nn.Module]]:
    """Return the depthwise-separable trunk of MobileNet v1, before and from its last down-sampling."""
    plan = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)] + [(512, 1)] * 5 + [(1024, 2), (1024, 1)]
    layers = _conv_norm_relu(3, 32, 3, 2)
    src, split = 32, 0
    for dst, stride in plan:
        if dst == 1024 and not split:
            split = len(layers)
        layers += _conv_norm_relu(src, src, 3, stride, src) + _conv_norm_relu(src, dst, 1, 1)
        src = dst
    return layers[:split], layers[split:]


def mobilenet_v1() -> nn.Module:
    """MobileNet v1, width 1.0, with its softmax."""
    from torch import nn

    head, tail = _mobilenet_v1_stages()
    pool = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1024, 1000), nn.Softmax(1)]
    return nn.Sequential(*head, *tail, *pool)


def yolov3() -> nn.Module:
    """Darknet-53 with the three heads of YOLOv3, undecoded."""
    import torch
    from torch import nn

    def block(src: int, dst: int, kernel: int, stride: int = 1) -> nn.Module:
        conv = nn.Conv2d(src, dst, kernel, stride, kernel // 2, bias=False)
        return nn.Sequential(conv, nn.BatchNorm2d(dst), nn.LeakyReLU(0.1))

    class Residual(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.body = nn.Sequential(block(width, width // 2, 1), block(width // 2, width, 3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y: torch.Tensor = x + self.body(x)
            return y

    def stage(src: int, dst: int, repeats: int) -> nn.Module:
        return nn.Sequential(block(src, dst, 3, 2), *[Residual(dst) for _ in range(repeats)])

    def neck(src: int, width: int) -> nn.Module:
        wide = 2 * width
        return nn.Sequential(
            block(src, width, 1),
            block(width, wide, 3),
            block(wide, width, 1),
            block(width, wide, 3),
            block(wide, width, 1),
        )

    def head(width: int) -> nn.Module:
        return nn.Sequential(block(width, 2 * width, 3), nn.Conv2d(2 * width, 255, 1))

    class Yolo(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.to_8 = nn.Sequential(block(3, 32, 3), stage(32, 64, 1), stage(64, 128, 2), stage(128, 256, 8))
            self.to_16, self.to_32 = stage(256, 512, 8), stage(512, 1024, 4)
            self.neck_32, self.neck_16, self.neck_8 = neck(1024, 512), neck(768, 256), neck(384, 128)
            self.head_32, self.head_16, self.head_8 = head(512), head(256), head(128)
            self.up_32 = nn.Sequential(block(512, 256, 1), nn.Upsample(scale_factor=2))
            self.up_16 = nn.Sequential(block(256, 128, 1), nn.Upsample(scale_factor=2))

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            at_8 = self.to_8(x)
            at_16 = self.to_16(at_8)
            at_32 = self.neck_32(self.to_32(at_16))
            at_16 = self.neck_16(torch.cat([self.up_32(at_32), at_16], 1))
            at_8 = self.neck_8(torch.cat([self.up_16(at_16), at_8], 1))
            return self.head_32(at_32), self.head_16(at_16), self.head_8(at_8)

    return Yolo()


def _ssd(head: nn.Module, tail: nn.Module, widths: list[int]) -> nn.Module:
    """Raw SSD class and box heads over two scales of a trunk and three extra ones."""
    import torch
    from torch import nn

    classes, anchors = 21, 6
    widths = [*widths, 512, 256, 256]

    def extra(src: int, dst: int) -> nn.Module:
        return nn.Sequential(nn.Conv2d(src, dst // 2, 1), nn.ReLU(), nn.Conv2d(dst // 2, dst, 3, 2, 1), nn.ReLU())

    def rows(x: torch.Tensor, width: int) -> torch.Tensor:
        return x.permute(0, 2, 3, 1).reshape(x.shape[0], -1, width)

    class Ssd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scales = nn.ModuleList([head, tail, *[extra(src, dst) for src, dst in itertools.pairwise(widths[1:])]])
            self.scores = nn.ModuleList(nn.Conv2d(width, anchors * classes, 3, 1, 1) for width in widths)
            self.boxes = nn.ModuleList(nn.Conv2d(width, anchors * 4, 3, 1, 1) for width in widths)

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            scores, boxes = [], []
            for scale, score, box in zip(self.scales, self.scores, self.boxes, strict=True):
                x = scale(x)
                scores.append(rows(score(x), classes))
                boxes.append(rows(box(x), 4))
            return torch.cat(scores, 1).softmax(-1), torch.cat(boxes, 1)

    return Ssd()


def ssd_resnet50() -> nn.Module:
    """SSD over ResNet-50, raw heads."""
    from torch import nn

    trunk: Any = _torchvision("resnet50")()
    stem = [trunk.conv1, trunk.bn1, trunk.relu, trunk.maxpool, trunk.layer1, trunk.layer2, trunk.layer3]
    return _ssd(nn.Sequential(*stem), trunk.layer4, [1024, 2048])


def ssd_mobilenet_v1() -> nn.Module:
    """SSD over MobileNet v1, raw heads."""
    from torch import nn

    head, tail = _mobilenet_v1_stages()
    return _ssd(nn.Sequential(*head), nn.Sequential(*tail), [512, 1024])


def _recurrent(cell: str, src: int, hidden: int, depth: int, *, both: bool = False) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        import torch
        from torch import nn

        class Stack(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.cells = getattr(nn, cell)(src, hidden, depth, bidirectional=both)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                y: torch.Tensor = self.cells(x)[0]
                return y

        return Stack()

    return build


def _all_networks() -> Iterable[Network]:
    classifiers = (
        "densenet121 densenet161 densenet169 densenet201 efficientnet_b0 googlenet mobilenet_v2 mobilenet_v3_large "
        "resnet18 resnet34 resnet50 resnet101 resnet152 shufflenet_v2_x1_0 squeezenet1_0 vgg11 vgg13 vgg16 vgg19"
    )
    for name in classifiers.split():
        extra = {"init_weights": True} if name == "googlenet" else {}
        yield Network(name, IMAGE, _torchvision(name, **extra))
    yield Network("inception_v3", (1, 3, 299, 299), _torchvision("inception_v3", init_weights=False))
    yield Network("mobilenet_v1", IMAGE, mobilenet_v1)
    yield Network("ssd_mobilenet_v1_512", (1, 3, 512, 512), ssd_mobilenet_v1)
    yield Network("ssd_resnet50_512", (1, 3, 512, 512), ssd_resnet50)
    yield Network("yolov3_416", (1, 3, 416, 416), yolov3)
    yield Network("lstm_128x2_t17", (17, 1, 128), _recurrent("LSTM", 128, 128, 2), recurrent=True)
    yield Network("lstm_512x3_t100", (100, 1, 512), _recurrent("LSTM", 512, 512, 3), recurrent=True)
    yield Network("lstm_1024x2_t50", (50, 1, 1024), _recurrent("LSTM", 1024, 1024, 2), recurrent=True)
    yield Network("bilstm_256x2_t100", (100, 1, 128), _recurrent("LSTM", 128, 256, 2, both=True), recurrent=True)
    yield Network("gru_256x2_t100", (100, 1, 128), _recurrent("GRU", 128, 256, 2), recurrent=True)
    yield Network("lstm_256x2_t64_b16", (64, 16, 256), _recurrent("LSTM", 256, 256, 2), recurrent=True)


NETWORKS = {network.name: network for network in _all_networks()}


def _settle(module: nn.Module, shape: tuple[int, ...]) -> nn.Module:
    """Give every batch norm the statistics of the data that reaches it."""
    import torch
    from torch import nn

    module.eval()
    norms = [layer for layer in module.modules() if isinstance(layer, nn.BatchNorm2d)]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None
        norm.train()
    if norms:
        with torch.no_grad():
            for _ in range(2):
                module(torch.randn(shape))
    return module.eval()


def build(name: str) -> nn.Module:
    """Return the network with its weights: the same in every process."""
    import torch

    network = NETWORKS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        return _settle(network.build(), network.shape)


def export(name: str, cache: Path) -> Path:
    """Write the network ``name`` into the folder ``cache`` unless it is there, and return its path.

    Parameters
    ----------
    name : str
        A key of ``NETWORKS``.
    cache : Path
        Folder of the exported files; made when absent.
    """
    network = NETWORKS[name]
    path = cache / f"{name}.onnx"
    if path.exists():
        return path
    import torch

    cache.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        example = (torch.randn(network.shape),)
        torch.onnx.export(build(name), example, str(partial), opset_version=17, dynamo=False, input_names=["x"])
    partial.rename(path)
    return path


def main() -> None:
    """Export the networks named on the command line, or all of them."""
    from rich.progress import track

    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("names", nargs="*", choices=[*NETWORKS, []], help="networks (default: all)", metavar="NAME")
    parser.add_argument("--cache", type=Path, default=Path(__file__).parent / "cache")
    arguments = parser.parse_args()
    for name in track(arguments.names or list(NETWORKS), description="export"):
        path = export(name, arguments.cache)
        print(f"{name}: {path.stat().st_size / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
