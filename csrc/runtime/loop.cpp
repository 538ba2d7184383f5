#include <algorithm>
#include <cstring>
#include <limits>
#include <map>

#include "base/check.h"
#include "ir/strings.h"
#include "runtime/interpreter.h"
#include "runtime/steady_loop.h"

namespace neo {
namespace {

// Element counts before, along and after an axis.
struct Split {
  int64_t outer = 1;
  int64_t along = 1;
  int64_t inner = 1;
};

Split split_at(const Dims& dims, int axis) {
  Split s;
  for (int i = 0; i < static_cast<int>(dims.size()); ++i) {
    const int64_t d = dims[static_cast<size_t>(i)];
    if (i < axis) s.outer *= d;
    if (i == axis) s.along = d;
    if (i > axis) s.inner *= d;
  }
  return s;
}

void copy_elements(DType dtype, const std::byte* from, std::byte* to, int64_t count) {
  if (dtype == DType::String) {
    copy_strings(reinterpret_cast<const std::string*>(from), count, reinterpret_cast<std::string*>(to));
  } else if (count > 0) {
    std::memcpy(to, from, static_cast<size_t>(count * item_bytes(dtype)));
  }
}

// An axis of a value from outside the plan's types, counted from the front.
int checked_axis(int axis, int rank) {
  NEO_CHECK(-rank <= axis && axis < rank, Shape, "Scan", "an axis must lie in its tensor. Got ", axis,
            ", expected one of ", rank);
  return axis + (axis < 0 ? rank : 0);
}

// Slice `i` of a tensor along an axis: base + i x stride where the slice is contiguous, a copy where it is not.
Tensor slice(const Tensor& tensor, int axis, int64_t i) {
  Dims dims = tensor.dims();
  dims.erase(dims.begin() + axis);
  const Split s = split_at(tensor.dims(), axis);
  const int64_t width = item_bytes(tensor.dtype());
  auto* base = static_cast<std::byte*>(tensor.data());
  if (s.outer == 1) return Tensor(tensor.dtype(), dims, base + i * s.inner * width, nullptr);
  Tensor out(tensor.dtype(), dims);
  auto* to = static_cast<std::byte*>(out.data());
  for (int64_t o = 0; o < s.outer; ++o) {
    copy_elements(tensor.dtype(), base + (o * s.along + i) * s.inner * width, to + o * s.inner * width, s.inner);
  }
  return out;
}

// Bytes that one collected tensor takes beside its elements.
constexpr int64_t kElementBytes = 256;

// A size of what no iteration gave: by the symbols that are known, else 0.
int64_t size_without_element(const Dim& size, const SymbolValues& symbols) {
  std::map<std::string, Symbol> needed;
  size.collect_symbols(needed);
  const bool known =
      std::all_of(needed.begin(), needed.end(), [&](const auto& entry) { return symbols.count(entry.first) > 0; });
  return known ? size.evaluate(symbols) : 0;
}

// One output collected over the iterations.
class Collector {
 public:
  explicit Collector(LoopItem::Axis axis) : axis_(axis) {}
  void add(Tensor element) {
    // The body's memory is used again by the next iteration unless the element owns its own.
    NEO_CHECK(element.defined(), Type, "Loop", "collected outputs must be tensors. Got none");
    if (!elements_.empty()) {
      NEO_CHECK(element.dims() == elements_.front().dims() && element.dtype() == elements_.front().dtype(), Shape,
                "Loop", "collected outputs must keep their shape. Got ", to_string(element.dims()), ", expected ",
                to_string(elements_.front().dims()));
    }
    // One that is not a tensor of its own takes no memory but this.
    take_memory(kElementBytes);
    elements_.push_back(std::move(element));
  }

  // Begins a collection from the only element so far.
  SteadyLoop::Collected begin() const {
    const Tensor& first = elements_.front();
    return {first, checked_axis(axis_.axis, first.rank() + 1), axis_.reverse, {}};
  }
  void finish(Tensor whole) { whole_ = std::move(whole); }

