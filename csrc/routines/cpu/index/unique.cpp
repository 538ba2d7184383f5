#include <algorithm>
#include <numeric>

#include "base/budget.h"
#include "routines/cpu/index/host_functions.h"
#include "routines/cpu/index/index.h"
#include "routines/cpu/index/ordered_key.h"

namespace neo {
namespace {

// Elements that are equal, numbered by their first member.
struct UniqueGroups {
  std::vector<uint64_t> key;
  std::vector<int64_t> first;
  std::vector<int64_t> count;
  std::vector<int64_t> of;  // per element
};

// A table of twice as many slots as groups, probed one slot after the other.
UniqueGroups unique_groups(const std::vector<uint64_t>& keys) {
  UniqueGroups groups;
  groups.of = make_scratch<int64_t>(std::ssize(keys));
  int bits = 6;
  std::vector<int64_t> slots(size_t{1} << bits, -1);
  const auto slot_of = [&](uint64_t key) {
    // Fibonacci hashing: the high bits of a product with 2^64 by the golden ratio.
    uint64_t at = (key * 0x9e3779b97f4a7c15u) >> (64 - bits);
    while (slots[at] >= 0 && groups.key[static_cast<size_t>(slots[at])] != key) at = (at + 1) & (slots.size() - 1);
    return at;
  };
  for (size_t i = 0; i < keys.size(); ++i) {
    const uint64_t key = keys[i];
    uint64_t at = slot_of(key);
    if (slots[at] < 0) {
      if (2 * groups.key.size() >= slots.size()) {
        slots.assign(size_t{1} << ++bits, -1);
        for (size_t g = 0; g < groups.key.size(); ++g) slots[slot_of(groups.key[g])] = static_cast<int64_t>(g);
        at = slot_of(key);
      }
      slots[at] = std::ssize(groups.key);
      groups.key.push_back(key);
      groups.first.push_back(static_cast<int64_t>(i));
      groups.count.push_back(0);
    }
    const auto group = static_cast<size_t>(slots[at]);
    ++groups.count[group];
    groups.of[i] = slots[at];
  }
  return groups;
}

std::vector<uint64_t> ordered_keys(const Tensor& x) {
  auto keys = make_scratch<uint64_t>(x.size());
  const auto fill = [&]<class T>(T) {
    const T* elements = x.as<T>();
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = ordered_key(elements[i]);
  };
  switch (x.dtype()) {
    case DType::Float32:
      fill(0.0F);
      break;
    case DType::Float64:
      fill(0.0);
      break;
    case DType::Int8:
      fill(int8_t{0});
      break;
    case DType::Int16:
      fill(int16_t{0});
      break;
    case DType::UInt16:
      fill(uint16_t{0});
      break;
    case DType::Int32:
      fill(int32_t{0});
      break;
    case DType::UInt32:
      fill(uint32_t{0});
      break;
    case DType::Int64:
      fill(int64_t{0});
      break;
    case DType::UInt64:
      fill(uint64_t{0});
      break;
    default:
      fill(uint8_t{0});
  }
  return keys;
}

}  // namespace

void run_unique(ReferenceContext& ctx) {
  const Tensor& x = ctx.input(0);
  const UniqueGroups groups = unique_groups(ordered_keys(x));
  const int64_t count = std::ssize(groups.key);
  // Groups in the order of the result, and the place of each.
  std::vector<int64_t> order(groups.key.size());
  std::iota(order.begin(), order.end(), 0);
  if (ctx.node().int_attr("sorted", 1) != 0) {
    std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return groups.key[static_cast<size_t>(a)] < groups.key[static_cast<size_t>(b)];
    });
  }
  if (ctx.has_output(0)) {
    const Tensor& y = ctx.output(0, x.dtype(), {count});
    const ElementMover move(x.dtype(), x.data(), y.data());
    for (int64_t i = 0; i < count; ++i) move(i, groups.first[static_cast<size_t>(order[static_cast<size_t>(i)])]);
  }
  const auto store_ordered = [&](int output, const std::vector<int64_t>& of_group) {
    if (ctx.output_count() <= output || !ctx.has_output(output)) return;
    auto* to = ctx.output(output, DType::Int64, {count}).as<int64_t>();
    for (const int64_t group : order) *to++ = of_group[static_cast<size_t>(group)];
  };
  store_ordered(1, groups.first);
  if (ctx.output_count() > 2 && ctx.has_output(2)) {
    std::vector<int64_t> place(groups.key.size());
    for (size_t i = 0; i < order.size(); ++i) place[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
    auto* to = ctx.output(2, DType::Int64, {x.size()}).as<int64_t>();
    for (const int64_t group : groups.of) *to++ = place[static_cast<size_t>(group)];
  }
  store_ordered(3, groups.count);
}

}  // namespace neo
