"""Movement by strided copies, fills and transposed planes against the references."""

import itertools

import ml_dtypes
import numpy as np
import pytest
from neo import _native
from neo.errors import ShapeError

from tests.routines.pinning import TIERS, compile_pinned, pick, rejections

COPY = "cpu/copy"
DEPTH_TO_SPACE = "cpu/depth_to_space_nchwc"
GATHER = "cpu/gather"
PAD = "cpu/pad"
MODES = ["constant", "reflect", "edge", "wrap"]
CASES = 12
POOL = {"kernel_shape": [2, 2]}
DTYPES = [np.float32, np.int32, np.int64, np.uint8, np.float16, np.bool_, np.complex128]
SIZES = [1, 2, 3, 5, 8, 16, 17, 31, 33]

by_tier = pytest.mark.parametrize("tier", TIERS)


def elements(random, dtype, dims):
    """Every bit pattern a dtype may have; copies keep NaN payloads."""
    if dtype is np.bool_:
        return random.integers(0, 2, dims).astype(np.bool_)
    size = int(np.prod(dims)) * np.dtype(dtype).itemsize
    return np.frombuffer(random.bytes(size), dtype).reshape(dims)


class Move:
    """A graph of one node "move" over one input."""

    def __init__(self, op, x, operands=(), attrs=None, outputs=("y",), symbols=False):
        self.graph = _native.Graph()
        self.x = x
        dims = [f"d{i}" for i in range(x.ndim)] if symbols else list(x.shape)
        values = [self.graph.add_input("x", x.dtype.name, dims)]
        for i, operand in enumerate(operands):
            values.append(None if operand is None else self.graph.add_constant(f"k{i}", operand))
        node = self.graph.add_node(op, values, list(outputs), attrs or {}, "move")
        self.graph.outputs = node.outputs

    def check(self, tier, routine=COPY):
        pinned = compile_pinned(self.graph, tier, {"move": routine})
        assert pinned.routines["move"] == routine
        expected = self.graph.evaluate([self.x])
        for threads in (1, 2, 5):
            actual = pinned.module.with_threads(threads).call([self.x])
            for a, e in zip(actual, expected, strict=True):
                assert a.dtype == e.dtype
                assert a.shape == e.shape, str(self.graph)
                assert a.tobytes() == e.tobytes(), str(self.graph)


@by_tier
def test_transpose(tier):
    random = np.random.default_rng(1)
    for rank in (2, 3, 4):
        for permutation in itertools.permutations(range(rank)):
            dims = [pick(random, SIZES) for _ in range(rank)]
            x = elements(random, pick(random, [np.float32, np.float32, *DTYPES]), dims)
            Move("Transpose", x, attrs={"perm": list(permutation)}, symbols=bool(random.integers(2))).check(tier)


@by_tier
@pytest.mark.parametrize("dims", [[130, 259], [3, 65, 129], [2, 33, 7, 19]])
def test_transpose_large_enough_for_a_team(dims, tier):
    x = elements(np.random.default_rng(2), np.float32, dims)
    Move("Transpose", x, attrs={"perm": [*range(len(dims) - 2), len(dims) - 1, len(dims) - 2]}).check(tier)
    Move("Transpose", x, attrs={"perm": list(reversed(range(len(dims))))}).check(tier)


@by_tier
@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32, np.int64, np.complex128])
def test_transposes_planes_of_every_width(dtype, tier):
    """Blocks that are whole, that overlap the one before, and planes too small for a block."""
    for seed in range(3 * CASES):
        random = np.random.default_rng(seed)
        rows, columns = (pick(random, [1, 2, 3, 4, 5, 15, 16, 17, 33, 40, 63, 64, 66, 130]) for _ in range(2))
        x = elements(random, dtype, [pick(random, [1, 3]), rows, columns])
        Move("Transpose", x, attrs={"perm": [0, 2, 1]}).check(tier)
        Move("Transpose", x, attrs={"perm": [2, 1, 0]}).check(tier)


