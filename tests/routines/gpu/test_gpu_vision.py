"""Sorting and vision on devices, index for index as on the CPU: plain C under sanitizers, OpenCL on PoCL."""

import functools
import itertools
import math

import numpy as np
import pytest

from tests.routines.gpu.programs import ON, Program, programs
from tests.routines.gpu.vision_models import on_cpu, with_equal_overlaps, with_ties

make = functools.cache(Program)


def on_both(cases, few):
    """Cases on every way to run them; plain C is slow to compile and runs a few."""
    return [(on, case) for on in ON for case in cases[: few if on == "c" else None]]


def counted(name, operands, dims, on, **choice):
    """Run a counting program: first for the count, then for outputs of the `dims(count)` that it means."""
    (count,), _ = make(name, **choice, counts=1).run(operands, [((1,), "i4")], on=on)
    dtype = operands[0].dtype if name == "compress" else "i8"
    return make(name, **choice, counts=0).run(operands, [(dims(count[0]), dtype)], on=on)[0][0]


@pytest.mark.parametrize("on", ON)
@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize(
    ("shape", "k", "small"),
    [
        ((1, 1, 1), 1, 1),
        ((3, 5, 2), 3, 1),
        ((2, 700, 1), 20, 1),
        ((1, 3000, 1), 3000, 0),
        ((2, 1029, 3), 600, 0),
        ((1, 3000, 1), 1, 1),
        ((40, 17, 1), 17, 0),
        ((2, 0, 3), 0, 0),
        ((0, 4, 3), 2, 0),
        ((2, 4, 3), 0, 1),
    ],
    ids=str,
)
def test_top_k_ties_and_what_is_no_number_as_on_the_cpu(on, shape, k, largest, small):
    x = with_ties(np.random.default_rng(k), shape)
    program = make("top_k", dtype="float32", axis=1, largest=largest, **({"block": 8, "each": 4} if small else {}))
    dims = (shape[0], k, shape[2])
    (values, indices), _ = program.run([x], [(dims, "f4"), (dims, "i8")], on=on)
    right = on_cpu("TopK", [x], constants=[np.array([k])], outputs=2, axis=1, largest=largest)
    np.testing.assert_array_equal(indices, right[1])
    np.testing.assert_array_equal(values, right[0])


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "int16"])
def test_top_k_of_integers(dtype):
    rng = np.random.default_rng(1)
    info = np.iinfo(dtype)
    x = rng.choice(np.array([info.min, info.max, 0, 1, 2, info.max - 1], dtype), (4, 900))
    for largest in (0, 1):
        program = make("top_k", dtype=dtype, axis=1, largest=largest, values=0)
        (indices,), _ = program.run([x], [((4, 300), "i8")], on="opencl")
        right = on_cpu("TopK", [x], constants=[np.array([300])], outputs=2, axis=1, largest=largest)
        np.testing.assert_array_equal(indices, right[1])


@pytest.mark.parametrize("on", ON)
@pytest.mark.parametrize("falling", [0, 1])
@pytest.mark.parametrize(("n", "segments"), [(1, 1), (1000, 30), (2500, 1), (20, 200), (0, 3)])
def test_argsort_of_segments_of_any_length(on, n, segments, falling):
    rng = np.random.default_rng(n)
    offsets = np.sort(rng.integers(0, n + 1, segments + 1)).astype("i4")
    offsets[0], offsets[-1] = 0, n
    x = with_ties(rng, n)
    (order,), _ = make("segmented_argsort", falling=falling, block=64, each=4).run([x, offsets], [((n,), "i4")], on=on)
    wanted = []
    for begin, end in itertools.pairwise(offsets):
        if begin < end:
            k = np.array([end - begin])
            wanted.append(begin + on_cpu("TopK", [x[begin:end]], constants=[k], outputs=2, largest=falling)[1])
        if len(wanted) == 5:  # the rest is alike
            break
    done = sum(map(len, wanted))
    np.testing.assert_array_equal(order[:done], np.concatenate([*wanted, np.zeros(0, int)]))
    np.testing.assert_array_equal(np.sort(order), np.arange(n))


SUMS = [("float32", 1, 1, 1), ("int64", 1, 0, 0), ("int32", 0, 1, 0), ("int32", 2, 0, 1)]


