"""The command ``neo``: each subcommand does what the module does."""

from neo.cli.main import main

__all__ = ["main"]