@by_tier
@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32, np.int64])
def test_images_of_a_few_channels(dtype, tier):
    """Interleaved to planes and back, with fewer pixels than a vector has and with a last vector that overlaps."""
    for seed, channels in enumerate((2, 3, 4, 5)):
        random = np.random.default_rng(seed)
        for height, width in ((1, 15), (3, 5), (8, 8), (5, 13), (9, 15), (31, 33)):
            x = elements(random, dtype, [2, height, width, channels])
            Move("Transpose", x, attrs={"perm": [0, 3, 1, 2]}, symbols=seed % 2 == 0).check(tier)
            x = elements(random, dtype, [2, channels, height, width])
            Move("Transpose", x, attrs={"perm": [0, 2, 3, 1]}, symbols=seed % 2 == 0).check(tier)
        wide = elements(random, dtype, [1, 8, 4 * channels, 17])
        Move("DepthToSpace", wide[:, :8], attrs={"blocksize": 2}).check(tier)


@by_tier
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "uint8"])
def test_channel_blocks_of_narrow_elements(dtype, tier):
    """A pool gives blocks; what is cast in them leaves them as elements of 2 bytes or of one."""
    for channels, height, width in ((16, 5, 9), (17, 1, 1), (40, 13, 14), (3, 40, 7)):
        graph = _native.Graph()
        x = graph.add_input("x", "float32", [2, channels, height, width])
        value = graph.add_node("MaxPool", [x], ["p"], {"kernel_shape": [1, 1]}, "pool").outputs[0]
        if dtype == "uint8":
            operands = [graph.add_constant("s", np.float32(0.25)), graph.add_constant("z", np.uint8(7))]
            graph.outputs = graph.add_node("QuantizeLinear", [value, *operands], ["y"], {}, "cast").outputs
        else:
            graph.outputs = graph.add_node("Cast", [value], ["y"], {"to": dtype}, "cast").outputs
        pins = {"pool": "cpu:float32/pool_nchwc", "cast": "cpu:float32/eltwise"}
        data = np.random.default_rng(channels).uniform(-9, 9, (2, channels, height, width)).astype(np.float32)
        pinned = compile_pinned(graph, tier, pins)
        for threads in (1, 5):
            assert pinned(data, threads=threads).tobytes() == graph.evaluate([data])[0].tobytes()


@by_tier
@pytest.mark.parametrize("channels", [1, 5, 16, 17, 21, 48, 50])
@pytest.mark.parametrize("permutation", [[0, 2, 3, 1], [3, 0, 2, 1]])
def test_channel_blocks_become_the_last_axis(permutation, channels, tier):
    random = np.random.default_rng(channels)
    x = random.standard_normal([2, channels, 7, 33]).astype(np.float32)
    graph = _native.Graph()
    pooled = graph.add_node("MaxPool", [graph.add_input("x", "float32", list(x.shape))], ["p"], POOL, "pool").outputs
    graph.outputs = graph.add_node("Transpose", pooled, ["y"], {"perm": permutation}, "move").outputs
    pinned = compile_pinned(graph, tier, {"pool": "cpu:float32/pool_nchwc", "move": COPY})
    # The pool's input becomes blocks; with wide vectors nothing comes between it and the transpose of few channels.
    adapts = sum(step["op"] == "neo.Adapt" for step in pinned.module.steps)
    assert adapts == 1 or (adapts == 2 and (channels > 21 or not tier.startswith("avx512")))
    for threads in (1, 2, 5):
        actual = pinned.module.with_threads(threads).call([x])[0]
        np.testing.assert_array_equal(actual, graph.evaluate([x])[0])


@by_tier
@pytest.mark.parametrize("op", ["DepthToSpace", "SpaceToDepth"])
def test_space_and_depth(op, tier):
    for seed in range(CASES):
        random = np.random.default_rng(seed)
        block = int(random.integers(1, 5))
        dims = [
            int(random.integers(0, 3)),
            int(random.integers(1, 6)),
            int(random.integers(1, 9)),
            int(random.integers(1, 9)),
        ]
        if op == "DepthToSpace":
            dims[1] *= block * block
        else:
            dims[2:] = [d * block for d in dims[2:]]
        attrs = {"blocksize": block}
        if op == "DepthToSpace":
            attrs["mode"] = pick(random, ["DCR", "CRD"])
        Move(op, elements(random, pick(random, DTYPES), dims), attrs=attrs).check(tier)


