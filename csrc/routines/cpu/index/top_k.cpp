#include "routines/cpu/index/top_k.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/budget.h"
#include "base/check.h"
#include "ops/sizes.h"
#include "routines/cpu/eltwise/typed_compiler.h"
#include "routines/cpu/index/index.h"
#include "routines/cpu/index/ordered_key.h"
#include "routines/cpu/reference/node_step.h"
#include "routines/cpu/tasks.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"
#include "routines/patterns/movement.h"
#include "routines/patterns/reduced_axes.h"

NEO_DECLARE_TIERS(void top_k_columns(const TopKColumns& columns))

namespace neo {
namespace {

using TopKKernel = decltype(&scalar::top_k_columns);

// The part of a node that does not depend on sizes.
struct TopKForm {
  DType dtype = DType::Float32;
  bool largest = true;
  TopKKernel kernel = nullptr;

  static TopKForm of(const Node& node, const Target& target) {
    return {node.inputs.front()->dtype(), node.int_attr("largest", 1) != 0, NEO_PICK_TIER(target.isa, top_k_columns)};
  }
};

struct TopKCall {
  int64_t lines = 0;
  int64_t size = 0;   // of the axis
  int64_t inner = 1;  // from one element of a line to the next
  int64_t k = 0;
  int64_t together = 1;  // neighbouring lines that are copied before their elements are compared; 1: none is
  TaskSplit split;

  static TopKCall of(const Dims& dims, int axis, int64_t k) {
    TopKCall call;
    call.size = dims[static_cast<size_t>(axis)];
    NEO_CHECK(call.size <= std::numeric_limits<uint32_t>::max(), Shape, "TopK",
              "the axis must be shorter than 2^32. Got ", call.size);
    call.k = k;
    call.inner = count_between(dims, axis + 1, static_cast<int>(dims.size()));
    call.lines = k == 0 ? 0 : count_between(dims, 0, axis) * call.inner;
    if (call.inner > 1 && !call.is_by_columns() && !call.is_short())
      call.together = std::clamp<int64_t>(kCopied / std::max<int64_t>(1, call.size), 1, kNeighbours);
    return call;
  }

  // Whether neighbouring lines are taken in lanes.
  bool is_by_columns() const {
    return inner >= kMinColumns && k <= TopKColumns::kMaxKept && size <= std::numeric_limits<int32_t>::max();
  }

  // Whether lines of a few elements become columns of their own.
  bool is_short() const {
    constexpr int64_t kMaxShort = 64;
    return !is_by_columns() && k <= TopKColumns::kMaxKept && size <= kMaxShort && lines >= kMinColumns;
  }

  // From one copied line to the next: the gap keeps them in different sets of the cache.
  int64_t copied_step() const { return size + kNeighbours; }

 private:
  static constexpr int64_t kMinColumns = 8;
  static constexpr int64_t kCopied = 64 << 10;  // elements of lines that are copied at once
  static constexpr int64_t kNeighbours = 16;
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

// Short lines that are turned into columns at once.
constexpr int64_t kShortLines = 32;

// A task uses room for twice k elements of a line, and for copied lines.
template <class T>
struct TopKWorkspace {
  RankedOf<T>* kept;
  T* lines;

  TopKWorkspace(const TopKCall& call, std::byte* bytes)
      : kept(reinterpret_cast<RankedOf<T>*>(bytes)), lines(reinterpret_cast<T*>(kept + 2 * call.k)) {}

