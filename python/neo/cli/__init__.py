"""The command ``neo``: each subcommand does what the module does, in a file of its name."""

from neo.cli.parser import main, make_parser

__all__ = ["main", "make_parser"]