@by_tier
@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32, np.int64])
def test_space_and_depth_of_whole_images(dtype, tier):
    for block, height, width in ((2, 20, 33), (3, 7, 40), (4, 17, 16), (5, 1, 70)):
        random = np.random.default_rng(width)
        wide, deep = [2, 3, height * block, width * block], [2, 3 * block * block, height, width]
        Move("SpaceToDepth", elements(random, dtype, wide), attrs={"blocksize": block}).check(tier)
        for mode in ("DCR", "CRD"):
            attrs = {"blocksize": block, "mode": mode}
            Move("DepthToSpace", elements(random, dtype, deep), attrs=attrs).check(tier)


@by_tier
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.float32, np.float16, np.float64])
def test_channel_blocks_become_pixels(dtype, tier):
    """Also where a block of channels has parts of several phases, and where a Slice takes edges off."""
    random = np.random.default_rng(11)
    for channels, block, rows, columns in [(16, 2, 5, 7), (24, 2, 3, 4), (5, 3, 2, 3), (40, 2, 1, 1), (48, 4, 70, 31)]:
        x = elements(random, dtype, [2, channels * block**2, rows, columns])
        for starts, ends in [(None, None), ([1, 0], [block * rows, block * columns]), ([0, 1], [-1, 1 << 40])]:
            graph = _native.Graph()
            y = graph.add_input("x", x.dtype.name, list(x.shape))
            y = graph.add_node("DepthToSpace", [y], ["d"], {"blocksize": block}, "deep").outputs[0]
            if starts is not None:
                operands = [graph.add_constant("c", np.array(n)) for n in (starts, ends, [2, 3])]
                y = graph.add_node("Slice", [y, *operands], ["s"], {}, "part").outputs[0]
            graph.outputs = [y]
            graph.infer()
            node = "deep" if starts is None else "part"
            pinned = compile_pinned(graph, tier, {node: DEPTH_TO_SPACE})
            assert pinned.routines[node] == DEPTH_TO_SPACE
            for threads in (1, 3):
                result = pinned(x, threads=threads)
                assert result.tobytes() == graph.evaluate([x])[0].tobytes()


@pytest.mark.parametrize(
    ("attrs", "operands", "reason"),
    [
        ({"mode": "CRD"}, None, "neighbouring channels part"),
        ({}, [[0], [9], [1]], "the Slice takes more than an edge off"),
        ({}, [[0], [9], [2], [2]], "the Slice takes more than an edge off"),
    ],
)
def test_says_why_channel_blocks_do_not_become_pixels(attrs, operands, reason):
    graph = _native.Graph()
    y = graph.add_input("x", "uint8", [1, 64, 4, 5])
    y = graph.add_node("DepthToSpace", [y], ["d"], {"blocksize": 2, **attrs}, "n").outputs[0]
    if operands is not None:
        constants = [graph.add_constant("c", np.array(n)) for n in operands]
        y = graph.add_node("Slice", [y, *constants], ["s"], {}, "part").outputs[0]
    graph.outputs = [y]
    graph.infer()
    assert rejections(graph, "scalar", graph.nodes[-1].name)[DEPTH_TO_SPACE] == reason


@by_tier
def test_tile(tier):
    for seed in range(CASES):
        random = np.random.default_rng(seed)
        rank = int(random.integers(1, 5))
        dims = [pick(random, SIZES[:6]) for _ in range(rank)]
        repeats = random.integers(0 if seed == 0 else 1, 4, rank).astype(np.int64)
        Move("Tile", elements(random, pick(random, DTYPES), dims), [repeats], symbols=bool(random.integers(2))).check(
            tier
        )


