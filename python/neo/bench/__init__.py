"""neo beside the engines people use today: each in a process of its own, interleaved rounds, the same threads.

``neo bench model.onnx --peers`` and the benchmarks of the repository are made of this.
"""

from neo.bench.benchmark import Benchmark, Job, Measured, measure
from neo.bench.engines import ENGINES, Engine
from neo.bench.intervals import Interval, median_interval, ratio_interval
from neo.bench.process import EngineError, EngineProcess

__all__ = [
    "ENGINES",
    "Benchmark",
    "Engine",
    "EngineError",
    "EngineProcess",
    "Interval",
    "Job",
    "Measured",
    "measure",
    "median_interval",
    "ratio_interval",
]
