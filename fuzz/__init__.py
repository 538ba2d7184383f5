"""Fuzzing neo: libFuzzer targets for the loader and the C interface, their corpus, and what runs campaigns."""