  // All elements along a new axis. With no element there is only the declared type to go by, and the sizes of
  // `symbols`.
  Tensor stack(const Type& declared, const SymbolValues& symbols) const {
    if (whole_.defined()) return whole_;
    const auto count = static_cast<int64_t>(elements_.size());
    if (count == 0) {
      NEO_CHECK(declared.is_tensor() && declared.dtype != DType::Undefined, Type, "Loop",
                "what no iteration gave must have a known dtype. Got ", declared.to_string());
      Dims dims;
      if (declared.shape.has_rank()) {
        for (const Dim& d : declared.shape.dims()) dims.push_back(size_without_element(d, symbols));
      }
      if (dims.empty()) dims = {0};
      const int axis = checked_axis(axis_.axis, static_cast<int>(dims.size()));
      dims[static_cast<size_t>(axis)] = 0;
      return Tensor(declared.dtype, dims);
    }
    const Tensor& first = elements_.front();
    const int rank = first.rank() + 1;
    const int axis = checked_axis(axis_.axis, rank);
    Dims dims = first.dims();
    dims.insert(dims.begin() + axis, count);
    Tensor out(first.dtype(), dims);
    const Split s = split_at(dims, axis);
    const int64_t width = item_bytes(first.dtype());
    auto* to = static_cast<std::byte*>(out.data());
    for (int64_t i = 0; i < count; ++i) {
      const int64_t position = axis_.reverse ? count - 1 - i : i;
      const auto* from = static_cast<const std::byte*>(elements_[static_cast<size_t>(i)].data());
      for (int64_t o = 0; o < s.outer; ++o) {
        copy_elements(first.dtype(), from + o * s.inner * width, to + (o * s.along + position) * s.inner * width,
                      s.inner);
      }
    }
    return out;
  }

