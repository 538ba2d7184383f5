"""Finding the wrong node: every value of a compiled model beside double precision (docs/debug_accuracy.md)."""

from neo.accuracy.check import check_accuracy
from neo.accuracy.report import AccuracyCause, AccuracyReport, NodeAccuracy

__all__ = ["AccuracyCause", "AccuracyReport", "NodeAccuracy", "check_accuracy"]
