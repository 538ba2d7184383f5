#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/budget.h"
#include "base/check.h"
#include "ops/sizes.h"
#include "routines/cpu/index/index.h"
#include "routines/cpu/index/ordered_key.h"
#include "routines/cpu/reference/node_step.h"
#include "routines/cpu/tasks.h"
#include "routines/families.h"
#include "routines/patterns/movement.h"
#include "routines/patterns/reduced_axes.h"

namespace neo {
namespace {

struct TopKCall {
  int64_t lines = 0;
  int64_t size = 0;   // of the axis
  int64_t inner = 1;  // from one element of a line to the next
  int64_t k = 0;
  TaskSplit split;

  static TopKCall of(const Dims& dims, int axis, int64_t k) {
    TopKCall call;
    call.size = dims[static_cast<size_t>(axis)];
    NEO_CHECK(call.size <= std::numeric_limits<uint32_t>::max(), Shape, "TopK",
              "the axis must be shorter than 2^32. Got ", call.size);
    call.k = k;
    call.inner = count_between(dims, axis + 1, static_cast<int>(dims.size()));
    call.lines = k == 0 ? 0 : count_between(dims, 0, axis) * call.inner;
    return call;
  }
};

// An element's rank among the others of its line: the smaller comes first.
template <class Key>
struct Ranked {
  Key key;
  uint32_t position;

  bool operator<(const Ranked& other) const { return key != other.key ? key < other.key : position < other.position; }
};

template <class T>
using RankedOf = Ranked<decltype(ordered_key(T()))>;

constexpr int64_t kTogether = 16;
constexpr int64_t kFew = 16;  // so many are kept sorted

// True where one of some neighbours may come before an element; NaN may come before anything. A distance that is known
// is what the loop is vectorized for.
template <class T>
bool any_before(const T* x, int64_t inner, T bound, bool largest) {
  const auto look = [=](auto distance) {
    int any = 0;
    if (largest) {
      for (int64_t j = 0; j < kTogether; ++j) any |= !(x[j * distance] <= bound);
    } else {
      for (int64_t j = 0; j < kTogether; ++j) any |= !(x[j * distance] >= bound);
    }
    return any != 0;
  };
  return inner == 1 ? look(std::integral_constant<int64_t, 1>()) : look(inner);
}

// The first k of a line lie sorted at the start of `kept`, which has room for twice as many.
template <class T>
void select(const T* x, const TopKCall& call, bool largest, RankedOf<T>* kept) {
  const int64_t k = call.k;
  const auto ranked = [&](int64_t i) {
    const auto key = ordered_key(x[i * call.inner]);
    return RankedOf<T>{largest ? static_cast<decltype(key)>(~key) : key, static_cast<uint32_t>(i)};
  };
  if (k <= kFew) {
    // In order of position, so an element goes behind those that are equal.
    const auto take = [&](int64_t i) {
      const RankedOf<T> candidate = ranked(i);
      if (i >= k && !(candidate.key < kept[k - 1].key)) return;
      int64_t at = std::min(i, k - 1);
      for (; at > 0 && candidate.key < kept[at - 1].key; --at) kept[at] = kept[at - 1];
      kept[at] = candidate;
    };
    int64_t i = 0;
    for (; i < std::min(k, call.size); ++i) take(i);
    for (; i + kTogether <= call.size; i += kTogether) {
      if (!any_before(x + i * call.inner, call.inner, x[kept[k - 1].position * call.inner], largest)) continue;
      for (int64_t j = i; j < i + kTogether; ++j) take(j);
    }
    for (; i < call.size; ++i) take(i);
    return;
  }
  // Elements that come before the k-th of what was seen are collected; whenever the room is full, the best k stay.
  int64_t count = 0;
  int64_t i = 0;
  for (; i < std::min(call.size, 2 * k); ++i) kept[count++] = ranked(i);
  while (i < call.size) {
    std::nth_element(kept, kept + k - 1, kept + count);
    const RankedOf<T> last = kept[k - 1];
    count = k;
    const T bound = x[last.position * call.inner];
    while (i < call.size && count < 2 * k) {
      const int64_t end = std::min(call.size, i + kTogether);
      if (end - i == kTogether && !any_before(x + i * call.inner, call.inner, bound, largest)) {
        i = end;
        continue;
      }
      for (; i < end && count < 2 * k; ++i) {
        const RankedOf<T> candidate = ranked(i);
        if (candidate.key < last.key) kept[count++] = candidate;
      }
    }
  }
  if (count > k) std::nth_element(kept, kept + k - 1, kept + count);
  std::sort(kept, kept + k);
}

template <class T>
void run_lines(const TopKCall& call, bool largest, const T* x, T* values, int64_t* indices, RankedOf<T>* kept,
               int64_t begin, int64_t end) {
  for (int64_t line = begin; line < end; ++line) {
    const int64_t outer = line / call.inner, inner = line % call.inner;
    const T* elements = x + outer * call.size * call.inner + inner;
    select(elements, call, largest, kept);
    const int64_t start = outer * call.k * call.inner + inner;
    for (int64_t i = 0; i < call.k; ++i) {
      const int64_t at = start + i * call.inner;
      if (values) values[at] = elements[kept[i].position * call.inner];
      if (indices) indices[at] = kept[i].position;
    }
  }
}

template <class T>
class TopKStep final : public KernelStep {
 public:
  TopKStep(int64_t axis, bool largest, int values, int indices)
      : axis_(axis), largest_(largest), values_(values), indices_(indices) {}