@pytest.mark.parametrize(("on", "case"), on_both(SUMS, 2), ids=str)
def test_cum_sum(on, case):
    dtype, axis, exclusive, reverse = case
    rng = np.random.default_rng(axis)
    program = make("cum_sum", dtype=dtype, axis=axis, exclusive=exclusive, reverse=reverse)
    for shape in ((2, 3, 4), (3, 3000, 2), (1, 1, 1), (40, 1, 50), (1, 5000, 1), (2, 0, 3)):
        x = rng.integers(-9, 9, shape).astype(dtype)
        (y,), _ = program.run([x], [(shape, dtype)], on=on)
        (right,) = on_cpu("CumSum", [x], constants=[np.array(axis)], exclusive=exclusive, reverse=reverse)
        np.testing.assert_array_equal(y, right)


@pytest.mark.parametrize(("on", "shape"), on_both([(30, 100), (0, 2), (7,), ()], 2), ids=str)
def test_non_zero_packs_what_it_finds(on, shape):
    rng = np.random.default_rng(2)
    for share in (0, 0.3, 1):
        x = np.where(rng.random(shape) < share, rng.standard_normal(shape), 0).astype("f4")
        if x.size > 3:
            x.reshape(-1)[:2] = [np.nan, -0.0]
        y = counted("non_zero", [x], lambda n: (len(shape), n), on, dtype="float32", rank=len(shape))
        np.testing.assert_array_equal(y, on_cpu("NonZero", [x])[0])


@pytest.mark.parametrize(("on", "axis"), on_both([1, 0, -1], 1))
def test_compress_packs_what_it_keeps(on, axis):
    rng = np.random.default_rng(3)
    x = rng.standard_normal((50, 60)).astype("f4")
    size = x.size if axis < 0 else x.shape[axis]
    for length in (size, size - 3, 0):
        condition = rng.random(length) < 0.4
        right = np.compress(condition, x, axis=None if axis < 0 else axis)
        shape = {0: lambda n: (n, 60), 1: lambda n: (50, n), -1: lambda n: (n,)}[axis]
        y = counted("compress", [x, condition.astype("u1")], shape, on, dtype="float32", axis=axis)
        np.testing.assert_array_equal(y, right)


NMS = [  # images, classes, n, limit, grid, iou, score, centered
    (2, 3, 50, 10, 30, 0.5, 0.3, 0),
    (1, 2, 700, 700, 60, 0.25, None, 1),
    (3, 2, 300, 7, 40, 0.0, 0.1, 0),
    (2, 0, 9, 3, 9, 0.5, 0.3, 0),
    (1, 2, 9, 0, 9, 0.5, 0.3, 0),
    (1, 1, 400, 400, 20, -0.1, None, 0),
    (1, 1, 2000, 200, 200, 1 / 3, 0.2, 1),
    (1, 2, 40, 40, 9, 1.0, None, 0),
    (1, 1, 1, 5, 5, 0.5, None, 0),
]


@pytest.mark.parametrize(("on", "case"), on_both(NMS, 5), ids=str)
def test_non_max_suppression_selects_what_the_cpu_selects(on, case):
    images, classes, n, limit, grid, iou, score, centered = case
    rng = np.random.default_rng(n)
    boxes = with_equal_overlaps(rng, images, n, grid)
    scores = with_ties(rng, (images, classes, n))
    constants = [np.array([limit]), np.array([iou], "f4")] + ([] if score is None else [np.array([score], "f4")])
    (right,) = on_cpu("NonMaxSuppression", [boxes, scores], constants=constants, center_point_box=centered)
    choice = {"limit": limit, "iou_threshold": repr(float(np.float32(iou))), "centered": centered}
    if score is not None:
        choice["score_threshold"] = repr(float(np.float32(score)))
    small = {"block": 128, "each": 8, "chunk": 128}
    rows = counted("non_max_suppression", [boxes, scores], lambda n: (n, 3), on, **choice, **small)
    np.testing.assert_array_equal(rows, right)


@pytest.mark.parametrize("on", ON)
def test_roi_align(on):
    rng = np.random.default_rng(4)
    x = rng.standard_normal((2, 3, 17, 19)).astype("f4")
    regions = rng.integers(-16, 300, (9, 4)).astype("f4") / 2
    regions[:, 2:] = regions[:, :2] + rng.integers(0, 200, (9, 2)) / 2
    regions[0] = 0, 0, 70, 70  # 7 cells of a size a little above 1 where the scale is 0.1
    images = rng.integers(0, 2, 9)
    for largest, half_pixel, sampling, scale in ((0, 1, 0, 0.125), (1, 0, 2, 0.1), (0, 0, 0, 0.1), (1, 1, 0, 0.125)):
        scale = float(np.float32(scale))
        program = make("roi_align", max=largest, half_pixel=half_pixel, sampling=sampling, scale=repr(scale))
        (y,), _ = program.run([x, regions, images], [((9, 3, 7, 5), "f4")], on=on)
        (right,) = on_cpu(
            "RoiAlign",
            [x, regions, images],
            mode="max" if largest else "avg",
            coordinate_transformation_mode="half_pixel" if half_pixel else "output_half_pixel",
            sampling_ratio=sampling,
            spatial_scale=scale,
            output_height=7,
            output_width=5,
        )
        np.testing.assert_allclose(y, right, atol=2e-4)


