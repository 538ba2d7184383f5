#include <cmath>

#include "kernel_ir/builder.h"
#include "kernels.h"

namespace neo::kernel::examples {

// A convolution of 3 x 3, stride 1, on an input that is padded already, after the unified iGPU paper's section 3.2.2: a
// subgroup makes 16 output channels of kWide pixels of a row. Weights are read in blocks, one output channel for each
// thread; the pixels of an input row lie across the threads and are handed round by shuffles.
Kernel conv_subgroup() {
  constexpr int kSize = 16, kWide = 8;
  Builder b("conv_subgroup");
  const Expr channels = b.size("channels", 1, 1024), outputs = b.size("outputs", 1, 64);  // outputs: blocks of 16
  const Expr height = b.size("height", 1, 256), wide = b.size("wide", 1, 64);             // wide: blocks of kWide
  const Expr columns = wide * kWide + kWide;  // of the padded input; a block read takes 16
  const Array x = b.input("x", DType::Float32, channels * (height + 2) * columns);
  const Array w = b.input("w", DType::Float32, outputs * channels * 9 * kSize);
  const Array y = b.output("y", DType::Float32, outputs * height * wide * (kWide * kSize));
  const Expr block = b.group(0, "block", wide), row = b.group(1, "row", height), output = b.group(2, "output", outputs);
  b.local(0, "place", kSize);
  b.subgroups(kSize);
  const Array sums = b.registers("sum", kFloat, kWide);
  b.unroll("p", kWide, [&](Expr p) { sums[p] = 0.0f; });
  b.loop("c", 0, channels, [&](Expr c) {
    b.loop("dy", 0, 3, [&](Expr dy) {
      const Expr line = b.let("line", x.block_read((c * (height + 2) + row + dy) * columns + block * kWide));
      b.unroll("dx", 3, [&](Expr dx) {
        const Expr weight = b.let("weight", w.block_read(((output * channels + c) * 9 + dy * 3 + dx) * kSize));
        b.unroll("p", kWide, [&](Expr p) { sums[p] = fma(b.shuffle(line, p + dx), weight, sums[p]); });
      });
    });
  });
  b.unroll("p", kWide, [&](Expr p) {
    y.block_write(((output * height + row) * wide + block) * (kWide * kSize) + p * kSize, sums[p]);
  });
  return b.finish();
}

// Rows of a softmax, a subgroup for each: maximum and sum across the threads.
Kernel softmax_subgroup() {
  constexpr int kSize = 16, kRows = 4;
  Builder b("softmax_subgroup");
  const Expr rows = b.size("rows", 1, 1 << 14), width = b.size("width", 1, 1 << 14);
  const Array x = b.input("x", DType::Float32, rows * width), y = b.output("y", DType::Float32, rows * width);
  const Expr row = b.let("row", b.group(0, "gx", ceildiv(rows, kRows)) * kRows + b.local(1, "ly", kRows));
  const Expr place = b.local(0, "lx", kSize);
  b.subgroups(kSize);
  const Array value = b.registers("value", kFloat, 1);
  const auto each = [&](const std::function<void(Expr)>& body) {
    b.loop("step", 0, ceildiv(width, kSize), [&](Expr step) {
      const Expr column = step * kSize + place;
      b.when(row < rows && column < width, [&] { body(row * width + column); });
    });
  };
  value[0] = -INFINITY;
  each([&](Expr at) { value[0] = max(value[0], x[at]); });
  const Expr most = b.let("most", b.subgroup_max(value[0]));
  value[0] = 0.0f;
  each([&](Expr at) { value[0] = value[0] + make(Op::Exp, {x[at] - most}); });
  const Expr total = b.let("sum", b.subgroup_sum(value[0]));
  each([&](Expr at) { y[at] = make(Op::Exp, {x[at] - most}) / total; });
  return b.finish();
}

// clamp(a x + b) and a table look-up, eight elements at a time: unit strides, broadcasts, a gather, a choice by lanes.
Kernel eltwise_vector() {
  constexpr int kLanes = 8;
  Builder b("eltwise_vector");
  const Expr n = b.size("n", 1, 1 << 20), table_size = b.size("size", 1, 64);
  const Expr scale = b.number("scale", DType::Float32);
  const Array x = b.input("x", DType::Float32, n), table = b.input("table", DType::Float32, table_size);
  const Array y = b.output("y", DType::Float32, n);
  const Expr first = b.let("first", b.group(0, "gx", ceildiv(n, kLanes)) * kLanes);
  const auto element = [&](const Expr& i) {
    const Expr scaled = b.let("scaled", min(max(x[i] * scale + 0.5f, -4.0f), 4.0f));
    const Expr looked_up = b.let("looked_up", table[i % table_size]);
    y[i] = select(scaled < 0.0f, make(Op::Tanh, {scaled}), scaled + looked_up);
  };
  b.when(
      first + kLanes <= n, [&] { b.vectorize("v", kLanes, [&](Expr v) { element(first + v); }); },
      [&] { b.loop("i", first, n, element); });
  return b.finish();
}

// A row in the opposite order, four elements at a time: once read and once written backwards.
Kernel mirror_vector() {
  constexpr int kLanes = 4;
  Builder b("mirror_vector");
  const Expr n = b.size("n", 1, 1 << 20);
  const Array x = b.input("x", DType::Float32, n);
  const Array y = b.output("y", DType::Float32, n), z = b.output("z", DType::Float32, n);
  const Expr first = b.let("first", b.group(0, "gx", ceildiv(n, kLanes)) * kLanes);
  const auto element = [&](const Expr& i) {
    y[i] = x[n - 1 - i];
    z[n - 1 - i] = x[i] * 2.0f;
  };
  b.when(
      first + kLanes <= n, [&] { b.vectorize("v", kLanes, [&](Expr v) { element(first + v); }); },
      [&] { b.loop("i", first, n, element); });
  return b.finish();
}

// Four elements that lie `period` apart, again and again: a product of a remainder keeps its parentheses.
Kernel repeat_strided() {
  Builder b("repeat_strided");
  const Expr n = b.size("n", 1, 1 << 20), period = b.size("period", 1, 1 << 10);
  const Array x = b.input("x", DType::Float32, period * 4), y = b.output("y", DType::Float32, n);
  const Expr i = b.group(0, "gx", n);
  y[i] = x[period * (i % 4)];
  return b.finish();
}

}  // namespace neo::kernel::examples
