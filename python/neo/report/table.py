"""Plain text tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = ["counted", "render_sizes", "render_table"]


def render_table(header: Sequence[str], rows: Sequence[Sequence[object]], *, right: Sequence[int] = ()) -> str:
    """Columns aligned by blanks; the columns in `right` are flush right."""
    cells = [[str(c) for c in row] for row in rows]
    widths = [max([len(h), *(len(r[i]) for r in cells)]) for i, h in enumerate(header)]

    def line(row: Sequence[str]) -> str:
        return "  ".join(
            c.rjust(w) if i in right else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()

    return "\n".join([line(list(header)), "  ".join("-" * w for w in widths), *(line(r) for r in cells)])


def counted(number: int, what: str) -> str:
    """``1 thread``, ``2 threads``."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def render_sizes(sizes: Mapping[str, int]) -> str:
    """`` at N=1, T=8``; nothing where there are none."""
    return " at " + ", ".join(f"{symbol}={size}" for symbol, size in sizes.items()) if sizes else ""