@by_tier
@pytest.mark.parametrize("mode", MODES)
def test_pad(mode, tier):
    for seed in range(2 * CASES):
        random = np.random.default_rng(seed)
        rank = int(random.integers(1, 5))
        dims = [int(random.integers(3, 20)) for _ in range(rank)]
        pads = random.integers(-1, 4, 2 * rank).astype(np.int64)
        dtype = pick(random, DTYPES)
        operands = [pads]
        if seed % 2:
            operands.append(elements(random, dtype, []))
        if seed % 3 == 0:
            axes = random.permutation(rank)[: int(random.integers(1, rank + 1))].astype(np.int64)
            operands = [pads[: 2 * len(axes)], operands[1] if len(operands) > 1 else None, axes - rank * (seed % 2)]
        move = Move("Pad", elements(random, dtype, dims), operands, {"mode": mode}, symbols=bool(random.integers(2)))
        move.check(tier, PAD)


@by_tier
@pytest.mark.parametrize("mode", MODES)
def test_pads_of_more_than_the_axis_has(mode, tier):
    random = np.random.default_rng(4)
    for dims in ([1, 1], [2, 3], [4, 1, 5]):
        for pads in (7, 11):
            pads = np.full(2 * len(dims), pads, np.int64)
            Move("Pad", elements(random, np.float32, dims), [pads], {"mode": mode}, symbols=True).check(tier, PAD)


@by_tier
@pytest.mark.parametrize("mode", MODES)
def test_pads_large_enough_for_a_team(mode, tier):
    random = np.random.default_rng(5)
    for dims, pads in (([3, 8, 160, 161], [0, 0, 1, 1, 0, 0, 2, 0]), ([2, 500, 301], [0, 3, 0, 0, 4, 0])):
        Move("Pad", elements(random, np.float32, dims), [np.array(pads, np.int64)], {"mode": mode}).check(tier, PAD)


@by_tier
@pytest.mark.parametrize("mode", MODES)
def test_pads_of_several_axes(mode, tier):
    """Axes outside the last two, and rows of which a border alone is longer than a vector."""
    for seed, dtype in enumerate([np.uint8, np.float16, np.float32, np.int64, np.complex128, np.bool_]):
        random = np.random.default_rng(seed)
        x = elements(random, dtype, [3, 5, 7, 40])
        for pads in ([1, 0, 2, 19, 1, 2, 0, 33], [0, 1, 1, 3, 2, 0, 4, 0], [2, 3, 0, 0, 0, -1, 0, 0]):
            Move("Pad", x, [np.array(pads), elements(random, dtype, [])], {"mode": mode}).check(tier, PAD)


@by_tier
def test_pad_nothing_and_everything(tier):
    x = elements(np.random.default_rng(3), np.float32, [4, 6])
    for mode in MODES:
        Move("Pad", x, [np.zeros(4, np.int64)], {"mode": mode}).check(tier, PAD)
        Move("Pad", np.zeros((0, 6), np.float32), [np.array([0, 1, 0, 2], np.int64)], {"mode": mode}).check(tier, PAD)
    Move("Pad", x, [np.array([-4, 0, 2, 0], np.int64)]).check(tier, PAD)
    Move("Pad", np.zeros((0, 6), np.float32), [np.array([1, 0, 2, 0], np.int64)]).check(tier, PAD)
    Move("Pad", np.float32(3).reshape(()), [np.zeros(0, np.int64)]).check(tier, PAD)


def run_time_pad(op, x, operands, attrs):
    graph = _native.Graph()
    values = [graph.add_input("x", x.dtype.name, [f"d{i}" for i in range(x.ndim)])]
    for i, operand in enumerate(operands):
        given = operand is not None
        values.append(graph.add_input(f"k{i}", operand.dtype.name, list(operand.shape)) if given else None)
    graph.outputs = graph.add_node(op, values, ["y"], attrs, "move").outputs
    return graph


