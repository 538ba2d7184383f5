"""Benchmarks of neo beside the engines people use today: ``python -m benchmarks.run --help``."""
