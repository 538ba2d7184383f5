"""The programs of examples/python on the shared models."""

import importlib.util
import re
from pathlib import Path

import pytest

from . import inputs

ROOT = Path(__file__).resolve().parents[2]


def load(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / "python" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def files(*names):
    paths = [inputs.models_folder() / name for name in names]
    missing = [str(p) for p in paths if not p.is_file()]
    if missing:
        pytest.skip(f"no {', '.join(missing)} (set NEO_TEST_MODELS to the folder of the shared models)")
    return list(map(str, paths))


@pytest.mark.slow
def test_photographs_are_labelled(capsys):
    pytest.importorskip("PIL")
    model, labels, cat, parrot = files(
        "mobilenetv2-imagenet/mobilenetv2-12-fp32-derived.onnx",
        "images/imagenet_labels.txt",
        "images/cat.bmp",
        "images/parrot.jpg",
    )
    for photo, expected in ((cat, "Egyptian cat"), (parrot, "macaw")):
        load("label_photo").main(model, photo, labels)
        assert capsys.readouterr().out.splitlines()[0].endswith(f"  {expected}")


@pytest.mark.slow
def test_faces_are_found(capsys, tmp_path):
    pytest.importorskip("PIL")
    model, photo = files("ultraface-rfb-320/version-RFB-320.onnx", "ultraface-rfb-320/1.jpg")
    load("find_faces").main(model, photo, str(tmp_path / "marked.png"))
    rows = capsys.readouterr().out.splitlines()
    assert len(rows) > 5
    for row in rows:
        left, top, right, bottom = map(int, row.split()[1:])
        assert left < right
        assert top < bottom
    assert (tmp_path / "marked.png").is_file()


@pytest.mark.slow
def test_a_photograph_is_segmented(capsys, tmp_path):
    pytest.importorskip("PIL")
    model, photo, labels = files(
        "deeplab-v3/deeplab_v3_1_default_1.onnx", "images/cat.bmp", "images/pascal_voc_segmentation_labels.txt"
    )
    load("segment_photo").main(model, photo, labels, str(tmp_path / "mask.png"))
    names = [line.split()[-1] for line in capsys.readouterr().out.splitlines()]
    assert names == ["background", "cat"]
    assert (tmp_path / "mask.png").is_file()


@pytest.mark.slow
def test_a_line_is_read(capsys, tmp_path):
    pytest.importorskip("PIL")
    from PIL import Image, ImageDraw, ImageFont

    model, characters = files("ppocr/en_number_mobile_v2.0_rec_infer.onnx", "ppocr/en_dict.txt")
    image = Image.new("RGB", (260, 48), "white")
    ImageDraw.Draw(image).text((8, 8), "HELLO 2026", fill="black", font=ImageFont.load_default(28))
    image.save(tmp_path / "line.png")
    load("read_line").main(model, str(tmp_path / "line.png"), characters)
    assert re.match(r"HELLO ?2026\n", capsys.readouterr().out)


@pytest.mark.slow
def test_speech_is_heard(capsys):
    model, sound = files("silero-vad/silero_vad_16k_op15.onnx", "silero-vad/test.wav")
    load("hear_speech").main(model, sound)
    spans = [tuple(map(float, re.findall(r"[\d.]+", row))) for row in capsys.readouterr().out.splitlines()]
    assert spans[0] == (0.03, 2.02)
    assert all(start < end for start, end in spans)
