"""The command ``neo``: each subcommand does what the module does."""

from neo.cli.commands import main, make_parser

__all__ = ["main", "make_parser"]
