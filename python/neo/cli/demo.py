"""``neo demo``."""

from __future__ import annotations

import argparse

from neo.cli.arguments import add_threads

HELP = "recognise digits with the network that comes with neo"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    add_threads(command)


def run(options: argparse.Namespace) -> None:
    """Show the digits and what they are recognised as."""
    from neo.demo.show import show

    show(threads=options.threads)
