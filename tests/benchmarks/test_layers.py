"""Where the time goes: how steps are put together."""

from neo.report.profile import StepTime

from benchmarks.layers import KINDS, REST, cells_of, kind_of


def step(routine: str, time_us: float, gflops: float) -> StepTime:
    return StepTime("n", "Conv", routine, time_us, 1, gflops, 0.0, time_us)


def test_kinds_go_by_the_routine() -> None:
    assert kind_of("cpu:float32/winograd{tile=4}") == "winograd"
    assert kind_of("cpu:float32/depthwise_pointwise@avx512{strip=2}") == "chains with depthwise"
    assert kind_of("cpu:float32/depthwise_nchwc") == "depthwise"
    assert kind_of("cpu:float32/direct_nchwc{ic_bn=16}") == "direct"
    assert kind_of("cpu:float32/direct_nchw{oc_bn=64}") == "first layer"
    assert kind_of("cpu:adapt/copy") == REST


def test_cells_share_time_and_peak() -> None:
    cells = cells_of(
        [step("cpu:float32/direct_nchwc", 30, 50), step("cpu:float32/panel", 30, 100), step("cpu/x", 40, 0)], 100
    )
    names = [name for name, _ in KINDS]
    assert cells[names.index("direct")] == "60% at 75%"
    assert cells[-1] == "40%"
    assert cells[names.index("winograd")] == ""
