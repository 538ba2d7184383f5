"""Exports a saved module as the sources of a library that holds this module and nothing else."""

from neo.standalone.write import Export, export

__all__ = ["Export", "export"]
