"""The errors neo raises on purpose.

Each is a :class:`Error` of one of three kinds: the model or the call is wrong, the environment lacks something, or
neo has a bug. Each also derives from the built-in class one would expect. Messages read
``[op] rule. Got <values>, expected <values> - at <place>``, with a ``Hint:`` line where there is one (docs/errors.md).
"""

_MOST_TEXT = 2000


class Error(Exception):
    """The base of every error neo raises on purpose.

    What a model makes of a message stays readable: control characters are escaped, and of a long line the middle is
    left out.
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*(_readable(a) if isinstance(a, str) else a for a in args))


def _readable(text: str) -> str:
    if len(text) <= _MOST_TEXT and text.isprintable():
        return text
    lines: list[str] = []
    for line in text.split("\n"):
        if lines and not line.startswith(("Hint: ", "  ")):
            lines[-1] += f"\\n{line}"  # not a line of the message but of a name in it
        else:
            lines.append(line)
    return "\n".join(_shortened(line) for line in lines)


def _shortened(line: str) -> str:
    if not line.isprintable():
        line = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)
    half = _MOST_TEXT // 2
    return line if len(line) <= _MOST_TEXT else f"{line[:half]} [...] {line[-half:]}"


class ModelError(Error, ValueError):
    """The model or an argument is malformed."""


class ShapeError(ModelError):
    """A shape, rank or size does not fit."""


class DTypeError(ModelError, TypeError):
    """A dtype or a kind of argument does not fit."""


class UnsupportedError(ModelError, NotImplementedError):
    """Valid, but outside what neo does."""


class CancelledError(Error):
    """The call was cancelled by its caller."""


class ResourceError(Error, OSError):
    """The environment lacks something: a file, a library, a device."""


class OutOfMemoryError(Error, MemoryError):
    """There is no memory, or a limit on it was reached."""


class TimeLimitError(Error, TimeoutError):
    """A limit on the time was reached."""


class InternalError(Error, RuntimeError):
    """A bug in neo; please report it with the model and the message."""