  static int64_t bytes(const TopKCall& call) {
    constexpr auto kItem = static_cast<int64_t>(sizeof(T));
    if (call.is_short()) return kShortLines * ((call.size + call.k) * kItem + call.k * int64_t{sizeof(int64_t)});
    const int64_t copied = call.together > 1 ? call.together * call.copied_step() : 0;
    return 2 * call.k * static_cast<int64_t>(sizeof(RankedOf<T>)) + copied * kItem;
  }
};

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

// The first k of a line, whose elements lie `step` apart, go sorted to the start of `kept`, which has room for twice as
// many.
template <class T>
void select(const T* x, int64_t step, const TopKCall& call, bool largest, RankedOf<T>* kept) {
  const int64_t k = call.k;
  const auto ranked = [&](int64_t i) {
    const auto key = ordered_key(x[i * step]);
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
      if (!any_before(x + i * step, step, x[kept[k - 1].position * step], largest)) continue;
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
    const T bound = x[last.position * step];
    while (i < call.size && count < 2 * k) {
      const int64_t end = std::min(call.size, i + kTogether);
      if (end - i == kTogether && !any_before(x + i * step, step, bound, largest)) {
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

// Lines [begin, end) whose elements are neighbours, or lie so far apart that they are copied first.
template <class T>
void run_lines(const TopKCall& call, bool largest, const T* x, T* values, int64_t* indices,
               const TopKWorkspace<T>& workspace, int64_t begin, int64_t end) {
  for (int64_t line = begin; line < end;) {
    const int64_t outer = line / call.inner, inner = line % call.inner;
    const int64_t count = std::min({call.together, call.inner - inner, end - line});
    const T* elements = x + outer * call.size * call.inner + inner;
    constexpr int64_t kRows = 512;  // whose neighbours stay in the first cache
    for (int64_t first = 0; call.together > 1 && first < call.size; first += kRows) {
      const int64_t behind = std::min(first + kRows, call.size);
      for (int64_t j = 0; j < count; ++j) {
        T* to = workspace.lines + j * call.copied_step();
        for (int64_t i = first; i < behind; ++i) to[i] = elements[i * call.inner + j];
      }
    }
    for (int64_t j = 0; j < count; ++j) {
      if (call.together > 1) {
        select(workspace.lines + j * call.copied_step(), 1, call, largest, workspace.kept);
      } else {
        select(elements + j, call.inner, call, largest, workspace.kept);
      }
      const int64_t start = outer * call.k * call.inner + inner + j;
      for (int64_t i = 0; i < call.k; ++i) {
        const int64_t at = start + i * call.inner;
        if (values) values[at] = elements[workspace.kept[i].position * call.inner + j];
        if (indices) indices[at] = workspace.kept[i].position;
      }
    }
    line += count;
  }
}

// Lines [begin, end) by columns.
void run_columns(const TopKCall& call, const TopKForm& form, const std::byte* x, std::byte* values, int64_t* indices,
                 int64_t begin, int64_t end) {
  const auto item = static_cast<int64_t>(item_bytes(form.dtype));
  TopKColumns columns;
  columns.lane = *lane_of(form.dtype);
  columns.largest = form.largest;
  columns.size = call.size;
  columns.kept = call.k;
  columns.step = call.inner;
  for (int64_t line = begin; line < end; line += columns.columns) {
    const int64_t outer = line / call.inner, inner = line % call.inner, to = outer * call.k * call.inner + inner;
    columns.columns = std::min(call.inner - inner, end - line);
    columns.src = x + (outer * call.size * call.inner + inner) * item;
    columns.values = values ? values + to * item : nullptr;
    columns.indices = indices ? indices + to : nullptr;
    form.kernel(columns);
  }
}

// Lines [begin, end) of a few elements, turned into columns and back.
template <class T>
void run_short(const TopKCall& call, const TopKForm& form, const T* x, T* values, int64_t* indices,
               std::byte* workspace, int64_t begin, int64_t end) {
  auto* places = reinterpret_cast<int64_t*>(workspace);
  T* block = reinterpret_cast<T*>(places + kShortLines * call.k);
  T* found = block + kShortLines * call.size;
  TopKColumns columns;
  columns.lane = *lane_of(form.dtype);
  columns.largest = form.largest;
  columns.size = call.size;
  columns.kept = call.k;
  columns.step = kShortLines;
  columns.src = block;
  columns.values = values ? found : nullptr;
  columns.indices = indices ? places : nullptr;
  for (int64_t line = begin; line < end; line += kShortLines) {
    columns.columns = std::min(kShortLines, end - line);
    // f(the line's column, its first element in an operand of so many elements a line)
    const auto for_lines = [&](int64_t size, auto f) {
      int64_t outer = line / call.inner, inner = line % call.inner;
      for (int64_t j = 0; j < columns.columns; ++j) {
        f(j, outer * size * call.inner + inner);
        if (++inner == call.inner) inner = 0, ++outer;
      }
    };
    for_lines(call.size, [&](int64_t j, int64_t from) {
      for (int64_t i = 0; i < call.size; ++i) block[i * kShortLines + j] = x[from + i * call.inner];
    });
    form.kernel(columns);
    for_lines(call.k, [&](int64_t j, int64_t to) {
      for (int64_t i = 0; i < call.k; ++i) {
        if (values) values[to + i * call.inner] = found[i * kShortLines + j];
        if (indices) indices[to + i * call.inner] = places[i * kShortLines + j];
      }
    });
  }
}

// All lines, by a team. `values` and `indices` may be null.
template <class T>
void run_call(const TopKCall& call, const TopKForm& form, const std::byte* x, std::byte* values, std::byte* indices,
              std::byte* scratch, Team& team) {
  auto* places = reinterpret_cast<int64_t*>(indices);
  run_tasks_with<std::byte>(team, call.split, scratch, [&](int64_t begin, int64_t end, std::byte* workspace) {
    if (call.is_by_columns()) return run_columns(call, form, x, values, places, begin, end);
    if (call.is_short())
      return run_short<T>(call, form, reinterpret_cast<const T*>(x), reinterpret_cast<T*>(values), places, workspace,
                          begin, end);
    run_lines<T>(call, form.largest, reinterpret_cast<const T*>(x), reinterpret_cast<T*>(values), places,
                 TopKWorkspace<T>(call, workspace), begin, end);
  });
}

template <class T>
TopKCall split_call(const Dims& dims, int axis, int64_t k, int threads) {
  TopKCall call = TopKCall::of(dims, axis, k);
  call.split =
      TaskSplit::of(call.lines, call.lines * (20 * call.size + 32 * call.k), TopKWorkspace<T>::bytes(call), threads);
  return call;
}

template <class T>
class TopKStep final : public KernelStep {
 public:
  TopKStep(int64_t axis, const TopKForm& form, int values, int indices, int threads)
      : axis_(axis), form_(form), values_(values), indices_(indices), threads_(threads) {}

  Prepared prepare(std::span<const Arg> args) const override {
    for (const Arg& arg : args) NEO_ASSERT(arg.is_dense(), "it takes whole lines");
    const Dims& dims = args[0].dims;
    const int axis = axis_from_front(axis_, static_cast<int>(dims.size()));
    const TopKCall call = split_call<T>(dims, axis, args[1].dims[static_cast<size_t>(axis)], threads_);
    return Prepared::of(call, call.split.scratch_bytes());
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& call = *reinterpret_cast<const TopKCall*>(prepared);
    const auto result = [&](int argument) { return argument < 0 ? nullptr : args[argument]; };
    run_call<T>(call, form_, args[0], result(values_), result(indices_), scratch, team);
  }

 private:
  int64_t axis_;
  TopKForm form_;
  int values_;  // arguments; -1: not wanted
  int indices_;
  int threads_;  // of the team that it is compiled for
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
    case DType::Int8:
      f(int8_t{0});
      return true;
    case DType::UInt8:
      f(uint8_t{0});
      return true;
    case DType::Int16:
      f(int16_t{0});
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
class TopKHostStep final : public NodeStep {
 public:
  TopKHostStep(const Candidate& candidate, const OpRegistry& ops, const TopKForm& form)
      : NodeStep(candidate, ops), form_(form) {}

 private:
  void compute(ReferenceContext& ctx, Team& team) const override {
    const Tensor& x = ctx.input(0);
    Dims dims = x.dims();
    const int axis = ctx.axis(node().int_attr("axis", -1), x.rank());
    int64_t& size = dims[static_cast<size_t>(axis)];
    const int64_t k = scalar_int(ctx, 1);
    ctx.check(k >= 0 && k <= size, str("k must lie inside the axis. Got ", k, ", expected 0 to ", size));
    with_element(x.dtype(), [&]<class T>(T) {
      const TopKCall call = split_call<T>(dims, axis, k, team.size());
      size = k;
      std::byte* values = ctx.has_output(0) ? ctx.output(0, x.dtype(), dims).as<std::byte>() : nullptr;
      std::byte* indices = ctx.has_output(1) ? ctx.output(1, DType::Int64, dims).as<std::byte>() : nullptr;
      const Tensor scratch(DType::UInt8, {std::max<int64_t>(1, call.split.scratch_bytes())});
      run_call<T>(call, form_, x.as<std::byte>(), values, indices, scratch.as<std::byte>(), team);
    });
  }

  TopKForm form_;
};

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

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry& ops,
                                         PackedStore&) {
    const Node& node = candidate.workload->root();
    if (candidate.kind == Candidate::Kind::Host)
      return std::make_unique<TopKHostStep>(candidate, ops, TopKForm::of(node, target));
    std::unique_ptr<Step> made;
    with_element(node.inputs.front()->dtype(), [&]<class T>(T) { made = step<T>(node, target); });
    return made;
  }

 private:
  template <class T>
  static std::unique_ptr<Step> step(const Node& node, const Target& target) {
    const int values = node.output(0) ? 1 : -1;
    const int indices = node.output(1) ? (values < 0 ? 1 : 2) : -1;
    return std::make_unique<TopKStep<T>>(node.int_attr("axis", -1), TopKForm::of(node, target), values, indices,
                                         target.threads);
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(top_k, TopKRoutine)

}  // namespace neo
