"""The kernels of the tests: what each takes, what it has to give, and plain C of all of them in one program."""

import subprocess

import ml_dtypes  # noqa: F401 - names bfloat16 for NumPy
import numpy as np

from tests.built import load_extension
from tests.compiled import compiled

kernels = load_extension("_kernels")
EACH_BLOCK = 512  # elements of a block of the scan
SORTED = 256  # elements of a sorted block


def gemm(rng, m, n, k):
    a, b = rng.standard_normal((m, k)), rng.standard_normal((k, n))
    return {"m": m, "n": n, "k": k}, {}, {"a": a.astype("f4"), "b": b.astype("f4")}, {"c": a @ b}


def tf32(x):
    """The nearest floats of 11 significant bits, ties away from zero."""
    bits = np.ascontiguousarray(x, "f4").view("u4")
    return np.where(np.isfinite(x), (bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000), bits).view("f4")


def gemm_tf32(rng, m, n, k):
    sizes, numbers, given, _ = gemm(rng, m, n, k)
    exact = tf32(given["a"]).astype("f8") @ tf32(given["b"]).astype("f8")
    return sizes, numbers, given, {"c": exact}


def conv(rng, channels, outputs, height, wide):
    width = 8 * wide
    x = np.zeros((channels, height + 2, width + 8), "f4")
    x[:, 1:-1, 1 : width + 1] = rng.standard_normal((channels, height, width))
    w = rng.standard_normal((outputs, channels, 3, 3, 16)).astype("f4")
    y = np.zeros((outputs, height, width, 16))
    for dy in range(3):
        for dx in range(3):
            part = x[:, dy : dy + height, dx : dx + width].astype("f8")
            y += np.einsum("chw,ocl->ohwl", part, w[:, :, dy, dx].astype("f8"))
    sizes = {"channels": channels, "outputs": outputs, "height": height, "wide": wide}
    return sizes, {}, {"x": x, "w": w}, {"y": y}


def softmax(rng, rows, width):
    x = 3 * rng.standard_normal((rows, width))
    e = np.exp(x - x.max(1, keepdims=True))
    return {"rows": rows, "width": width}, {}, {"x": x.astype("f4")}, {"y": e / e.sum(1, keepdims=True)}


def eltwise(rng, n, size):
    x, table = rng.standard_normal(n).astype("f4"), rng.standard_normal(size).astype("f4")
    scaled = np.clip(x * np.float32(2.5) + np.float32(0.5), -4, 4)
    expected = np.where(scaled < 0, np.tanh(scaled), scaled + table[np.arange(n) % size])
    return {"n": n, "size": size}, {"scale": 2.5}, {"x": x, "table": table}, {"y": expected}


def mirror(rng, n):
    x = rng.standard_normal(n).astype("f4")
    return {"n": n}, {}, {"x": x}, {"y": x[::-1], "z": 2 * x[::-1]}


def repeat(rng, n, period):
    x = rng.standard_normal(4 * period).astype("f4")
    return {"n": n, "period": period}, {}, {"x": x}, {"y": x[period * (np.arange(n) % 4)]}


def gather(rng, rows, width, count):
    x, index = rng.standard_normal((rows, width)).astype("f4"), rng.integers(-rows - 2, rows + 2, count).astype("i4")
    known = (index >= -rows) & (index < rows)
    expected = np.where(known[:, None], x[np.where(known, index, 0)], 0)
    return {"rows": rows, "width": width, "count": count}, {}, {"x": x, "index": index}, {"y": expected}


def histogram(rng, n):
    x = rng.integers(0, 256, n).astype("u1")
    expected = {"counts": np.bincount(x, minlength=256), "sum": np.array([x.sum()])}
    return {"n": n}, {}, {"x": x, "counts": np.zeros(256, "i4"), "sum": np.zeros(1, "f4")}, expected