@pytest.mark.parametrize("on", ON)
def test_multibox_prior(on):
    features = np.zeros((1, 3, 5, 7), "f4")
    for clip in (0, 1):
        (right,) = on_cpu(
            "MultiboxPrior", [features], domain="neo", sizes=[0.25, 0.5], ratios=[1.0, 2.0, 0.5], clip=clip
        )
        (y,), _ = make("multibox_prior", clip=clip).run([features], [(right.shape, "f4")], on=on)
        np.testing.assert_allclose(y, right, atol=1e-6)


DETECTIONS = [(1, -1, 1, 0), (0, 20, 0, 0), (1, 0, 1, -1), (1, 7, 0, 1)]  # by class, at most, clip, background


@pytest.mark.parametrize(("on", "n"), on_both([50, 400, 1], 1))
def test_multibox_detection(on, n):
    rng = np.random.default_rng(n)
    for by_class, most, clip, background in DETECTIONS[: 2 if on == "c" else None]:
        scores, offsets = rng.random((2, 4, n)).astype("f4"), rng.standard_normal((2, 4 * n)).astype("f4") / 2
        anchors = rng.random((1, n, 4)).astype("f4") * 0.8
        anchors[..., 2:] = anchors[..., :2] + 0.05 + 0.2 * rng.random((1, n, 2))
        common = {"clip": clip, "background_id": background, "nms_topk": most, "force_suppress": 1 - by_class}
        inputs = [scores, offsets, anchors]
        (right,) = on_cpu("MultiboxDetection", inputs, domain="neo", threshold=0.3, **common)
        program = make(
            "multibox_detection",
            threshold="0.3",
            background=background,
            top_k=most,
            by_class=by_class,
            clip=clip,
            block=64,
            each=4,
            chunk=64,
        )
        (y,), _ = program.run(inputs, [(right.shape, "f4")], on=on)
        np.testing.assert_allclose(y, right, atol=1e-5)


@pytest.mark.parametrize(("on", "n"), on_both([50, 400, 1], 1))
def test_box_nms_keeps_the_rows_that_the_cpu_keeps(on, n):
    rng = np.random.default_rng(n)
    for by_class, most, centered, background in DETECTIONS[: 2 if on == "c" else None]:
        rows = rng.random((2, n, 6)).astype("f4")
        rows[..., 0], rows[..., 1] = rng.integers(-1, 3, (2, n)), rng.integers(0, 9, (2, n)) / 8
        rows[..., 4:] = rows[..., 2:4] + 0.05 + 0.1 * rng.random((2, n, 2))
        (right,) = on_cpu(
            "BoxNms",
            [rows],
            domain="neo",
            overlap_thresh=0.3,
            valid_thresh=0.2,
            topk=most,
            id_index=0,
            background_id=background,
            force_suppress=1 - by_class,
            in_format="center" if centered else "corner",
        )
        program = make(
            "box_nms",
            overlap_threshold="0.3",
            valid_threshold="0.2",
            top_k=most,
            id=0,
            background=str(background),
            by_class=by_class,
            centered=centered,
            block=64,
            each=4,
            chunk=64,
        )
        (y,), _ = program.run([rows], [(rows.shape, "f4")], on=on)
        np.testing.assert_array_equal(y, right)


MILLION = 1_000_000


def test_a_million_elements_are_sorted_as_on_the_cpu():
    x = with_ties(np.random.default_rng(5), (1, MILLION))
    (indices,), _ = make("top_k", dtype="float32", axis=1, values=0).run([x], [((1, MILLION), "i8")], on="opencl")
    right = on_cpu("TopK", [x], constants=[np.array([MILLION])], outputs=2)[1]
    np.testing.assert_array_equal(indices, right)


def test_a_million_elements_are_summed_and_found_as_on_the_cpu():
    x = np.random.default_rng(6).integers(-3, 4, MILLION)
    (sums,), _ = make("cum_sum", dtype="int64", axis=0).run([x], [((MILLION,), "i8")], on="opencl")
    np.testing.assert_array_equal(sums, np.cumsum(x))
    y = counted("non_zero", [x], lambda n: (1, n), "opencl", dtype="int64", rank=1)
    np.testing.assert_array_equal(y[0], np.flatnonzero(x))


