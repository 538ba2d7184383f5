"""Formulas of sizes as nodes: what neo's plan fills in when it binds, ONNX computes from shapes."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from neo.errors import InternalError

__all__ = ["SizeWriter", "UnknownSizeError"]

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
_FUNCTIONS = frozenset({"floordiv", "ceildiv", "mod", "min", "max", "broadcast"})

# (operator, names of inputs, attributes, wanted name) -> name of the result
Emit = Callable[..., str]
Constant = Callable[..., str]


class UnknownSizeError(Exception):
    """A formula has a size that no value has at this place."""


class SizeWriter:
    """Writes formulas of one graph as vectors of one int64; the same formula once."""

    def __init__(
        self,
        emit: Emit,
        constant: Constant,
        find_symbol: Callable[[str], tuple[str, int]],
        formulas: Mapping[str, str],
    ) -> None:
        self._emit = emit
        self._constant = constant
        self._find_symbol = find_symbol
        self._formulas = formulas  # of symbols that stand for one
        self._made: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._symbols: dict[str, str] = {}  # by those names

    def vector(self, dims: Sequence[int | str]) -> list[str]:
        """Names of vectors that make up these sizes in their order, numbers that are neighbours together."""
        parts: list[str] = []
        numbers: list[int] = []
        for d in [*dims, None]:
            if isinstance(d, int):
                numbers.append(d)
                continue
            if numbers:
                parts.append(self._number(*numbers))
                numbers = []
            if d is not None:
                parts.append(self._write(self._parse(d)))
        return parts

    def _parse(self, formula: str) -> ast.expr:
        """A formula; its symbols, which may have points in them, as names of their own."""

        def plain(word: re.Match[str]) -> str:
            text = word.group()
            if text in _FUNCTIONS:
                return text
            if text not in self._names:
                self._names[text] = f"s{len(self._names)}"
                self._symbols[self._names[text]] = text
            return self._names[text]

        return ast.parse(_WORD.sub(plain, formula), mode="eval").body

    def _number(self, *values: int) -> str:
        key = ",".join(map(str, values))
        if key not in self._made:
            self._made[key] = self._constant("size", np.array(values, np.int64))
        return self._made[key]

    def _write(self, tree: ast.expr) -> str:
        key = ast.unparse(tree)
        if key not in self._made:
            self._made[key] = self._write_new(tree, key)
        return self._made[key]

    def _write_new(self, tree: ast.expr, text: str) -> str:
        match tree:
            case ast.Constant(value=int(value)):
                return self._number(value)
            case ast.Name(id=name) if self._symbols[name] in self._formulas:
                return self._write(self._parse(self._formulas[self._symbols[name]]))
            case ast.Name(id=name):
                value_name, axis = self._find_symbol(self._symbols[name])
                return self._emit("Shape", [value_name], {"start": axis, "end": axis + 1}, self._symbols[name])
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._emit("Neg", [self._write(operand)], {}, "size")
            case ast.BinOp(left=left, op=op, right=right):
                names = {ast.Add: "Add", ast.Sub: "Sub", ast.Mult: "Mul"}
                return self._emit(names[type(op)], [self._write(left), self._write(right)], {}, "size")
            case ast.Call(func=ast.Name(id=function), args=[a, b]):
                return self._call(function, self._write(a), self._write(b))
        msg = f"[optimize] a size must be a formula. Got {text!r}"
        raise InternalError(msg)

    def _call(self, function: str, a: str, b: str) -> str:
        match function:
            case "min":
                return self._emit("Min", [a, b], {}, "size")
            case "max":
                return self._emit("Max", [a, b], {}, "size")
            case "mod":
                return self._emit("Mod", [a, b], {}, "size")
            case "floordiv":
                # ONNX's division cuts towards zero.
                rest = self._emit("Mod", [a, b], {}, "size")
                return self._emit("Div", [self._emit("Sub", [a, rest], {}, "size"), b], {}, "size")
            case "ceildiv":
                return self._emit("Neg", [self._call("floordiv", self._emit("Neg", [a], {}, "size"), b)], {}, "size")
            case "broadcast":
                is_one = self._emit("Equal", [a, self._number(1)], {}, "size")
                return self._emit("Where", [is_one, b, a], {}, "size")
        msg = f"[optimize] a size must be a formula of known functions. Got {function!r}"
        raise InternalError(msg)
