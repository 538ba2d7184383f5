#include "routines/gpu/sort/argsort.h"

#include <bit>

#include "base/check.h"
#include "ir/tensor.h"
#include "routines/gpu/sort/keys.h"

namespace neo::gpu {

using namespace kernel;  // NOLINT: kernels read like the algorithm

namespace {

constexpr int kMergeThreads = 64;

std::string name_of(const char* kernel, DType key, int number) {
  return std::string(kernel) + "_" + std::string(neo::name(key)) + "_" + std::to_string(number);
}

// Sorts what lies in one block by a bitonic network: by segment, key, position. A block covers kBlock elements of one
// unit; a unit is a segment, or several whole ones. The position in local memory holds the segment in its upper half.
Kernel sort_blocks(DType key, int block) {
  constexpr int kSegment = 1 << 16;
  const int pairs = block / 2;
  Builder b(name_of("sort_blocks", key, block));
  const Expr n = b.size("n", 1, kMaxElements), length = b.size("length", 1, kMaxElements);
  const Expr unit = b.size("unit", 1, kMaxElements), blocks = b.size("blocks", 1, kMaxElements);
  const Expr groups = b.size("groups", 1, kMaxElements);
  const Array keys_in = b.input("keys_in", key, n);
  const Array keys_out = b.output("keys_out", key, n), order_out = b.output("order_out", DType::Int32, n);
  const Expr group = b.group(0, "group", groups), thread = b.local(0, "thread", pairs);
  const Array keys = b.shared("keys", key, block), order = b.shared("order", DType::Int32, block);
  const Expr begin = unproven(b, "begin", group / blocks * unit), first = unproven(b, "first", group % blocks * block);
  const Expr count = unproven(b, "count", min(min(unit - first, n - begin - first), Expr(block)));
  b.unroll("i", 2, [&](Expr i) {
    const Expr at = b.let("at", thread + i * pairs), from = unproven(b, "from", begin + first + at);
    keys[at] = 0;
    order[at] = 0x7fffffff;
    b.when(at < count, [&] {
      within(b, from, n, [&] {
        keys[at] = keys_in[from];
        order[at] = (first + at) / length * kSegment + at;
      });
    });
  });
  b.barrier();
  const int stages = std::bit_width(static_cast<unsigned>(block)) - 1;
  b.loop("stage", 1, stages + 1, [&](Expr stage) {  // makes runs of 2^stage
    b.loop("back", 0, stage, [&](Expr back) {
      const Expr shift = b.let("shift", stage - 1 - back), distance = b.let("distance", Expr(1) << shift);
      // The first step of a stage compares a run with the next one backwards, so all runs rise.
      const Expr mirror = b.let("mirror", back == 0);
      const Expr low = unproven(b, "low", ((thread >> shift) << (shift + 1)) + (thread & (distance - 1)));
      const Expr high = unproven(b, "high", select(mirror, low ^ (distance * 2 - 1), low + distance));
      b.when(low >= 0 && low < block && high >= 0 && high < block, [&] {
        const Expr a = b.let("a", keys[low]), c = b.let("c", keys[high]);
        const Expr at_a = b.let("at_a", order[low]), at_c = b.let("at_c", order[high]);
        const Expr segment_a = b.let("segment_a", at_a >> 16), segment_c = b.let("segment_c", at_c >> 16);
        const Expr wrong =
            b.let("wrong", segment_c < segment_a || (segment_c == segment_a && (c < a || (c == a && at_c < at_a))));
        b.when(wrong, [&] {
          keys[low] = c;
          keys[high] = a;
          order[low] = at_c;
          order[high] = at_a;
        });
      });
      b.barrier();
    });
  });
  b.unroll("i", 2, [&](Expr i) {
    const Expr at = b.let("at", thread + i * pairs), to = unproven(b, "to", begin + first + at);
    b.when(at < count, [&] {
      within(b, to, n, [&] {
        const Expr place = b.let("place", order[at]);
        keys_out[to] = keys[at];
        order_out[to] = first + (place & (kSegment - 1)) - (place >> 16) * length;
      });
    });
  });
  return b.finish();
}

// Merges neighbouring runs of `run` elements of every segment: `pairs` of them in a segment, each pair's first `keep`
// elements by `parts` threads.
Kernel sort_merge(DType key, int each) {
  Builder b(name_of("sort_merge", key, each));
  const Expr n = b.size("n", 1, kMaxElements), length = b.size("length", 1, kMaxElements);
  const Expr run = b.size("run", 1, kMaxElements), keep = b.size("keep", 1, kMaxElements);
  const Expr parts = b.size("parts", 1, kMaxElements), pairs = b.size("pairs", 1, kMaxElements);
  const Expr threads = b.size("threads", 1, kMaxElements), halvings = b.size("halvings", 1, 32);
  const Array keys = b.input("keys", key, n), order = b.input("order", DType::Int32, n);
  const Array keys_out = b.output("keys_out", key, n), order_out = b.output("order_out", DType::Int32, n);
  const Expr t = b.let(
      "t", b.group(0, "group", ceildiv(threads, kMergeThreads)) * kMergeThreads + b.local(0, "thread", kMergeThreads));
  b.when(t < threads, [&] {
    const Expr pair = b.let("pair", t / parts % pairs), segment = b.let("segment", t / parts / pairs);
    const Expr inside = unproven(b, "inside", pair * run * 2), begin = unproven(b, "begin", segment * length + inside);
    const Expr left = unproven(b, "left", min(min(run, length - inside), keep));
    const Expr right = unproven(b, "right", min(max(min(run, length - inside - run), 0), keep));
    const Expr middle = unproven(b, "middle", begin + run);
    const Expr first = unproven(b, "first", t % parts * each);
    const Expr count = unproven(b, "count", min(min(left + right, keep) - first, Expr(each)));
    const Array low = b.registers("low", kInt, 1), high = b.registers("high", kInt, 1);
    low[0] = max(first - right, 0);
    high[0] = min(first, left);
    b.loop("halving", 0, halvings, [&](Expr) {
      const Expr half = b.let("half", (low[0] + high[0]) >> 1);
      const Expr of_left = unproven(b, "of_left", begin + half);
      const Expr of_right = unproven(b, "of_right", middle + first - 1 - half);
      b.when(low[0] < high[0] && of_left >= 0 && of_left < n && of_right >= 0 && of_right < n, [&] {
        b.when(
            keys[of_right] < keys[of_left], [&] { high[0] = half; }, [&] { low[0] = half + 1; });
      });
    });
    // The place of the next element of either run, and its key.
    const Array i = b.registers("i", kInt, 1), j = b.registers("j", kInt, 1);
    const Array left_key = b.registers("left_key", {key, 1}, 1), right_key = b.registers("right_key", {key, 1}, 1);
    i[0] = begin + low[0];
    j[0] = middle + first - low[0];
    left_key[0] = 0;
    right_key[0] = 0;
    const auto read = [&](const Array& to, const Array& at) {
      const Expr place = b.let("next", at[0]);
      within(b, place, n, [&] { to[0] = keys[place]; });
    };
    read(left_key, i);
    read(right_key, j);
    b.loop("step", 0, count, [&](Expr step) {
      const Expr from_left = b.let(
          "from_left", i[0] < begin + left && (j[0] >= middle + right || !(Expr(right_key[0]) < Expr(left_key[0]))));
      const Expr from = b.let("from", select(from_left, i[0], j[0])), to = unproven(b, "to", begin + first + step);
      b.when(from >= 0 && from < n && to >= 0 && to < n, [&] {
        keys_out[to] = select(from_left, left_key[0], right_key[0]);
        order_out[to] = order[from];
      });
      b.when(
          from_left,
          [&] {
            i[0] = i[0] + 1;
            read(left_key, i);
          },
          [&] {
            j[0] = j[0] + 1;
            read(right_key, j);
          });
    });
  });
  return b.finish();
}

}  // namespace

Argsort::Argsort(DType key, const SortSchedule& schedule, std::vector<Kernel>& kernels)
    : key_(key), schedule_(schedule), first_(static_cast<int>(kernels.size())) {
  NEO_ASSERT(schedule.block >= 2 && std::has_single_bit(static_cast<unsigned>(schedule.block)), "Got ", schedule.block);
  kernels.push_back(sort_blocks(key, schedule.block));
  kernels.push_back(sort_merge(key, schedule.each));
}

int Argsort::append(Launches& out, int keys, int64_t segments, int64_t length, int64_t keep) const {
  const int64_t n = segments * length, block = schedule_.block, each = schedule_.each;
  NEO_ASSERT(n > 0 && keep > 0, "Got ", segments, " segments of ", length);
  const auto temporary = [&](DType dtype) {
    out.temporaries.push_back(n * item_bytes(dtype));
    return static_cast<int>(out.temporaries.size()) - 1;
  };
  int sorted = temporary(key_), order = temporary(DType::Int32);
  const int64_t unit = length <= block ? block / length * length : length;
  const int64_t blocks = blocks_of(unit, block), groups = blocks_of(n, unit) * blocks;
  out.launches.push_back(
      {first_, {n, length, unit, blocks, groups, Temporary{keys}, Temporary{sorted}, Temporary{order}}});
  if (length <= block) return order;
  int other_keys = temporary(key_), other_order = temporary(DType::Int32);
  for (int64_t run = block; run < length; run *= 2) {
    const int64_t merged = std::min({2 * run, length, keep});
    const int64_t parts = blocks_of(merged, each), pairs = blocks_of(length, 2 * run);
    const int64_t halvings = std::bit_width(static_cast<uint64_t>(std::min(run, keep))) + 1;
    out.launches.push_back({first_ + 1,
                            {n, length, run, keep, parts, pairs, parts * pairs * segments, halvings, Temporary{sorted},
                             Temporary{order}, Temporary{other_keys}, Temporary{other_order}}});
    std::swap(sorted, other_keys);
    std::swap(order, other_order);
  }
  return order;
}

}  // namespace neo::gpu