  Prepared prepare(std::span<const Arg> args) const override {
    for (const Arg& arg : args) NEO_ASSERT(arg.is_dense(), "it takes whole lines");
    const Dims& dims = args[0].dims;
    const int axis = axis_from_front(axis_, static_cast<int>(dims.size()));
    TopKCall call = TopKCall::of(dims, axis, args[1].dims[static_cast<size_t>(axis)]);
    call.split = TaskSplit::of(call.lines, call.lines * (20 * call.size + 32 * call.k),
                               2 * call.k * static_cast<int64_t>(sizeof(RankedOf<T>)));
    return Prepared::of(call, call.split.scratch_bytes());
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& call = *reinterpret_cast<const TopKCall*>(prepared);
    run_tasks_with<RankedOf<T>>(team, call.split, scratch, [&](int64_t begin, int64_t end, RankedOf<T>* workspace) {
      run_lines<T>(call, largest_, reinterpret_cast<const T*>(args[0]),
                   values_ < 0 ? nullptr : reinterpret_cast<T*>(args[values_]),
                   indices_ < 0 ? nullptr : reinterpret_cast<int64_t*>(args[indices_]), workspace, begin, end);
    });
  }

 private:
  int64_t axis_;
  bool largest_;
  int values_;  // arguments; -1: not wanted
  int indices_;
};

// f(T()) for elements of a dtype; false where there is no kernel for it.
template <class F>
bool with_element(DType dtype, F&& f) {
  switch (dtype) {
    case DType::Float32:
      f(0.0F);
      return true;
    case DType::Float64:
      f(0.0);
      return true;
    case DType::Int32:
      f(int32_t{0});
      return true;
    case DType::Int64:
      f(int64_t{0});
      return true;
    default:
      return false;
  }
}

// A node whose k an input tells when it runs.
void run_top_k(ReferenceContext& ctx) {
  const Tensor& x = ctx.input(0);
  Dims dims = x.dims();
  const int axis = ctx.axis(ctx.node().int_attr("axis", -1), x.rank());
  int64_t& size = dims[static_cast<size_t>(axis)];
  const int64_t k = scalar_int(ctx, 1);
  ctx.check(k >= 0 && k <= size, str("k must lie inside the axis. Got ", k, ", expected 0 to ", size));
  const TopKCall call = TopKCall::of(dims, axis, k);
  size = k;
  const bool largest = ctx.node().int_attr("largest", 1) != 0;
  with_element(x.dtype(), [&]<class T>(T) {
    T* values = ctx.has_output(0) ? ctx.output(0, x.dtype(), dims).as<T>() : nullptr;
    int64_t* indices = ctx.has_output(1) ? ctx.output(1, DType::Int64, dims).as<int64_t>() : nullptr;
    auto kept = make_scratch<RankedOf<T>>(2 * k);
    run_lines<T>(call, largest, x.as<T>(), values, indices, kept.data(), 0, call.lines);
  });
}

class TopKRoutine final : public RoutineOf<TopKRoutine> {
 public:
  std::string_view name() const override { return "cpu/top_k"; }
  std::vector<std::string_view> roots() const override { return {"TopK"}; }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    const Node& node = workload.root();
    const Value* input = node.inputs.front();
    if (!input->type.is_tensor() || !input->shape().has_rank()) return "the rank of the input is not known";
    if (!with_element(input->dtype(), [](auto) {})) return "there is no kernel for its dtype";
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const Node& node = workload.root();
    const Value* input = node.inputs.front();
    Candidate c = Candidate::reading(workload, {input, makes_sizes(node) ? node.inputs[1] : nullptr});
    if (makes_sizes(node)) c.kind = Candidate::Kind::Host;
    const auto elements = static_cast<double>(input->shape().element_count().hint());
    const auto found = static_cast<double>(workload.outputs.front()->shape().element_count().hint());
    // If elements come in any order, each that is larger than the least one found so far takes its place in a heap.
    const double entered = found * (1 + std::log(std::max(1.0, elements / std::max(found, 1.0))));
    price(c, workload, {StepFamily::TopK, elements, entered * std::log2(found + 1)}, target);
    return {std::move(c)};
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target&, const OpRegistry& ops,
                                         PackedStore&) {
    const Node& node = candidate.workload->root();
    if (candidate.kind == Candidate::Kind::Host) return make_node_step(candidate, ops, run_top_k);
    std::unique_ptr<Step> made;
    with_element(node.inputs.front()->dtype(), [&]<class T>(T) { made = step<T>(node); });
    return made;
  }

 private:
  template <class T>
  static std::unique_ptr<Step> step(const Node& node) {
    const int values = node.output(0) ? 1 : -1;
    const int indices = node.output(1) ? (values < 0 ? 1 : 2) : -1;
    return std::make_unique<TopKStep<T>>(node.int_attr("axis", -1), node.int_attr("largest", 1) != 0, values, indices);
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(top_k, TopKRoutine)

}  // namespace neo
