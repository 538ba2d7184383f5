"""Sizes of 0 and 1, integers up to the edges of their types, denormal numbers, infinities and not-a-numbers."""
