"""The errors neo raises on purpose.

Each is a :class:`Error` of one of three kinds: the model or the call is wrong, the environment lacks something, or
neo has a bug. Each also derives from the built-in class one would expect. Messages read
``[op] rule. Got <values>, expected <values> - at <place>``, with a ``Hint:`` line where there is one (docs/errors.md).
"""


class Error(Exception):
    """The base of every error neo raises on purpose."""


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


class InternalError(Error, RuntimeError):
    """A bug in neo; please report it with the model and the message."""
