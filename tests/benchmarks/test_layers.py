"""Where the time goes: how steps are put together."""

from neo.report.profile import StepTime

from benchmarks.layers import KINDS, REST, cells_of, held_back_rows, kind_of, losses_of
from benchmarks.limits import Limits


def step(routine: str, time_us: float, gflops: float) -> StepTime:
    return StepTime("n", "Conv", routine, time_us, 1, gflops, 0.0, time_us)


def test_kinds_go_by_the_routine() -> None:
    assert kind_of("cpu:float32/winograd{tile=4}") == "winograd"
    assert kind_of("cpu:float32/depthwise_pointwise{strip=2}") == "chains with depthwise"
    assert kind_of("cpu:float32/depthwise_nchwc") == "depthwise"
    assert kind_of("cpu:float32/direct_nchwc{ic_bn=16}") == "direct"
    assert kind_of("cpu:float32/direct_nchw{oc_bn=64}") == "first layer"
    assert kind_of("cpu:float32/stem_depthwise{tasks=2}") == "chains with depthwise"
    assert kind_of("cpu:float32/gemv_exponent_packed") == "matrix products"
    assert kind_of("cpu:adapt/copy") == REST


def test_cells_share_time_and_peak() -> None:
    cells = cells_of(
        [step("cpu:float32/direct_nchwc", 30, 50), step("cpu:float32/im2col", 30, 100), step("cpu/x", 40, 0)], 100
    )
    names = [name for name, _ in KINDS]
    assert cells[names.index("direct")] == "60% at 75%"
    assert cells[-1] == "40%"
    assert cells[names.index("winograd")] == ""


def test_losses_are_what_steps_take_beyond_their_limit() -> None:
    limits = Limits(threads=1, gflops=100.0, gbytes=10.0)
    near = StepTime("near", "Conv", "cpu:float32/direct_nchwc", 20.0, 1, 75.0, 1.0, 20.0, flops=1.5e6)
    far = StepTime("far", "Gemm", "cpu:float32/gemm{rows=6}", 110.0, 1, 20.0, 9.0, 90.0, flops=2e6, bytes=1e6)
    fast = StepTime("fast", "Conv", "cpu:float32/winograd{tile=4}", 10.0, 1, 200.0, 1.0, 10.0, flops=2e6)
    moves = StepTime("moves", "Pad", "cpu/pad", 7.0, 1, 0.0, 30.0, 7.0)
    losses = losses_of([near, far, fast, moves], limits)
    assert [(round(lost, 6), step.node) for lost, step in losses] == [
        (10.0, "far"),
        (7.0, "moves"),
        (5.0, "near"),
        (-10.0, "fast"),
    ]
    rows = held_back_rows("net", 1.1, [near, far, fast, moves], limits)
    assert [row[2] for row in rows] == ["far", "moves", "near"]
    assert rows[0] == ["net", "1.10", "far", "cpu:float32/gemm{rows=6}", "74.8%", "20%", "9", "6.8%"]
    assert rows[1][5] == ""
