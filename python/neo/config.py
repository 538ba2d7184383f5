"""Where libneo is, the runtime without Python that this installation brings: ``python -m neo.config --cflags --libs``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from neo.errors import ResourceError

__all__ = ["main", "prefix"]

_LIBRARY = "libneo.so.0"


def prefix() -> Path:
    """Return the folder that holds ``include/neo.h`` and the library's folder.

    Raises
    ------
    neo.ResourceError
        This installation has no libneo: it was built without it, or runs from a source tree.
    """
    return _library().parent.parent


def _library() -> Path:
    package = Path(__file__).resolve().parent
    for found in sorted(package.glob(f"lib*/{_LIBRARY}")):
        return found
    msg = (
        f"[config] an installation must have libneo. Got none in {package}\n"
        "Hint: build it with CMake and install its component `runtime`."
    )
    raise ResourceError(msg)


def main(arguments: list[str] | None = None) -> int:
    """Print what is asked for on one line."""
    parser = argparse.ArgumentParser(prog="python -m neo.config", description=__doc__)
    parser.add_argument("--prefix", action="store_true", help="the folder that holds include/neo.h")
    parser.add_argument("--cflags", action="store_true", help="flags for a compiler")
    parser.add_argument("--libs", action="store_true", help="flags for a linker, with the path for running from here")
    parser.add_argument("--cmakedir", action="store_true", help="the value of neo_DIR for CMake")
    options = parser.parse_args(arguments)
    if not any(vars(options).values()):
        parser.print_usage()
        return 2
    try:
        library = _library()
    except ResourceError as error:
        print(error, file=sys.stderr)
        return 1
    told = []
    if options.prefix:
        told.append(f"{prefix()}")
    if options.cflags:
        told.append(f"-I{prefix() / 'include'}")
    if options.libs:
        told.append(f"-L{library.parent} -l:{_LIBRARY} -Wl,-rpath,{library.parent}")
    if options.cmakedir:
        told.append(f"{library.parent / 'cmake' / 'neo'}")
    print(*told)
    return 0


if __name__ == "__main__":
    sys.exit(main())
