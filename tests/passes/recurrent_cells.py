"""Recurrent cells as exporters write them out, in the printed form of graphs."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence

import numpy as np

INPUT, HIDDEN = 3, 5

#: Lines of a cell: what it is called, its operands x, h and c, and the names of what it gives.
Writer = Callable[[str, str, str, str], list[str]]


def constant(name: str, array: np.ndarray) -> str:
    """Return the line of a constant with its elements."""
    numbers = ", ".join(repr(float(x)) if array.dtype.kind == "f" else str(int(x)) for x in array.ravel())
    return f"constant {name} = {array.dtype}[{','.join(map(str, array.shape))}] {{{numbers}}}"


def weights(name: str, *shape: int) -> str:
    """Return the line of a constant of seeded float32 numbers."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    return constant(name, (rng.standard_normal(shape) * 0.5).astype(np.float32))


def constants(gates: int) -> list[str]:
    """Return what the cells below read, for so many gates."""
    rows = gates * HIDDEN
    return [
        weights("w", rows, INPUT),
        weights("r", rows, HIDDEN),
        weights("wb", rows),
        weights("rb", rows),
        weights("k", INPUT + HIDDEN, rows),
        weights("kb", rows),
        weights("wr", INPUT + HIDDEN, HIDDEN),
        weights("wz", INPUT + HIDDEN, HIDDEN),
        weights("wn", INPUT + HIDDEN, HIDDEN),
        weights("bz", HIDDEN),
        *(weights(name, HIDDEN) for name in ("pi", "po", "pf")),
        "constant one = float32[] {1.0}",
        "constant last = int64[1] {-1}",
        *(f"constant at{i} = int64[1] {{{i * HIDDEN}}}" for i in range(gates + 1)),
    ]


def _state(t: str, i: str, f: str, g: str, o: str, c: str) -> list[str]:
    return [
        f"kept{t} = Mul({f}, {c})",
        f"fresh{t} = Mul({i}, {g})",
        f"c{t} = Add(kept{t}, fresh{t})",
        f"out{t} = Tanh(c{t})",
        f"h{t} = Mul({o}, out{t})",
    ]


def lstm_split(t: str, x: str, h: str, c: str) -> list[str]:
    """Two products and a Split, as PyTorch writes LSTMCell."""
    return [
        f"p{t} = Gemm({x}, w, wb) {{transB=1}}",
        f"q{t} = Gemm({h}, r, rb) {{transB=1}}",
        f"s{t} = Add(p{t}, q{t})",
        f"a{t}, b{t}, d{t}, e{t} = Split(s{t}) {{axis=1, num_outputs=4}}",
        f"i{t} = Sigmoid(a{t})",
        f"f{t} = Sigmoid(b{t})",
        f"g{t} = Tanh(d{t})",
        f"o{t} = Sigmoid(e{t})",
        *_state(t, f"i{t}", f"f{t}", f"g{t}", f"o{t}", c),
    ]


def lstm_concat(t: str, x: str, h: str, c: str) -> list[str]:
    """One product of both operands, gates in another order and a one for the forget gate, as TensorFlow has it."""
    slices = [f"s{t}_{i} = Slice(m{t}, at{i}, at{i + 1}, last)" for i in range(4)]
    return [
        f"xh{t} = Concat({x}, {h}) {{axis=1}}",
        f"n{t} = MatMul(xh{t}, k)",
        f"m{t} = Add(n{t}, kb)",
        *slices,
        f"u{t} = Add(s{t}_2, one)",
        f"i{t} = Sigmoid(s{t}_0)",
        f"f{t} = Sigmoid(u{t})",
        f"g{t} = Tanh(s{t}_1)",
        f"o{t} = Sigmoid(s{t}_3)",
        *_state(t, f"i{t}", f"f{t}", f"g{t}", f"o{t}", c),
    ]


def lstm_activations(t: str, x: str, h: str, c: str) -> list[str]:
    """Other functions than the usual ones."""
    lines = [line.replace("Tanh(d", "Softsign(d") for line in lstm_split(t, x, h, c)]
    return [line.replace("= Sigmoid(", "= HardSigmoid(").replace(f"out{t} = Tanh", f"out{t} = Relu") for line in lines]


