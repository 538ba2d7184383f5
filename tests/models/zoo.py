"""Every ONNX model of the shared models folder: where it lies, what to feed it, and what must come out.

The folder is what ``NEO_TEST_MODELS`` names, else one beside the repository (``inputs.py``). ``MODELS`` is the
catalogue that the tests and the benchmarks enumerate; ``load`` gives what ``neo.compile`` and onnxruntime take. Inputs
are seeded by the names of model and case, so that a failing case is fed the same values everywhere.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from . import inputs
from .inputs import Draw, Feeds, models_folder
from .reweight import reweighted


@dataclass(frozen=True)
class Input:
    """One input of a model: its name, how its values are drawn, and its shape in each case."""

    name: str
    draw: Draw
    shapes: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Case:
    """One set of inputs of a model."""

    name: str
    feeds: Feeds


@dataclass(frozen=True)
class Reference:
    """Stored tensors of a model and how they are compared.

    ``form`` says what the files hold: ``pairs`` (one archive, keys ``in__<name>`` and ``out__<name>``), ``deeploy``
    (``inputs.npz`` whose ``arr_0`` is the input, ``outputs.npz``) or ``digits`` (pixels and one-hot labels). ``rule``
    is ``float`` (the float rule of ``neo.testing``), or ``top1`` where the tensors are those of the float model that a
    quantized one was made from. ``rows`` feeds a batch one row at a time, where the model's own batch is fixed at one.
    """

    files: tuple[str, ...]
    form: str = "pairs"
    rule: str = "float"
    rows: bool = False


@dataclass(frozen=True)
class Stream:
    """How a stateful model is run: ``carried`` maps each state output to the input it becomes in the next call."""

    carried: Mapping[str, str]
    initial: Mapping[str, tuple[int, ...]]
    windows: Callable[[Path], Iterator[Feeds]]


@dataclass(frozen=True, eq=False)
class Model:
    """A model of the folder.

    ``kind`` is ``float``, ``qdq``, ``qoperator``, ``fp16`` or ``light`` (weights replaced by constants: ``load`` puts
    seeded ones in their place). ``onnxruntime`` is false where onnxruntime refuses the file; ``note`` says what one
    must know to use it. ``ranked`` names the outputs that TopK puts in order, the score first: their rows are compared
    as a set, because scores within rounding of each other change places (see ``ranking.align``).
    """

    name: str
    file: str
    kind: str
    inputs: tuple[Input, ...]
    references: tuple[Reference, ...] = ()
    stream: Stream | None = None
    onnxruntime: bool = True
    note: str = ""
    ranked: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """Return the path of the file."""
        return models_folder() / self.file

    @property
    def quantized(self) -> bool:
        """Return whether the model computes on quantized values."""
        return self.kind in ("qdq", "qoperator")

    @property
    def slow(self) -> bool:
        """Return whether the weights take long to draw and to compile: more than 100 MB of them."""
        return self.name in ("light-bvlc_alexnet", "light-vgg19", "light-zfnet512")

    @property
    def small(self) -> bool:
        """Return whether an emulated processor runs every case within seconds."""
        return self.name.startswith(_SMALL)

    @property
    def dynamic(self) -> bool:
        """Return whether the cases differ in shape."""
        return any(len(set(item.shapes)) > 1 for item in self.inputs)

    def cases(self) -> list[Case]:
        """Return the seeded cases, one per shape of the inputs."""
        count = max(len(item.shapes) for item in self.inputs)
        cases = []
        for index in range(count):
            shapes = [item.shapes[min(index, len(item.shapes) - 1)] for item in self.inputs]
            label = "x".join(map(str, shapes[0])) or "scalar"
            rng = np.random.default_rng(zlib.crc32(f"{self.name}/{index}/{label}".encode()))
            feeds = {item.name: item.draw(rng, shape) for item, shape in zip(self.inputs, shapes, strict=True)}
            cases.append(Case(label, feeds))
        return cases


def _one(name: str, draw: Draw, *shapes: tuple[int, ...]) -> tuple[Input, ...]:
    return (Input(name, draw, shapes),)


def _silero(name: str, file: str, *, rate: int = 16000, with_rate: bool = True, note: str = "") -> Model:
    """Describe one of the silero-vad files at one rate: windows of 32 ms behind 4 ms of context."""
    samples = rate * 36 // 1000
    items = [
        Input("input", inputs.tones(rate), ((1, samples), (3, samples))),
        Input("state", inputs.normal(0.5), ((2, 1, 128), (2, 3, 128))),
    ]
    if with_rate:
        items.append(Input("sr", inputs.constant(rate, "int64"), ((),)))
    stream = Stream({"stateN": "state"}, {"state": (2, 1, 128)}, inputs.speech_windows(rate, with_rate=with_rate))
    return Model(name, f"silero-vad/{file}", "float", tuple(items), stream=stream, note=note)


def _light(name: str, input_name: str) -> Model:
    note = "weights are constants in the file; the stored output is a smoke test"
    feeds = _one(input_name, inputs.picture(-1.8, 1.8), (1, 3, 224, 224))
    return Model(f"light-{name}", f"onnx-light/light_{name}.onnx", "light", feeds, note=note)


_SMALL = (
    "autoencoder1d",
    "dtln",
    "fastestdet",
    "gtcrn",
    "kws-dscnn",
    "magika",
    "mediapipe",
    "micro-kws",
    "mobilenet-v1",
    "ppocr-cls",
    "resnet8",
    "silero-vad",
    "tinyvit",
    "toy-bert",
    "ultraface",
    "yunet",
)

_PAIRS = (Reference(("ref_fp32.npz",)),)
_PAIRS_BY_ROW = (Reference(("ref_fp32.npz",), rows=True),)
_TOP1 = (Reference(("ref_fp32.npz",), rule="top1"),)
_TOP1_BY_ROW = (Reference(("ref_fp32.npz",), rule="top1", rows=True),)
_DEEPLOY = (Reference(("inputs.npz", "outputs.npz"), form="deeploy"),)
_STATE = (1, 2, 128, 2)

MODELS: tuple[Model, ...] = (
    Model(
        "autoencoder1d",
        "autoencoder1d/network.onnx",
        "float",
        _one("input", inputs.normal(), (1, 16, 16)),
        _DEEPLOY,
        note="initializers are graph inputs as well",
    ),
    Model(
        "basic-pitch",
        "basic-pitch/nmp.onnx",
        "float",
        _one("serving_default_input_2:0", inputs.tones(22050), (1, 43844, 1), (2, 43844, 1)),
        note="the author's matrices for vocadito_10.wav need overlapping windows and 22,050 samples a second",
    ),
    Model(
        "deeplab-v3",
        "deeplab-v3/deeplab_v3_1_default_1.onnx",
        "float",
        _one("sub_7", inputs.picture(-1, 1, channels_last=True), (1, 257, 257, 3)),
    ),
    Model(
        "deimv2-atto",
        "deimv2-atto/deimv2_hgnetv2_atto_coco.onnx",
        "float",
        (
            Input("images", inputs.picture(0, 1), ((1, 3, 320, 320), (2, 3, 320, 320))),
            Input("orig_target_sizes", inputs.constant((640, 480), "int64"), ((1, 2), (2, 2))),
        ),
        note="TopK orders the answers: compare them as a set of (score, label, box)",
        ranked=("scores", "labels", "boxes"),
    ),
    Model(
        "dtln-1",
        "dtln/model_1.onnx",
        "float",
        (Input("input_2", inputs.magnitudes(4.0), ((1, 1, 257),)), Input("input_3", inputs.normal(0.5), (_STATE,))),
        stream=Stream({"tf_op_layer_stack_2": "input_3"}, {"input_3": _STATE}, inputs.dtln_magnitudes),
    ),
    Model(
        "dtln-2",
        "dtln/model_2.onnx",
        "float",
        (Input("input_4", inputs.tones(16000), ((1, 1, 512),)), Input("input_5", inputs.normal(0.5), (_STATE,))),
        stream=Stream({"tf_op_layer_stack_5": "input_5"}, {"input_5": _STATE}, inputs.dtln_frames),
    ),
    Model(
        "fastestdet",
        "fastestdet/FastestDet.onnx",
        "float",
        _one("input", inputs.picture(0, 1), (1, 3, 352, 352)),
        _PAIRS,
    ),
    Model(
        "gtcrn",
        "gtcrn/gtcrn_simple.onnx",
        "float",
        (
            Input("mix", inputs.normal(), ((1, 257, 1, 2),)),
            Input("conv_cache", inputs.normal(0.5), ((2, 1, 16, 16, 33),)),
            Input("tra_cache", inputs.normal(0.5), ((2, 3, 1, 1, 16),)),
            Input("inter_cache", inputs.normal(0.5), ((2, 1, 33, 16),)),
        ),
        stream=Stream(
            {f"{name}_cache_out": f"{name}_cache" for name in ("conv", "tra", "inter")},
            {"conv_cache": (2, 1, 16, 16, 33), "tra_cache": (2, 3, 1, 1, 16), "inter_cache": (2, 1, 33, 16)},
            inputs.gtcrn_frames,
        ),
    ),
    Model(
        "kws-dscnn",
        "kws-dscnn/kws_dscnn-fp32-derived.onnx",
        "float",
        _one("input", inputs.normal(10), (1, 1, 49, 10)),
        _PAIRS,
    ),
    Model(
        "kws-dscnn-qdq",
        "kws-dscnn/kws_dscnn-qdq-derived.onnx",
        "qdq",
        _one("input", inputs.normal(10), (1, 1, 49, 10)),
        _TOP1,
    ),
    Model(
        "magika",
        "magika/standard_v3_3.onnx",
        "float",
        _one("bytes", inputs.integers(257, "int32"), (1, 2048), (3, 2048)),
        note="256 is the padding byte",
    ),
    Model(
        "mediapipe-face-detection",
        "mediapipe/face_detection_short_range.onnx",
        "float",
        _one("input", inputs.picture(-1, 1, channels_last=True), (1, 128, 128, 3)),
        (Reference(("ref_face_detection_short_range.npz",)),),
    ),
    Model(
        "mediapipe-face-landmark",
        "mediapipe/face_landmark.onnx",
        "float",
        _one("input_1", inputs.picture(0, 1, channels_last=True), (1, 192, 192, 3)),
    ),
    Model(
        "mediapipe-selfie",
        "mediapipe/selfie_segmentation_landscape.onnx",
        "float",
        _one("input_1", inputs.picture(0, 1, channels_last=True), (1, 144, 256, 3)),
        (Reference(("ref_selfie_segmentation_landscape.npz",)),),
    ),
    Model(
        "micro-kws",
        "micro-kws/micro_kws_m_static_fp32.onnx",
        "float",
        _one("serving_default_input:0", inputs.normal(), (1, 1960)),
        _PAIRS,
    ),
    Model(
        "micro-kws-qdq",
        "micro-kws/micro_kws_m_static_qdq.onnx",
        "qdq",
        _one("serving_default_input:0", inputs.normal(), (1, 1960), (2, 1960)),
        _TOP1,
    ),
    Model(
        "micro-kws-qoperator",
        "micro-kws/micro_kws_m_static_qoperator.onnx",
        "qoperator",
        _one("serving_default_input:0", inputs.normal(), (1, 1960)),
        _TOP1,
    ),
    Model(
        "mnist-cntk",
        "mnist-cntk/model.onnx",
        "float",
        _one("Input3", inputs.picture(0, 255), (1, 1, 28, 28)),
        (Reference(tuple(f"test_data_{index}.npz" for index in range(3)), form="digits", rule="top1"),),
        onnxruntime=False,
        note="opset 1 with broadcast attributes; onnxruntime refuses it; the references are one-hot labels",
    ),
    Model(
        "mobilenet-v1",
        "mobilenetv1-050-imagenet/mobilenet_v1_0.5_160-fp32-derived.onnx",
        "float",
        _one("input", inputs.picture(-1, 1), (1, 3, 160, 160)),
        _PAIRS_BY_ROW,
    ),
    Model(
        "mobilenet-v1-qdq",
        "mobilenetv1-050-imagenet/mobilenet_v1_0.5_160-qdq-derived.onnx",
        "qdq",
        _one("input", inputs.picture(-1, 1), (1, 3, 160, 160)),
        _TOP1_BY_ROW,
    ),
    Model(
        "mobilenet-v2",
        "mobilenetv2-imagenet/mobilenetv2-12-fp32-derived.onnx",
        "float",
        _one("input", inputs.picture(-2.1, 2.6), (1, 3, 224, 224), (2, 3, 224, 224)),
        _PAIRS,
    ),
    Model(
        "mobilenet-v2-qdq",
        "mobilenetv2-imagenet/mobilenetv2-12-qdq.onnx",
        "qdq",
        _one("input", inputs.picture(-2.1, 2.6), (1, 3, 224, 224), (2, 3, 224, 224)),
        _TOP1,
    ),
    Model(
        "ppocr-cls",
        "ppocr/ch_ppocr_mobile_v2.0_cls_infer.onnx",
        "float",
        _one("x", inputs.picture(-1, 1), (1, 3, 48, 192), (3, 3, 48, 100), (1, 3, 64, 64)),
        note="heights below 33 leave a plane of no rows, whose mean is undefined",
    ),
    Model(
        "ppocr-det",
        "ppocr/ch_ppocr_mobile_v2.0_det_infer.onnx",
        "float",
        _one("x", inputs.writing(-2.1, 2.6), (1, 3, 320, 320), (1, 3, 96, 160), (2, 3, 128, 96)),
        note="sizes divide by 32",
    ),
    Model(
        "ppocr-rec",
        "ppocr/en_number_mobile_v2.0_rec_infer.onnx",
        "float",
        _one("x", inputs.writing(-1, 1), (1, 3, 32, 320), (2, 3, 32, 100), (1, 3, 32, 48)),
    ),
    Model(
        "resnet8",
        "resnet8-cifar10/resnet8-fp32-derived.onnx",
        "float",
        _one("input", inputs.picture(0, 255), (1, 3, 32, 32)),
        _PAIRS_BY_ROW,
    ),
    Model(
        "resnet8-qdq",
        "resnet8-cifar10/resnet8-qdq-derived.onnx",
        "qdq",
        _one("input", inputs.picture(0, 255), (1, 3, 32, 32)),
        _TOP1_BY_ROW,
    ),
    _silero("silero-vad", "silero_vad.onnx"),
    _silero(
        "silero-vad-8k", "silero_vad.onnx", rate=8000, note="the other branch of the same file; resample the recording"
    ),
    _silero("silero-vad-16k", "silero_vad_16k_op15.onnx"),
    _silero("silero-vad-half", "silero_vad_half.onnx", with_rate=False, note="differs from the others by up to 0.7"),
    _silero("silero-vad-ifless", "silero_vad_op18_ifless.onnx"),
    Model(
        "starry-night",
        "style-starry-night-fp16/starry-night-fp16.onnx",
        "fp16",
        _one("0", inputs.half(inputs.picture(0, 255)), (1, 3, 224, 224)),
        onnxruntime=False,
        note="adds [32] to [1, 32, 224, 224]: against ONNX's broadcasting rule, and to be refused naming the node",
    ),
    Model(
        "super-resolution",
        "super-resolution/super_resolution.onnx",
        "float",
        _one("input", inputs.picture(0, 1), (1, 1, 224, 224), (2, 1, 224, 224)),
        (Reference(("ref_super_resolution.npz",)),),
    ),
    Model(
        "super-resolution-torch",
        "super-resolution/pytorch_super_resolution.onnx",
        "float",
        _one("input", inputs.picture(0, 1), (1, 1, 224, 224), (2, 1, 224, 224)),
        (Reference(("ref_pytorch_super_resolution.npz",)),),
    ),
    Model("tbefn", "tbefn/tbefn_180x320.onnx", "float", _one("Placeholder", inputs.picture(0, 1), (1, 3, 180, 320))),
    Model("tinyvit", "tinyvit-demo/network.onnx", "float", _one("input.1", inputs.normal(), (1, 3, 32, 32)), _DEEPLOY),
    Model(
        "toy-bert",
        "toy-bert-qa/TFBertForQuestionAnswering.onnx",
        "float",
        (
            Input("attention_mask", inputs.integers(2, "int32"), ((1, 7), (3, 7))),
            Input("input_ids", inputs.integers(20, "int32"), ((1, 7), (3, 7))),
            Input("token_type_ids", inputs.integers(2, "int32"), ((1, 7), (3, 7))),
        ),
    ),
    Model(
        "ultraface",
        "ultraface-rfb-320/version-RFB-320.onnx",
        "float",
        _one("input", inputs.stored("ultraface-rfb-320/ref_nms.npz", "in__input"), (1, 3, 240, 320)),
        _PAIRS,
    ),
    Model(
        "ultraface-nms",
        "ultraface-rfb-320/version-RFB-320-nms-derived.onnx",
        "float",
        _one("input", inputs.stored("ultraface-rfb-320/ref_nms.npz", "in__input"), (1, 3, 240, 320)),
        (Reference(("ref_nms.npz",)),),
        note="the number of boxes is born at run time",
    ),
    Model(
        "yolox-nano",
        "yolox-nano/yolox_nano.onnx",
        "float",
        _one("images", inputs.picture(0, 255), (1, 3, 416, 416)),
        _PAIRS,
    ),
    Model(
        "yunet",
        "yunet-n/yunet_n_320_320.onnx",
        "float",
        _one("input", inputs.stored("yunet-n/ref_fp32.npz", "in__input"), (1, 3, 320, 320)),
        _PAIRS,
    ),
    Model(
        "yunet-dynamic",
        "yunet-n/yunet_n_dynamic.onnx",
        "float",
        _one(
            "input",
            inputs.stored("yunet-n/ref_fp32.npz", "in__input"),
            (1, 3, 320, 320),
            (1, 3, 96, 160),
            (2, 3, 128, 96),
            (1, 3, 480, 640),
        ),
        _PAIRS,
        note="sizes divide by 32",
    ),
    _light("bvlc_alexnet", "data_0"),
    _light("densenet121", "data_0"),
    _light("inception_v1", "data_0"),
    _light("inception_v2", "data_0"),
    _light("resnet50", "gpu_0/data_0"),
    _light("shufflenet", "gpu_0/data_0"),
    _light("squeezenet", "data_0"),
    _light("vgg19", "data_0"),
    _light("zfnet512", "gpu_0/data_0"),
)

BY_NAME = {model.name: model for model in MODELS}


def stream_steps(
    model: Model, run: Callable[[Feeds], Mapping[str, np.ndarray]], count: int
) -> Iterator[tuple[Feeds, dict[str, np.ndarray]]]:
    """Run the first ``count`` windows of a stream and yield what went in and what came out of each call.

    Parameters
    ----------
    model : Model
        A model with a stream.
    run : callable
        Takes the inputs by name, returns the outputs by name.
    count : int
        Number of windows.
    """
    assert model.stream is not None
    state: Feeds = {name: np.zeros(shape, dtype=np.float32) for name, shape in model.stream.initial.items()}
    for feeds, _ in zip(model.stream.windows(models_folder()), range(count), strict=False):
        whole = {**feeds, **state}
        outputs = dict(run(whole))
        yield whole, outputs
        state = {into: np.asarray(outputs[out]) for out, into in model.stream.carried.items()}


def load(model: Model) -> str | bytes:
    """Return the model for ``neo.compile`` or onnxruntime: a path, or the bytes of one that was given real weights.

    In a sample of the tests (``NEO_TEST_SAMPLE``) a smaller network of the same graph stands in for a large one.
    """
    if model.kind == "light":
        divisor = 4 if model.slow and os.environ.get("NEO_TEST_SAMPLE") else 1
        return bytes(reweighted(model.path, divisor).SerializeToString())
    return str(model.path)


def load_reference(model: Model, reference: Reference) -> list[tuple[Feeds, Feeds]]:
    """Return the stored inputs and outputs of a reference, as pairs to run one by one."""
    files = [model.path.parent / file for file in reference.files]
    if reference.form == "deeploy":
        name = onnx.load(model.path, load_external_data=False).graph.output[0].name
        x = np.load(files[0])["arr_0"]
        y = next(iter(np.load(files[1]).values()))
        return [({model.inputs[0].name: x}, {name: y})]
    if reference.form == "digits":
        pixels = [np.load(file)["inputs"].astype(np.float32).reshape(1, 1, 28, 28) for file in files]
        labels = [np.load(file)["outputs"].astype(np.float32) for file in files]
        return [({"Input3": x}, {"Plus214_Output_0": y}) for x, y in zip(pixels, labels, strict=True)]
    stored = np.load(files[0])
    feeds = {key.removeprefix("in__"): stored[key] for key in stored.files if key.startswith("in__")}
    outputs = {key.removeprefix("out__"): stored[key] for key in stored.files if key.startswith("out__")}
    if not reference.rows:
        return [(feeds, outputs)]
    batch = len(next(iter(feeds.values())))
    rows = [slice(row, row + 1) for row in range(batch)]
    return [({k: v[row] for k, v in feeds.items()}, {k: v[row] for k, v in outputs.items()}) for row in rows]


def constant_weights_reference(model: Model) -> tuple[Feeds, np.ndarray]:
    """Return input and stored output of an onnx-light file as it lies, weights all constant: a smoke test, no more."""
    (item,) = model.inputs
    (shape,) = item.shapes
    count = int(np.prod(shape))
    ramp = np.arange(count).astype(np.float32).reshape(shape) / np.float32(count)
    stored = onnx.load_tensor(str(model.path.with_name(model.path.stem + "_output_0.pb")))
    return {item.name: ramp}, numpy_helper.to_array(stored)