@by_tier
@pytest.mark.parametrize("mode", MODES)
def test_pads_that_only_a_call_tells(mode, tier):
    for seed in range(3 * CASES):
        random = np.random.default_rng(seed)
        rank = int(random.integers(1, 6))
        dtype = pick(random, DTYPES)
        x = elements(random, dtype, [int(n) for n in random.integers(3, 12, rank)])
        axes = random.permutation(rank)[: int(random.integers(1, rank + 1))]
        pads = random.integers(-1, 9, 2 * len(axes))
        operands = [pads, elements(random, dtype, []) if seed % 2 else None, axes - rank * (seed % 3 == 0)]
        if seed % 4 == 0:
            operands = [random.integers(-1, 9, 2 * rank)]
        graph = run_time_pad("Pad", x, operands, {"mode": mode})
        pinned = compile_pinned(graph, tier, {"move": PAD})
        given = [o for o in operands if o is not None]
        for inputs in ([x, *given], [x[::-1].copy(), np.abs(given[0]), *given[1:]], [x, *given]):
            for threads in (1, 3):
                assert pinned(*inputs, threads=threads).tobytes() == graph.evaluate(inputs)[0].tobytes()


@by_tier
def test_pads_that_follow_from_sizes(tier):
    """Sizes that are known when they are bound, of which the pads are formulas."""
    graph = _native.Graph()
    x = graph.add_input("x", "float32", ["n", "w"])
    (shape,) = graph.add_node("Shape", [x], ["s"], {}, "shape").outputs
    pads = graph.add_node("Concat", [shape, shape], ["p"], {"axis": 0}, "pads").outputs
    graph.outputs = graph.add_node("Pad", [x, *pads], ["y"], {"mode": "wrap"}, "move").outputs
    pinned = compile_pinned(graph, tier, {"move": PAD})
    for dims in ([2, 3], [1, 5], [4, 1], [0, 0]):
        data = np.arange(dims[0] * dims[1], dtype=np.float32).reshape(dims)
        np.testing.assert_array_equal(pinned(data), graph.evaluate([data])[0])


def test_run_time_pads_that_do_not_fit():
    x = np.zeros((2, 3), np.float32)
    pads = np.array([0, 0, 0, 0])
    graph = run_time_pad("Pad", x, [pads], {"mode": "edge"})
    pinned = compile_pinned(graph, TIERS[0], {"move": PAD})
    assert pinned(x[:0], pads).shape == (0, 3)
    with pytest.raises(ShapeError, match="an empty axis can only be padded with a constant"):
        pinned(x[:0], np.array([1, 0, 0, 0]))
    with pytest.raises(ShapeError, match="negative pads must not remove more than the axis has"):
        pinned(x, np.array([-1, 0, -2, 0]))


@by_tier
def test_center_crop_pad(tier):
    for seed in range(2 * CASES):
        random = np.random.default_rng(seed)
        rank = int(random.integers(1, 5))
        x = elements(random, pick(random, DTYPES), [int(n) for n in random.integers(0 if seed == 0 else 1, 12, rank)])
        axes = [int(a) for a in random.permutation(rank)[: int(random.integers(1, rank + 1))]]
        target = random.integers(0, 15, len(axes))
        graph = run_time_pad("CenterCropPad", x, [target], {"axes": axes})
        pinned = compile_pinned(graph, tier, {"move": PAD})
        for inputs in ([x, target], [x, target + 1]):
            assert pinned(*inputs).tobytes() == graph.evaluate(inputs)[0].tobytes()


def test_pad_of_an_empty_axis_needs_a_constant():
    move = Move("Pad", np.zeros((2, 3), np.float32), [np.array([1, 0, 0, 0], np.int64)], {"mode": "edge"}, symbols=True)
    pinned = compile_pinned(move.graph, TIERS[0], {"move": PAD})
    with pytest.raises(ShapeError, match="an empty axis can only be padded with a constant"):
        pinned(np.zeros((0, 3), np.float32))


@by_tier
def test_gather(tier):
    for seed in range(2 * CASES):
        random = np.random.default_rng(seed)
        rank = int(random.integers(1, 5))
        dims = [pick(random, SIZES) for _ in range(rank)]
        axis = int(random.integers(-rank, rank))
        size = dims[axis]
        shape = [int(n) for n in random.integers(0 if seed == 0 else 1, 5, int(random.integers(0, 3)))]
        indices = random.integers(-size, size, shape).astype(pick(random, [np.int32, np.int64]))
        Move("Gather", elements(random, pick(random, DTYPES), dims), [indices], {"axis": axis}).check(tier, GATHER)


