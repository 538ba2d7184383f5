"""Tests on the models of the shared models folder; ``zoo`` is the catalogue."""