def test_a_million_boxes_are_suppressed_as_on_the_cpu():
    rng = np.random.default_rng(7)
    corner = rng.integers(0, 1600, (1, MILLION, 2)).astype("f4") / 8
    boxes = np.concatenate([corner, corner + rng.integers(80, 100, (1, MILLION, 2)) / 8], axis=2).astype("f4")
    scores = rng.integers(0, 1000, (1, 1, MILLION)).astype("f4")
    constants = [np.array([1000]), np.array([0.125], "f4")]
    (right,) = on_cpu("NonMaxSuppression", [boxes, scores], constants=constants)
    assert 100 < len(right) <= 1000
    choice = {"limit": 1000, "iou_threshold": "0.125"}
    rows = counted("non_max_suppression", [boxes, scores], lambda n: (n, 3), "opencl", **choice)
    np.testing.assert_array_equal(rows, right)


def launched(program, shapes):
    """The kernels of a program's launches, and the sizes of each."""
    _, launches = program.native.launches([list(s) for s in shapes])
    names = program.native.names()
    return [(names[k], [a[1] for a in arguments if len(a) == 2]) for k, arguments in launches]


@pytest.mark.parametrize("n", [1000, 10_000, 100_000, MILLION])
def test_a_scan_is_three_launches_over_its_elements(n):
    launches = launched(make("cum_sum", dtype="int64", axis=0), [(n,), (n,)])
    assert len(launches) == (3 if n > 1024 else 1)
    assert sum(sizes[0] for name, sizes in launches if "totals" not in name) <= 2 * n
    assert all(sizes[0] == -(-n // 1024) for name, sizes in launches if "totals" in name)


@pytest.mark.parametrize("n", [1000, 10_000, 100_000, MILLION])
def test_a_sort_merges_all_elements_once_for_each_doubling(n):
    launches = launched(make("top_k", dtype="float32", axis=1, values=0), [(1, n), (1, n)])
    merges = [sizes for name, sizes in launches if name.startswith("sort_merge")]
    assert len(merges) == max(0, math.ceil(math.log2(n / 512)))
    for _n, _length, run, _keep, parts, pairs, threads, halvings in merges:
        assert threads == parts * pairs  # each merges 16 elements, after a search of that many steps
        assert threads * 16 <= n + 2 * run + 16 * pairs
        assert halvings <= math.log2(n) + 2


def test_a_sort_for_the_first_few_merges_only_those():
    launches = launched(make("top_k", dtype="float32", axis=1, values=0), [(1, MILLION), (1, 10)])
    assert sum(sizes[6] * 16 for name, sizes in launches if name.startswith("sort_merge")) < MILLION / 10


@pytest.mark.parametrize("n", [1000, 10_000, 100_000, MILLION])
def test_suppression_looks_at_every_box_once_for_each_that_is_kept(n):
    program = make("non_max_suppression", limit=1000, iou_threshold="0.125", counts=1)
    launches = launched(program, [(1, n, 4), (1, 1, n), (1,)])
    chunks = math.ceil(n / 2048)
    for kernel, number in (("nms_check", chunks - 1), ("nms_resolve", chunks)):
        sizes = [s for name, s in launches if name.startswith(kernel)]
        assert len(sizes) == number
        assert len({s[6] for s in sizes}) == number  # each chunk has a start of its own
        assert all(s[5] <= 2048 for s in sizes)


@pytest.mark.nvcc
@pytest.mark.parametrize("capability", [87, 90])
def test_kernels_compile_for_edge_and_data_centre(capability):
    chosen = [
        make("top_k", dtype="float32", axis=1),
        make("segmented_argsort"),
        make("cum_sum", dtype="float32", axis=1, exclusive=1, reverse=1),
        make("non_zero", dtype="float32", rank=2, counts=1),
        make("compress", dtype="float32", axis=0, counts=1),
        make("non_max_suppression", limit=10, iou_threshold="0.5", counts=1),
        make("roi_align"),
        make("box_nms", by_class=1, id=0),
        make("multibox_prior"),
        make("multibox_detection"),
    ]
    done = set()
    for program in chosen:
        for i, name in enumerate(program.native.names()):
            if name not in done:
                assert programs.compile_cuda(program.native.print(i, "cuda"), capability)
            done.add(name)
    assert len(done) > 20