@by_tier
def test_constant_of_shape(tier):
    for value in (np.array([2.5], np.float32), np.array([-3], np.int64), np.array([1.5], ml_dtypes.bfloat16)):
        graph = _native.Graph()
        x = graph.add_input("x", "float32", ["n", 3])
        shape = graph.add_node("Shape", [x], ["s"], {}, "shape").outputs[0]
        graph.outputs = graph.add_node("ConstantOfShape", [shape], ["y"], {"value": value}, "move").outputs
        pinned = compile_pinned(graph, tier, {"move": COPY})
        assert pinned.routines["move"] == COPY
        for n in (0, 1, 40000):
            data = np.zeros((n, 3), np.float32)
            np.testing.assert_array_equal(pinned(data), graph.evaluate([data])[0])


@by_tier
@pytest.mark.parametrize("start", [-1, 0, 7])
def test_slices_an_empty_axis_backwards(tier, start):
    x = np.zeros((3, 0), np.float32)
    bounds = [np.array([bound], np.int64) for bound in (start, -9, 1, -1)]
    Move("Slice", x, bounds).check(tier)


@by_tier
def test_concat_split_slice_and_expand(tier):
    for seed in range(CASES):
        random = np.random.default_rng(seed)
        rank = int(random.integers(2, 5))
        dims = [pick(random, SIZES[1:]) for _ in range(rank)]
        axis = int(random.integers(rank))
        x = elements(random, pick(random, DTYPES), dims)
        first = int(random.integers(0, dims[axis] + 1))
        parts = np.array([first, dims[axis] - first], np.int64)
        Move("Split", x, [parts], {"axis": axis}, ("a", "b")).check(tier)
        step = pick(random, [1, 2, -1, -2])
        bounds = [[0], [dims[axis]]] if step > 0 else [[-1], [-dims[axis] - 1]]
        Move("Slice", x, [np.array(b, np.int64) for b in (*bounds, [axis], [step])]).check(tier)
        Move("Expand", x.take([0], axis), [np.array([2, *dims], np.int64)]).check(tier)
        graph = _native.Graph()
        values = [graph.add_input(name, x.dtype.name, dims) for name in "ab"]
        graph.outputs = graph.add_node("Concat", [*values, values[0]], ["y"], {"axis": axis}, "move").outputs
        other = elements(random, x.dtype.type, dims)
        pinned = compile_pinned(graph, tier, {"move": COPY})
        assert pinned(x, other).tobytes() == graph.evaluate([x, other])[0].tobytes()


@by_tier
@pytest.mark.parametrize("spatial", [[1], [2], [7], [16], [5, 9], [1, 1], [13, 14], [2, 3, 5]])
def test_channel_blocks_and_back(spatial, tier):
    """A pool takes and gives channel blocks; a window of one element leaves only the two conversions."""
    for channels in (1, 3, 4, 7, 8, 15, 16, 17, 35):
        graph = _native.Graph()
        x = graph.add_input("x", "float32", ["n", channels, *spatial])
        graph.outputs = graph.add_node("MaxPool", [x], ["y"], {"kernel_shape": [1] * len(spatial)}, "pool").outputs
        pinned = compile_pinned(graph, tier, {"pool": "cpu:float32/pool_nchwc"})
        for batch in (0, 1, 3):
            data = np.random.default_rng(channels).uniform(-1, 1, (batch, channels, *spatial)).astype(np.float32)
            for threads in (1, 5):
                np.testing.assert_array_equal(pinned(data, threads=threads), data)


