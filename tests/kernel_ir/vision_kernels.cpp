#include "kernel_ir/builder.h"
#include "kernels.h"

namespace neo::kernel::examples {
namespace {

constexpr int64_t kMany = 1 << 24;

// Segmented inclusive prefix sum, after the unified iGPU paper's three stages (section 3.1.1): each thread sums kEach
// elements, the threads of a group scan their totals in log2(kThreads) passes (Hillis and Steele). A pair is a sum and
// whether a segment starts within it: (f, x) then (g, y) is (f | g, g ? y : x + y).
constexpr int kThreads = 64, kEach = 8, kBlock = kThreads * kEach;

// Scans the pairs of a group's threads in local memory; gives the pair of all threads before this one.
struct Pair {
  Expr flag, sum;
};
Pair scan_group(Builder& b, const Expr& thread, const Array& flags, const Array& sums, const Pair& mine) {
  flags[thread] = mine.flag;
  sums[thread] = mine.sum;
  b.barrier();
  const Array flag = b.registers("flag", kInt, 1), sum = b.registers("total", kFloat, 1);
  for (int distance = 1; distance < kThreads; distance *= 2) {
    flag[0] = flags[thread];
    sum[0] = sums[thread];
    b.when(thread >= distance, [&] {
      b.when(flag[0] == 0, [&] { sum[0] = sums[thread - distance] + sum[0]; });
      flag[0] = flag[0] | flags[thread - distance];
    });
    b.barrier();
    flags[thread] = flag[0];
    sums[thread] = sum[0];
    b.barrier();
  }
  flag[0] = 0;
  sum[0] = 0.0f;
  b.when(thread >= 1, [&] {
    flag[0] = flags[thread - 1];
    sum[0] = sums[thread - 1];
  });
  return {b.let("before_flag", flag[0]), b.let("before", sum[0])};
}

// A key whose order as uint32 is the order of the float; NaN last, both zeros alike.
Expr ordered(const Expr& x) {
  const Expr bits = bitcast(x + 0.0f, DType::UInt32);
  const Expr sign = integer(0x80000000, {DType::UInt32, 1});
  return select(x == x, select((bits & sign) != integer(0, {DType::UInt32, 1}), make(Op::BitNot, {bits}), bits | sign),
                integer(0xffffffff, {DType::UInt32, 1}));
}

}  // namespace

Kernel scan_blocks() {
  Builder b("scan_blocks");
  const Expr n = b.size("n", 1, kMany);
  const Array x = b.input("x", DType::Float32, n), starts = b.input("starts", DType::Int32, n);
  const Array y = b.output("y", DType::Float32, n);
  const Array totals = b.output("totals", DType::Float32, ceildiv(n, kBlock));
  const Array flags_out = b.output("flags", DType::Int32, ceildiv(n, kBlock));
  const Expr block = b.group(0, "block", ceildiv(n, kBlock));
  const Expr thread = b.local(0, "thread", kThreads);
  const Array flags = b.shared("group_flags", DType::Int32, kThreads),
              sums = b.shared("group_sums", DType::Float32, kThreads);
  const Expr first = b.let("first", block * kBlock + thread * kEach);
  const Array flag = b.registers("f", kInt, 1), sum = b.registers("s", kFloat, 1);
  flag[0] = 0;
  sum[0] = 0.0f;
  b.loop("i", first, min(first + kEach, n), [&](Expr i) {
    b.when(starts[i] != 0, [&] {
      flag[0] = 1;
      sum[0] = 0.0f;
    });
    sum[0] = sum[0] + x[i];
  });
  const Pair before = scan_group(b, thread, flags, sums, {flag[0], sum[0]});
  sum[0] = before.sum;
  b.loop("i", first, min(first + kEach, n), [&](Expr i) {
    b.when(starts[i] != 0, [&] { sum[0] = 0.0f; });
    sum[0] = sum[0] + x[i];
    y[i] = sum[0];
  });
  b.when(thread == 0, [&] {
    totals[block] = sums[kThreads - 1];
    flags_out[block] = flags[kThreads - 1];
  });
  return b.finish();
}

// One group scans the totals of all blocks; what comes before each block stands in their place afterwards.
Kernel scan_totals() {
  Builder b("scan_totals");
  const Expr blocks = b.size("blocks", 1, kMany);
  const Array totals = b.inout("totals", DType::Float32, blocks), starts = b.inout("flags", DType::Int32, blocks);
  const Expr thread = b.local(0, "thread", kThreads);
  const Array flags = b.shared("group_flags", DType::Int32, kThreads),
              sums = b.shared("group_sums", DType::Float32, kThreads);
  const Expr each = b.let("each", ceildiv(blocks, kThreads));
  const Expr first = b.let("first", min(thread * each, blocks)),
             last = b.let("last", min(thread * each + each, blocks));
  const Array flag = b.registers("f", kInt, 1), sum = b.registers("s", kFloat, 1);
  flag[0] = 0;
  sum[0] = 0.0f;
  const auto step = [&](const Expr& i) {
    const Expr start = b.let("start", starts[i]), total = b.let("total", totals[i]);
    b.when(
        start != 0, [&] { sum[0] = total; }, [&] { sum[0] = sum[0] + total; });
    flag[0] = flag[0] | start;
  };
  b.loop("i", first, last, [&](Expr i) { step(i); });
  const Pair before = scan_group(b, thread, flags, sums, {flag[0], sum[0]});
  sum[0] = before.sum;
  b.loop("i", first, last, [&](Expr i) {
    const Expr carried = b.let("carried", sum[0]);
    step(i);
    totals[i] = carried;
  });
  return b.finish();
}

// Adds what comes before a block to its elements up to the block's first start of a segment.
Kernel scan_add() {
  Builder b("scan_add");
  const Expr n = b.size("n", 1, kMany);
  const Array starts = b.input("starts", DType::Int32, n);
  const Array carried = b.input("totals", DType::Float32, ceildiv(n, kBlock));
  const Array y = b.inout("y", DType::Float32, n);
  const Expr block = b.group(0, "block", ceildiv(n, kBlock));
  const Expr thread = b.local(0, "thread", kThreads);
  const Array starting = b.shared("first_start", DType::Int32, 1);
  const Expr first = b.let("first", block * kBlock);
  b.when(thread == 0, [&] { starting[0] = kBlock; });
  b.barrier();
  b.loop("i", 0, kEach, [&](Expr i) {
    const Expr at = i * kThreads + thread;
    b.when(first + at < n, [&] { b.when(starts[first + at] != 0, [&] { starting.atomic(AtomicOp::Min, 0, at); }); });
  });
  b.barrier();
  b.loop("i", 0, kEach, [&](Expr i) {
    const Expr at = i * kThreads + thread;
    b.when(first + at < n && at < starting[0], [&] { y[first + at] = y[first + at] + carried[block]; });
  });
  return b.finish();
}

// Argsort: the keys of kSorted elements of each group and their indices in local memory, by a bitonic network. Equal
// keys go by their index, so the order is that of a stable sort.
Kernel sort_blocks() {
  constexpr int kSorted = 256, kPairs = kSorted / 2;
  Builder b("sort_blocks");
  const Expr n = b.size("n", 1, kMany);
  const Array x = b.input("x", DType::Float32, n);
  const Array keys_out = b.output("keys", DType::UInt32, n), order_out = b.output("order", DType::Int32, n);
  const Expr block = b.group(0, "block", ceildiv(n, kSorted));
  const Expr thread = b.local(0, "thread", kPairs);
  const Array keys = b.shared("group_keys", DType::UInt32, kSorted),
              order = b.shared("group_order", DType::Int32, kSorted);
  const Expr first = b.let("first", block * kSorted);
  b.unroll("i", 2, [&](Expr i) {
    const Expr at = thread + i * kPairs;
    keys[at] = integer(0xffffffff, {DType::UInt32, 1});
    order[at] = first + at;
    b.when(first + at < n, [&] { keys[at] = ordered(x[first + at]); });
  });
  b.barrier();
  b.loop("stage", 1, 9, [&](Expr stage) {  // runs of 2^stage
    b.loop("back", 0, stage, [&](Expr back) {
      const Expr distance = b.let("distance", Expr(1) << (stage - 1 - back));
      const Expr low = b.let(
          "low", min(max(thread / max(distance, 1) * (distance * 2) + thread % max(distance, 1), 0), kSorted - 1));
      const Expr high = b.let("high", min(max(low + distance, 0), kSorted - 1));
      const Expr falling = b.let("falling", (low & (Expr(1) << stage)) != 0);
      const Expr a = b.let("a", keys[low]), c = b.let("c", keys[high]);
      const Expr at_a = b.let("at_a", order[low]), at_c = b.let("at_c", order[high]);
      const Expr wrong = b.let("wrong", c < a || (c == a && at_c < at_a));
      b.when(wrong != falling, [&] {
        keys[low] = c;
        keys[high] = a;
        order[low] = at_c;
        order[high] = at_a;
      });
      b.barrier();
    });
  });
  b.unroll("i", 2, [&](Expr i) {
    const Expr at = thread + i * kPairs;
    b.when(first + at < n, [&] {
      keys_out[first + at] = keys[at];
      order_out[first + at] = order[at];
    });
  });
  return b.finish();
}

// Merges neighbouring sorted runs of `run` elements: each element's place is its place in its own run and the number of
// elements of the other run that come before it, found by halving. Left before right where keys are equal.
Kernel sort_merge() {
  constexpr int kGroup = 64;
  Builder b("sort_merge");
  const Expr n = b.size("n", 1, kMany), run = b.size("run", 1, kMany);
  const Array keys = b.input("keys", DType::UInt32, n), order = b.input("order", DType::Int32, n);
  const Array keys_out = b.output("keys_out", DType::UInt32, n), order_out = b.output("order_out", DType::Int32, n);
  const Expr i = b.let("i", b.group(0, "block", ceildiv(n, kGroup)) * kGroup + b.local(0, "thread", kGroup));
  b.when(i < n, [&] {
    const Expr pair = b.let("pair", i / run / 2 * 2);  // number of the left run
    const Expr left = b.let("left", (i / run) % 2 == 0);
    const Expr begin = b.let("begin", min(select(left, (pair + 1) * run, pair * run), n));
    const Expr end = b.let("end", min(begin + run, n));
    const Expr key = b.let("key", keys[i]);
    const Array low = b.registers("low", kInt, 1), high = b.registers("high", kInt, 1);
    low[0] = begin;
    high[0] = end;
    b.loop("halving", 0, 25, [&](Expr) {
      const Expr middle = b.let("middle", (low[0] + high[0]) >> 1);
      b.when(low[0] < high[0] && middle >= 0 && middle < n, [&] {
        const Expr other = b.let("other", keys[middle]);
        b.when(
            other < key || (other == key && !left), [&] { low[0] = middle + 1; }, [&] { high[0] = middle; });
      });
    });
    const Expr place = b.let("place", pair * run + (i % run) + (low[0] - begin));
    b.when(place >= 0 && place < n, [&] {
      keys_out[place] = key;
      order_out[place] = order[i];
    });
  });
  return b.finish();
}

Kernel gather_rows() {
  Builder b("gather_rows");
  const Expr rows = b.size("rows", 1, 1 << 14), width = b.size("width", 1, 1 << 10),
             count = b.size("count", 1, 1 << 14);
  const Array x = b.input("x", DType::Float32, rows * width), index = b.input("index", DType::Int32, count);
  const Array y = b.output("y", DType::Float32, count * width);
  const Expr i = b.group(1, "i", count), j = b.group(0, "gx", ceildiv(width, 32)) * 32 + b.local(0, "lx", 32);
  b.when(j < width, [&] {
    const Expr wanted = b.let("wanted", index[i]);
    const Expr at = b.let("at", select(wanted < 0, wanted + rows, wanted));
    b.when(
        at >= 0 && at < rows, [&] { y[i * width + j] = x[at * width + j]; }, [&] { y[i * width + j] = 0.0f; });
  });
  return b.finish();
}

Kernel histogram() {
  Builder b("histogram");
  const Expr n = b.size("n", 1, kMany);
  const Array x = b.input("x", DType::UInt8, n), counts = b.inout("counts", DType::Int32, 256);
  const Array sum = b.inout("sum", DType::Float32, 1);
  const Expr i = b.let("i", b.group(0, "gx", ceildiv(n, 64)) * 64 + b.local(0, "lx", 64));
  b.when(i < n, [&] {
    counts.atomic(AtomicOp::Add, min(cast(x[i], DType::Int32), 255), 1);
    sum.atomic(AtomicOp::Add, 0, cast(x[i], DType::Float32));
  });
  return b.finish();
}

}  // namespace neo::kernel::examples