 private:
  LoopItem::Axis axis_;
  std::vector<Tensor> elements_;
  Tensor whole_;  // where the loop was a steady one
};

bool as_bool(const HostValue& value) {
  NEO_CHECK(value.tensor.size() == 1, Shape, "Loop", "the condition must hold one element. Got ",
            to_string(value.tensor.dims()));
  return load_int64(DType::Bool, value.tensor.data()) != 0;
}

// A scalar that a body takes, of one axis where the body says so.
Tensor scalar_for(const Slot& argument, DType dtype, int64_t number) {
  const bool one_axis = argument.type.is_tensor() && argument.type.shape.has_rank() && argument.type.shape.rank() == 1;
  Tensor scalar(dtype, one_axis ? Dims{1} : Dims{});
  store_int64(dtype, scalar.data(), number);
  return scalar;
}

}  // namespace

LoopBounds Interpreter::loop_bounds(const LoopItem& item, std::span<const HostValue> scanned) const {
  LoopBounds bounds;
  if (item.kind == LoopItem::Kind::Scan) {
    for (size_t i = 0; i < scanned.size(); ++i) {
      const Dims& dims = scanned[i].tensor.dims();
      const int axis = checked_axis(item.scanned_axes[i].axis, static_cast<int>(dims.size()));
      const int64_t length = dims[static_cast<size_t>(axis)];
      NEO_CHECK(i == 0 || length == bounds.trips, Shape, "Scan", "scanned inputs must have one length. Got ", length,
                ", expected ", bounds.trips);
      bounds.trips = length;
    }
    return bounds;
  }
  if (item.trip_count >= 0) {
    const Tensor count = frame_.read(item.trip_count).tensor;
    NEO_CHECK(!count.defined() || count.size() == 1, Shape, "Loop", "the trip count must hold one element. Got ",
              to_string(count.dims()));
    if (count.defined()) bounds.trips = load_int64(count.dtype(), count.data());
  }
  bounds.ends = item.condition >= 0 || bounds.trips == std::numeric_limits<int64_t>::max();
  if (item.condition >= 0) bounds.starts = as_bool(frame_.read(item.condition));
  return bounds;
}

void Interpreter::run_loop(const LoopItem& item) {
  const bool is_scan = item.kind == LoopItem::Kind::Scan;
  std::vector<HostValue> scanned;
  for (int slot : item.scanned) scanned.push_back(frame_.read(slot));

  const LoopBounds bounds = loop_bounds(item, scanned);
  const int64_t trips = bounds.trips;
  bool go = bounds.starts;  // what the body's condition said last

  std::vector<HostValue> carried;
  for (int slot : item.carried) carried.push_back(frame_.read(slot));
  std::vector<HostValue> captured;
  for (int slot : item.captured) captured.push_back(frame_.read(slot));
  std::vector<Collector> collected;
  for (const LoopItem::Axis& axis : item.collected_axes) collected.emplace_back(axis);

  Interpreter& body = child(*item.body);
  body.frame_.growing().begin(item, trips);
  const auto body_argument = [&](size_t i) -> const Slot& {
    return item.body->slots[static_cast<size_t>(item.body->arguments[i])];
  };
  const int outer_iteration = run_.iteration;
  std::vector<HostValue> arguments;
  const auto make_arguments = [&](int64_t i) {
    arguments.clear();
    if (!is_scan) {
      arguments.emplace_back(scalar_for(body_argument(0), DType::Int64, i));
      arguments.emplace_back(scalar_for(body_argument(1), DType::Bool, go));
    }
    for (const HostValue& v : carried) arguments.push_back(v);
    for (size_t s = 0; s < scanned.size(); ++s) {
      const LoopItem::Axis& axis = item.scanned_axes[s];
      const int at = checked_axis(axis.axis, scanned[s].tensor.rank());
      arguments.emplace_back(slice(scanned[s].tensor, at, axis.reverse ? trips - 1 - i : i));
    }
    for (const HostValue& v : captured) arguments.push_back(v);
  };
  // Runs the iterations after the first where they are all alike.
  const auto run_steadily = [&] {
    SteadyLoop::State state{is_scan, bounds.ends, go, trips, 1, {}, carried, {}, {}};
    for (size_t s = 0; s < scanned.size(); ++s) {
      const LoopItem::Axis& axis = item.scanned_axes[s];
      state.scanned.push_back({scanned[s].tensor, checked_axis(axis.axis, scanned[s].tensor.rank()), axis.reverse});
    }
    for (const Collector& c : collected) state.collected.push_back(c.begin());
    make_arguments(1);
    state.arguments = arguments;
    if (!SteadyLoop(body).run(state, frame_.symbols())) return false;
    carried = std::move(state.carried);
    for (size_t c = 0; c < collected.size(); ++c) collected[c].finish(std::move(state.collected[c].whole));
    return true;
  };
  for (int64_t i = 0; (go || !bounds.ends) && i < trips; ++i) {
    if (i == 1 && body.frame_.growing().growths().empty() && run_steadily()) break;
    run_.iteration = static_cast<int>(std::min<int64_t>(i, std::numeric_limits<int>::max()));
    run_.budget->checkpoint();  // a body may have no item
    make_arguments(i);
    for (HostValue& v : carried) v = {};
    std::vector<HostValue> results = body.call(arguments, frame_.symbols());
    size_t r = 0;
    if (!is_scan) go = as_bool(results[r++]);
    for (HostValue& v : carried) v = std::move(results[r++]);
    for (Collector& c : collected) c.add(std::move(results[r++].tensor));
  }
  run_.iteration = outer_iteration;
  body.frame_.growing().end(carried, item.results);

  for (size_t i = 0; i < item.results.size(); ++i) {
    if (item.results[i] < 0) continue;
    if (i < carried.size()) {
      HostValue& value = carried[i];
      if (value.kind == HostValue::Kind::Tensor && !value.tensor.owner()) {
        value.tensor = copy_tensor(value.tensor);
      }
      frame_.store(item.results[i], std::move(value));
    } else {
      const Type& declared = block_.slots[static_cast<size_t>(item.results[i])].type;
      frame_.store(item.results[i], collected[i - carried.size()].stack(declared, frame_.symbols()));
    }
  }
}

}  // namespace neo