@by_tier
@pytest.mark.parametrize("mode", MODES)
def test_pads_of_channel_blocks(mode, tier):
    """Between two pools of channel blocks no layout changes; channels are added where that is zeros."""
    for seed in range(CASES):
        random = np.random.default_rng(seed)
        rank = int(random.integers(3, 6))
        dims = [int(n) for n in (random.integers(0, 3), random.integers(1, 36), *random.integers(4, 12, rank - 2))]
        pads = random.integers(-1, 4, 2 * rank)
        pads[[0, rank]] = pads[1] = 0
        pads[rank + 1] = random.integers(0, 40) if mode == "constant" else 0
        graph = _native.Graph()
        x = graph.add_input("x", "float32", ["n", *dims[1:]])
        window = {"kernel_shape": [1] * (rank - 2)}
        (x,) = graph.add_node("MaxPool", [x], ["a"], window, "before").outputs
        (x,) = graph.add_node("Pad", [x, graph.add_constant("p", pads)], ["b"], {"mode": mode}, "pad").outputs
        graph.outputs = graph.add_node("MaxPool", [x], ["y"], window, "after").outputs
        blocked = "cpu:float32/pool_nchwc"
        pinned = compile_pinned(graph, tier, {"before": blocked, "pad": PAD, "after": blocked})
        assert sum(step["op"] == "neo.Adapt" for step in pinned.module.steps) == 2
        data = elements(random, np.float32, dims)
        data = np.where(
            np.abs(data) < np.finfo(np.float32).tiny, np.float32(0), data
        )  # a pool's comparison takes denormal numbers as zeros
        for threads in (1, 3):
            np.testing.assert_array_equal(pinned(data, threads=threads), graph.evaluate([data])[0])


def test_says_why_it_declines():
    graph = _native.Graph()
    operands = [graph.add_input("x", "string", [4, 5]), graph.add_constant("p", np.ones(4, np.int64))]
    graph.outputs = graph.add_node("Pad", operands, ["y"], {}, "move").outputs
    assert rejections(graph, TIERS[0], "move")[PAD] == "the input is not a tensor of known rank and fixed element size"
    graph = _native.Graph()
    operands = [graph.add_input("x", "float32", [4, 5]), graph.add_input("i", "int64", [3])]
    graph.outputs = graph.add_node("Gather", operands, ["y"], {}, "move").outputs
    assert rejections(graph, TIERS[0], "move")[GATHER] == "the indices are not known to lie inside the axis"
    graph = _native.Graph()
    graph.outputs = graph.add_node("ConstantOfShape", [graph.add_input("s", "int64", [2])], ["y"], {}, "move").outputs
    assert rejections(graph, TIERS[0], "move")[COPY] == "the size of the result is only known when it runs"


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.complex128])
def test_tiles_of_any_axes(dtype):
    """Axes of one element, axes that are not repeated, results large enough for a team."""
    for seed in range(4 * CASES):
        random = np.random.default_rng(seed)
        dims = [pick(random, [1, 1, 2, 3, 17 if seed % 4 == 0 else 2]) for _ in range(int(random.integers(0, 8)))]
        repeats = np.array([pick(random, [1, 1, 2, 3, 7 if seed % 4 == 1 else 2, 0 if seed == 6 else 1]) for _ in dims])
        Move("Tile", elements(random, dtype, dims), [repeats.astype(np.int64)]).check(TIERS[0])


@by_tier
@pytest.mark.parametrize("op", ["Expand", "Tile"])
def test_repeats_that_only_a_call_tells(op, tier):
    for seed in range(2 * CASES):
        random = np.random.default_rng(seed)
        dtype = pick(random, DTYPES)
        x = elements(random, dtype, [pick(random, [1, 1, 2, 5, 17]) for _ in range(int(random.integers(1, 4)))])
        if op == "Tile":
            sizes = random.integers(0 if seed == 3 else 1, 4, x.ndim)
        else:
            sizes = np.array([*random.integers(1, 4, int(random.integers(0, 3))), *x.shape])
            sizes[random.random(sizes.size) < 0.3] = 1
            whole = np.array([1] * (sizes.size - x.ndim) + list(x.shape))
            sizes = np.where(whole == 1, random.integers(0 if seed == 3 else 1, 5, sizes.size), sizes)
        graph = _native.Graph()
        operands = [graph.add_input("x", x.dtype.name, list(x.shape)), graph.add_input("s", "int64", [sizes.size])]
        graph.outputs = graph.add_node(op, operands, ["y"], {}, "move").outputs
        pinned = compile_pinned(graph, tier, {"move": COPY})
        assert pinned.routines["move"] == COPY
        for threads in (1, 3):
            found, expected = pinned(x, sizes, threads=threads), graph.evaluate([x, sizes])[0]
            assert found.shape == expected.shape
            assert found.tobytes() == expected.tobytes()