def blur(rng, n):
    x, w = rng.standard_normal((n, 4)).astype("f4"), rng.standard_normal((3, 4)).astype("f4")
    near = np.clip(np.arange(n)[:, None] + np.arange(-1, 2), 0, n - 1)
    y = np.einsum("ntl,tl->nl", x[near].astype("f8"), w.astype("f8")) * w[2, 3]
    return {"n": n}, {}, {"x": x, "w": w}, {"y": y}


def dot_bytes(rng, n):
    x, z = (rng.integers(-(2**31), 2**31, n).astype("i4") for _ in range(2))
    x[: n // 2], z[: n // 4] = np.iinfo("i4").min // 255, 0x7F7F7F7F
    c = rng.choice(np.array([0, 5, -7, 2**31 - 1, -(2**31)], "i8"), n)
    products = (x.view("i1").astype("i8") * z.view("i1")).reshape(n, 4).sum(1)
    return {"n": n}, {}, {"x": x, "z": z, "c": c.astype("i4")}, {"y": (products + c).astype("i4")}


def scale_codes(rng, n):
    x, z = rng.integers(0, 256, 4 * n).astype("u1"), rng.integers(-128, 128, 4 * n).astype("i1")
    scale, total = np.float32(0.1), x.astype("i4") + z
    expected = {"y": total.astype("f4") * scale + np.float32(1), "low": total.astype("u1")}
    return {"n": n}, {"scale": float(scale)}, {"x": x, "z": z}, expected


# (kernel, id, sizes, numbers, arrays that go in, arrays that come out); what is no multiple of a block is the rule.
def cases():
    rng = np.random.default_rng(7)
    table = [
        ("gemm_6x4x16", gemm, (13, 130, 37)),
        ("gemm_6x4x16", gemm, (1, 1, 1)),
        ("gemm_6x4x16", gemm, (12, 128, 64)),
        ("gemm_6x2x8", gemm, (25, 50, 19)),
        ("gemm_local", gemm, (70, 65, 35)),
        ("gemm_local", gemm, (3, 130, 16)),
        ("conv_subgroup", conv, (3, 2, 5, 2)),
        ("softmax_subgroup", softmax, (9, 37)),
        ("softmax_subgroup", softmax, (1, 1)),
        ("eltwise_vector", eltwise, (61, 7)),
        ("mirror_vector", mirror, (22,)),
        ("repeat_strided", repeat, (29, 3)),
        ("gather_rows", gather, (11, 45, 13)),
        ("histogram", histogram, (777,)),
        ("image_blur", blur, (1,)),
        ("image_blur", blur, (131,)),
        ("gemm_matrices", gemm_tf32, (1, 1, 1)),
        ("gemm_matrices", gemm_tf32, (37, 19, 29)),
        ("gemm_matrices", gemm_tf32, (16, 16, 8)),
        ("dot_bytes", dot_bytes, (1,)),
        ("dot_bytes", dot_bytes, (997,)),
        ("scale_codes", scale_codes, (97,)),
    ]
    return [(kernel, *make(rng, *sizes)) for kernel, make, sizes in table]


def whole(name, sizes, arrays):
    """Arrays for every buffer of a kernel, what it only writes as NaN or the largest integers."""
    out = {}
    for parameter, dtype, elements, access in kernels.geometry(name, sizes)["parameters"]:
        if access == "number":
            continue
        if parameter in arrays:
            out[parameter] = np.ascontiguousarray(arrays[parameter]).copy()
            assert out[parameter].size == elements
            assert out[parameter].dtype == dtype
        else:
            out[parameter] = np.full(elements, np.nan if "float" in dtype else np.iinfo(dtype).max, dtype)
    return out


def scan(launch, x, starts):
    """The segmented prefix sum by three kernels; launch(name, sizes, arrays) changes arrays in place."""
    n = len(x)
    blocks = -(-n // EACH_BLOCK)
    first = whole("scan_blocks", {"n": n}, {"x": x, "starts": starts})
    launch("scan_blocks", {"n": n}, first)
    totals = {"totals": first["totals"], "flags": first["flags"]}
    launch("scan_totals", {"blocks": blocks}, totals)
    last = {"starts": starts, "totals": totals["totals"], "y": first["y"]}
    launch("scan_add", {"n": n}, last)
    return last["y"]


def scan_reference(x, starts):
    y = np.zeros(len(x))
    total = 0.0
    for i, value in enumerate(x):
        total = float(value) if starts[i] else total + float(value)
        y[i] = total
    return y


def argsort(launch, x):
    """The order of a stable sort, NaN last, by sorted blocks that are merged."""
    n = len(x)
    step = whole("sort_blocks", {"n": n}, {"x": x})
    launch("sort_blocks", {"n": n}, step)
    keys, order, run = step["keys"], step["order"], SORTED
    while run < n:
        merge = whole("sort_merge", {"n": n, "run": run}, {"keys": keys, "order": order})
        launch("sort_merge", {"n": n, "run": run}, merge)
        keys, order, run = merge["keys_out"], merge["order_out"], 2 * run
    return order


def with_ties(rng, n):
    """Floats of few values, both zeros, infinities and NaN among them."""
    x = rng.integers(-9, 9, n).astype("f4")
    x[rng.random(n) < 0.1] = np.nan
    x[rng.random(n) < 0.1] = -0.0
    x[rng.random(n) < 0.05] = np.inf
    x[rng.random(n) < 0.05] = -np.inf
    return x


MAIN = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct entry { const char *name; void (*run)(void *const *args); };
static const struct entry table[] = {@TABLE@};

// argv[1]: the kernel. Standard input: how many arguments; of each its bytes, then its memory. Output: all memory.
int main(int argc, char **argv) {
  int64_t count = 0;
  if (argc != 2 || fread(&count, 8, 1, stdin) != 1) return 2;
  void *args[32];
  int64_t bytes[32];
  for (int64_t i = 0; i < count; ++i) {
    if (fread(&bytes[i], 8, 1, stdin) != 1) return 2;
    args[i] = malloc(bytes[i]);  // of exactly that size: the sanitizer sees what goes beyond
    if (fread(args[i], 1, bytes[i], stdin) != (size_t)bytes[i]) return 2;
  }
  for (size_t i = 0; i < sizeof table / sizeof *table; ++i) {
    const char *a = table[i].name, *b = argv[1];
    while (*a && *a == *b) ++a, ++b;
    if (*a || *b) continue;
    table[i].run(args);
    for (int64_t k = 0; k < count; ++k) fwrite(args[k], 1, bytes[k], stdout);
    for (int64_t k = 0; k < count; ++k) free(args[k]);
    return 0;
  }
  return 3;
}
"""


class PlainC:
    """Every kernel as plain C in one program, with AddressSanitizer and the checks of undefined behaviour."""

    def __init__(self):
        command = ["gcc", "-std=gnu11", "-O0", "-g1", "-w", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
        rows = ", ".join(f'{{"{name}", {name}}}' for name in kernels.names())
        declarations = "".join(f"void {name}(void *const *args);\n" for name in kernels.names())
        texts = {f"{name}.c": kernels.print(name, "c") for name in kernels.names()}
        texts["main.c"] = declarations + MAIN.replace("@TABLE@", rows)
        self.program = compiled([*command, "-o", "kernels", *texts, "-lm"], texts, "kernels")

    def launch(self, name, sizes, arrays, numbers=None):
        given, order = [], []
        for parameter, dtype, _, access in kernels.geometry(name, sizes)["parameters"]:
            if access == "number":
                value = np.array([sizes[parameter] if dtype == "int32" else numbers[parameter]], dtype)
            else:
                value = arrays[parameter]
            given.append(value)
            order.append(parameter)
        data = np.int64(len(given)).tobytes()
        for value in given:
            data += np.int64(value.nbytes).tobytes() + value.tobytes()
        done = subprocess.run([self.program, name], input=data, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()[:2000]
        at = 0
        for parameter, value in zip(order, given, strict=True):
            part = np.frombuffer(done.stdout, value.dtype, value.size, at).reshape(value.shape)
            at += value.nbytes
            if parameter in arrays:
                arrays[parameter][...] = part
