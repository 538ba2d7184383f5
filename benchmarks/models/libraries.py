"""Models of timm and transformers that nobody chose: the smallest of each family, random weights, as torch exports them.

``python -m benchmarks.models.libraries`` writes them; it needs torch, onnxscript and the library, and nothing of neo, so it
may run in another environment. The suite ``libraries`` measures what it wrote.
"""

from __future__ import annotations

import argparse
import inspect
import logging
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

__all__ = ["CACHE", "FOLDER", "LIBRARIES", "written"]

CACHE = Path(__file__).parent / "cache"
FOLDER = "libraries"  # in the cache

#: Sizes that make a configuration of transformers small, by the names that its classes have for them.
_SMALL = {
    128: "hidden_size d_model dim n_embd embed_dim emb_dim embedding_size",
    2: "num_hidden_layers n_layer n_layers num_layers encoder_layers decoder_layers num_encoder_layers "
    "num_decoder_layers num_key_value_heads num_experts_per_tok eos_token_id",
    4: "num_attention_heads n_head n_heads num_heads encoder_attention_heads decoder_attention_heads num_experts "
    "num_local_experts n_routed_experts",
    256: "intermediate_size d_ff ffn_dim encoder_ffn_dim decoder_ffn_dim n_inner hidden_dim",
    1000: "vocab_size",
    32: "head_dim d_kv",
    64: "moe_intermediate_size",
    512: "max_position_embeddings n_positions",
    16: "rotary_dim state_size",
    0: "pad_token_id",
    1: "bos_token_id",
}
_MOST_WEIGHTS = 25_000_000
_DEPTH = 3  # of configurations in configurations

Member = tuple[str, Callable[[], tuple[Any, dict[str, Any], dict[str, Any]]]]


def written(cache: Path) -> list[Path]:
    """Return the files that were written into a cache, in the order of their names."""
    return sorted((cache / FOLDER).glob("*.onnx"))


def _shrink(config: Any, depth: int = 0) -> None:
    from transformers import PretrainedConfig

    for size, names in _SMALL.items():
        for name in names.split():
            if type(getattr(config, name, None)) is int:
                setattr(config, name, size)
    for name, value in list(vars(config).items()):
        if isinstance(value, PretrainedConfig) and depth < _DEPTH:
            _shrink(value, depth + 1)
        if name == "layer_types" and isinstance(value, list):
            config.layer_types = value[:2]


def _stir(net: Any) -> None:
    """Give parameters that begin as constants, such as scales of 0, values that let everything through."""
    import torch

    with torch.no_grad():
        for name, value in [*net.named_parameters(), *net.named_buffers()]:
            if not value.is_floating_point() or value.numel() < 2:
                continue
            if "running_var" in name:
                value.uniform_(0.5, 1.5)
            elif value.std() == 0 or value.abs().max() < 1e-3:
                value.add_(torch.randn_like(value) * 0.1)


def _timm() -> Iterator[Member]:
    import timm
    import torch

    def weights(name: str) -> int:
        with torch.device("meta"):
            return sum(p.numel() for p in timm.create_model(name).parameters())

    def make(name: str) -> tuple[Any, dict[str, Any], dict[str, Any]]:
        net = timm.create_model(name).eval()
        _stir(net)
        return net, {"x": torch.randn(1, *net.default_cfg["input_size"])}, {"x": {}}

    for module in timm.list_modules():
        names = timm.list_models(module=module)
        if names:
            smallest = min(names, key=weights)
            yield smallest, lambda name=smallest: make(name)


def _transformers() -> Iterator[Member]:
    import torch
    from transformers import CONFIG_MAPPING, MODEL_MAPPING, AutoModel

    def make(kind: str) -> tuple[Any, dict[str, Any], dict[str, Any]]:
        config = CONFIG_MAPPING[kind]()
        _shrink(config)
        net = AutoModel.from_config(config).eval().float()
        takes = inspect.signature(net.forward).parameters
        main = net.main_input_name
        open_axes: dict[int, Any] = {0: torch.export.Dim.DYNAMIC}
        if main == "pixel_values":
            side = getattr(config, "image_size", 224)
            side = min(side, 384) if isinstance(side, int) else 224
            feeds = {main: torch.randn(2, getattr(config, "num_channels", 3), side, side)}
        elif main == "input_ids":
            open_axes[1] = torch.export.Dim.DYNAMIC
            feeds = {main: torch.randint(3, 900, (2, 16))}
            if "attention_mask" in takes:
                feeds["attention_mask"] = torch.ones(2, 16, dtype=torch.long)
            if "decoder_input_ids" in takes:
                feeds["decoder_input_ids"] = torch.randint(3, 900, (2, 8))
        else:
            raise ValueError(f"its input is {main}")
        axes: dict[str, Any] = dict.fromkeys(feeds, open_axes)
        for name, value in (("use_cache", False), ("return_dict", True)):
            if name in takes:
                feeds[name], axes[name] = value, None
        return net, feeds, axes

    for kind, config in CONFIG_MAPPING.items():
        if config in MODEL_MAPPING:
            yield kind.replace("/", "-"), lambda kind=kind: make(kind)


LIBRARIES: dict[str, Callable[[], Iterator[Member]]] = {"timm": _timm, "transformers": _transformers}


def _write(member: Member, path: Path) -> str:
    """Export a model and return what there is to say about it."""
    import torch

    net, feeds, axes = member[1]()
    if sum(p.numel() for p in net.parameters()) > _MOST_WEIGHTS:
        return f"more than {_MOST_WEIGHTS / 1e6:.0f} million weights"
    partial = path.with_suffix(".partial")
    torch.onnx.export(
        net, (), partial, kwargs=feeds, dynamic_shapes=axes, dynamo=True, external_data=False, verbose=False
    )
    partial.replace(path)
    return f"{path.stat().st_size / 1e6:.1f} MB"


def main(arguments: list[str] | None = None) -> None:
    """Write the models of the libraries that are installed; what is there already stays."""
    parser = argparse.ArgumentParser(description="write models of timm and transformers for --suite libraries")
    parser.add_argument("--cache", type=Path, default=CACHE, help="(default: %(default)s)")
    parser.add_argument("--library", action="append", choices=LIBRARIES, help="(default: both)")
    parser.add_argument("--match", default="", help="only names that contain this")
    parser.add_argument("--seed", type=int, default=0, help="of the weights (default: %(default)s)")
    options = parser.parse_args(arguments)
    try:
        import torch
    except ImportError as error:
        parser.exit(1, f"torch must be installed to export models. Got {error}\n")
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    folder = options.cache / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for library in options.library or LIBRARIES:
        for member in LIBRARIES[library]():
            path = folder / f"{library}-{member[0]}.onnx"
            if options.match not in member[0] or path.exists():
                continue
            torch.manual_seed(options.seed)
            try:
                said = _write(member, path)
            except Exception as error:  # what a library cannot make or torch cannot export is no failure
                said = f"not exported: {type(error).__name__}: {(str(error).splitlines() or [''])[0][:100]}"
            print(f"{library} {member[0]}: {said}", flush=True)


if __name__ == "__main__":
    main()