def test_repeats_that_do_not_fit():
    for op, sizes in (("Expand", [3, 4]), ("Tile", [-1, 2])):
        graph = _native.Graph()
        operands = [graph.add_input("x", "float32", [2, 3]), graph.add_input("s", "int64", [2])]
        graph.outputs = graph.add_node(op, operands, ["y"], {}, "move").outputs
        pinned = compile_pinned(graph, TIERS[0], {"move": COPY})
        with pytest.raises(ShapeError, match="Got"):
            pinned(np.zeros([2, 3], np.float32), np.array(sizes))


DIAGONAL = "cpu/diagonal"


@by_tier
def test_identity(tier):
    random = np.random.default_rng(6)
    for dtype in DTYPES:
        for dims in ([], [7], [3, 0], [5, 33, 2]):
            Move("Identity", elements(random, dtype, dims)).check(tier)


@by_tier
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.__name__)
def test_triangles(dtype, tier):
    for seed in range(CASES):
        random = np.random.default_rng(seed)
        dims = [pick(random, SIZES) for _ in range(int(random.integers(2, 4)))]
        x = elements(random, dtype, dims)
        k = [None, 0, 2, -3, 1000, -1000, np.iinfo(np.int64).max, np.iinfo(np.int64).min][seed % 8]
        operands = [] if k is None else [np.array(k, np.int64)]
        Move("Trilu", x, operands, {"upper": seed % 2}, symbols=seed % 3 == 0).check(tier, DIAGONAL)


@by_tier
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64", "bool", "int8", "uint16", "int64"])
def test_unit_matrices(dtype, tier):
    for seed in range(CASES):
        random = np.random.default_rng(seed)
        x = np.zeros([pick(random, SIZES), pick(random, SIZES)], np.float32)
        attrs = {"dtype": dtype, "k": [0, 1, -2, 40, -40][seed % 5]}
        Move("EyeLike", x, attrs=attrs, symbols=seed % 2 == 0).check(tier, DIAGONAL)


@by_tier
def test_a_diagonal_that_only_running_tells(tier):
    graph = _native.Graph()
    operands = [graph.add_input("x", "int16", ["A", 5, 7]), graph.add_input("k", "int64", [])]
    graph.outputs = graph.add_node("Trilu", operands, ["y"], {"upper": 0}, "move").outputs
    pinned = compile_pinned(graph, tier, {"move": DIAGONAL})
    x = np.arange(105, dtype=np.int16).reshape(3, 5, 7)
    for k in (0, 2, -3, 1000, np.iinfo(np.int64).max, np.iinfo(np.int64).min):
        [y] = pinned.module.call([x, np.array(k)])
        np.testing.assert_array_equal(y, graph.evaluate([x, np.array(k)])[0])


def test_a_matrix_that_holds_its_own_diagonal():
    graph = _native.Graph()
    x = graph.add_input("x", "int64", [1, 1])
    graph.outputs = graph.add_node("Trilu", [x, x], ["y"], {}, "move").outputs
    pinned = compile_pinned(graph, TIERS[0], {"move": DIAGONAL})
    for k in (-2, 2):
        [y] = pinned.module.call([np.array([[k]])])
        np.testing.assert_array_equal(y, [[np.triu([[k]], k)[0, 0]]])


def test_a_diagonal_of_another_dtype_is_left_to_the_reference():
    graph = _native.Graph()
    operands = [graph.add_input("x", "float32", [3, 4]), graph.add_input("k", "int32", [])]
    graph.outputs = graph.add_node("Trilu", operands, ["y"], {}, "move").outputs
    assert rejections(graph, TIERS[0], "move")[DIAGONAL] == "the diagonal is not one number of int64"