def lstm_peepholes(t: str, x: str, h: str, c: str) -> list[str]:
    """Gates that look at the cell state: the output gate at the new one."""
    lines = []
    for line in lstm_split(t, x, h, c):
        for gate, letter, state in (("i", "a", c), ("f", "b", c), ("o", "e", f"c{t}")):
            if line == f"{gate}{t} = Sigmoid({letter}{t})":
                lines += [f"{gate}p{t} = Mul({state}, p{gate})", f"{gate}s{t} = Add({letter}{t}, {gate}p{t})"]
                line = f"{gate}{t} = Sigmoid({gate}s{t})"
        lines.append(line)
    late = [line for line in lines if line.startswith(("op", "os", f"o{t} "))]
    early = [line for line in lines if line not in late]
    return [*early[:-1], *late, early[-1]]


def lstm_coupled(t: str, x: str, h: str, c: str) -> list[str]:
    """The forget gate is one less the input gate."""
    return [line.replace(f"Sigmoid(b{t})", f"Sub(one, i{t})") for line in lstm_split(t, x, h, c)]


def lstm_coupled_by_forget(t: str, x: str, h: str, c: str) -> list[str]:
    """The input gate is one less the forget gate, which looks at the cell state."""
    lines = lstm_peepholes(t, x, h, c)
    lines = [line for line in lines if not line.startswith((f"ip{t} ", f"is{t} ", f"i{t} "))]
    at = lines.index(f"f{t} = Sigmoid(fs{t})")
    return [*lines[: at + 1], f"i{t} = Sub(one, f{t})", *lines[at + 1 :]]


def lstm_moved(t: str, x: str, h: str, c: str) -> list[str]:
    """One product less: c + i (g - c)."""
    lines = lstm_split(t, x, h, c)
    at = lines.index(f"kept{t} = Mul(f{t}, {c})")
    step = [f"way{t} = Sub(g{t}, {c})", f"part{t} = Mul(way{t}, i{t})", f"c{t} = Add({c}, part{t})"]
    return [*lines[:at], *step, *lines[at + 3 :]]


def gru_after(t: str, x: str, h: str, c: str) -> list[str]:
    """The reset gate behind the product, as PyTorch writes GRUCell."""
    del c
    return [
        f"p{t} = Gemm({x}, w, wb) {{transB=1}}",
        f"q{t} = Gemm({h}, r, rb) {{transB=1}}",
        f"a{t}, b{t}, d{t} = Split(p{t}) {{axis=1, num_outputs=3}}",
        f"u{t}, v{t}, e{t} = Split(q{t}) {{axis=1, num_outputs=3}}",
        f"au{t} = Add(a{t}, u{t})",
        f"r{t} = Sigmoid(au{t})",
        f"bv{t} = Add(b{t}, v{t})",
        f"z{t} = Sigmoid(bv{t})",
        f"er{t} = Mul(r{t}, e{t})",
        f"dn{t} = Add(d{t}, er{t})",
        f"n{t} = Tanh(dn{t})",
        f"hn{t} = Sub({h}, n{t})",
        f"zh{t} = Mul(z{t}, hn{t})",
        f"h{t} = Add(n{t}, zh{t})",
    ]


def _gru_before(t: str, x: str, h: str) -> list[str]:
    return [
        f"xh{t} = Concat({x}, {h}) {{axis=1}}",
        f"zm{t} = MatMul(xh{t}, wz)",
        f"zs{t} = Add(zm{t}, bz)",
        f"z{t} = Sigmoid(zs{t})",
        f"rs{t} = MatMul(xh{t}, wr)",
        f"r{t} = Sigmoid(rs{t})",
        f"rh{t} = Mul(r{t}, {h})",
        f"xr{t} = Concat({x}, rh{t}) {{axis=-1}}",
        f"ns{t} = MatMul(xr{t}, wn)",
        f"n{t} = Tanh(ns{t})",
        f"k{t} = Sub(one, z{t})",
    ]


def gru_before(t: str, x: str, h: str, c: str) -> list[str]:
    """The reset gate before the product; z keeps."""
    del c
    return [*_gru_before(t, x, h), f"zh{t} = Mul(z{t}, {h})", f"kn{t} = Mul(k{t}, n{t})", f"h{t} = Add(zh{t}, kn{t})"]


def gru_renewing(t: str, x: str, h: str, c: str) -> list[str]:
    """As in the first paper: z renews."""
    del c
    return [*_gru_before(t, x, h), f"zn{t} = Mul(n{t}, z{t})", f"kh{t} = Mul({h}, k{t})", f"h{t} = Add(kh{t}, zn{t})"]


