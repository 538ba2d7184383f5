"""Builders of the networks that the benchmarks run; nothing under ``python/neo`` depends on them."""