def gru_less(t: str, x: str, h: str, c: str) -> list[str]:
    """One product less: h - z (h - n)."""
    del c
    return [*_gru_before(t, x, h), f"hn{t} = Sub({h}, n{t})", f"zd{t} = Mul(hn{t}, z{t})", f"h{t} = Sub({h}, zd{t})"]


def rnn(t: str, x: str, h: str, c: str) -> list[str]:
    """Both products and a function."""
    del c
    return [
        f"p{t} = Gemm({x}, w, wb) {{transB=1}}",
        f"q{t} = Gemm({h}, r) {{transB=1}}",
        f"s{t} = Add(p{t}, q{t})",
        f"h{t} = Tanh(s{t})",
    ]


def rnn_relu(t: str, x: str, h: str, c: str) -> list[str]:
    """One product of both operands."""
    del c
    return [f"xh{t} = Concat({h}, {x}) {{axis=1}}", f"q{t} = Gemm(xh{t}, k, kb)", f"h{t} = Relu(q{t})"]


CELLS: dict[str, tuple[str, int, Writer]] = {
    "lstm-split": ("LSTM", 4, lstm_split),
    "lstm-concat": ("LSTM", 4, lstm_concat),
    "lstm-activations": ("LSTM", 4, lstm_activations),
    "lstm-peepholes": ("LSTM", 4, lstm_peepholes),
    "lstm-coupled": ("LSTM", 4, lstm_coupled),
    "lstm-coupled-by-forget": ("LSTM", 4, lstm_coupled_by_forget),
    "lstm-moved": ("LSTM", 4, lstm_moved),
    "gru-after": ("GRU", 3, gru_after),
    "gru-before": ("GRU", 3, gru_before),
    "gru-renewing": ("GRU", 3, gru_renewing),
    "gru-less": ("GRU", 3, gru_less),
    "rnn": ("RNN", 1, rnn),
    "rnn-relu": ("RNN", 1, rnn_relu),
}


def unrolled(
    write: Writer, gates: int, steps: int, *, batch: str = "3", zero: bool = False, order: Sequence[int] | None = None
) -> str:
    """Return a graph of ``steps`` cells over slices of x [steps, batch, INPUT], and what they give stacked."""
    states = "" if zero else f", h: float32[{batch},{HIDDEN}], c: float32[{batch},{HIDDEN}]"
    lines = [*constants(gates), "constant front = int64[1] {0}"]
    if zero:
        lines += [f"constant {s} = float32[{batch},{HIDDEN}] splat 0.0" for s in "hc"]
    h, c = "h", "c"
    for t, i in enumerate(order or range(steps)):
        lines += [f"constant step{i} = int64[] {{{i}}}", f"x{t} = Gather(x, step{i}) {{axis=0}}"]
        lines += write(str(t), f"x{t}", h, c)
        lines.append(f"y{t} = Unsqueeze(h{t}, front)")
        h, c = f"h{t}", f"c{t}"
    lines.append(f"y = Concat({', '.join(f'y{t}' for t in range(steps))}) {{axis=0}}")
    results = f"y, h{steps - 1}" + (f", c{steps - 1}" if gates == 4 else "")
    body = "\n  ".join(
        [line for line in lines if line.startswith("constant")] + [x for x in lines if x[:9] != "constant "]
    )
    return f'graph "g" (x: float32[{steps},{batch},{INPUT}]{states}) -> ({results}) {{\n  {body}\n}}'


def scanned(write: Writer, gates: int, *, attrs: str = "", extra: Sequence[str] = (), collected: str = "ht") -> str:
    """Return a Scan of a cell over x [T, B, INPUT]; ``extra`` lines stand behind the cell."""
    state = ["ct"] if gates == 4 else []
    body = "\n      ".join([*constants(gates), *write("t", "xt", "h", "c"), *extra])
    carried = f"h: float32[B,{HIDDEN}]" + (f", c: float32[B,{HIDDEN}]" if state else "")
    names = "h, c" if state else "h"
    finals = "hn, cn, y" if state else "hn, y"
    next_names = ", ".join(["ht", *state, collected])
    return f"""graph "g" (x: float32[T,B,{INPUT}], {carried}) -> ({finals}) {{
  {finals} = Scan({names}, x) {{num_scan_inputs=1{attrs}}} with {{
    body = graph "step" ({carried}, xt: float32[B,{INPUT}]) -> ({next_names}) {{
      {body}
    }}
  }}
}}"""
