#include "routines/gpu/eltwise/eltwise.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "routines/gpu/eltwise/steps.h"
#include "routines/gpu/movement/axes.h"

namespace neo::gpu {

using kernel::Array;
using kernel::broadcast;
using kernel::Builder;
using kernel::Expr;

namespace {

constexpr int64_t kMaxEltwiseChannels = 1 << 20;

// The iteration space: neighbouring axes that every input has, or has not, are one.
struct Merged {
  std::vector<std::vector<int>> axes;  // physical axes of each merged one
  std::vector<std::vector<bool>> has;  // [input][merged axis]
  int block_axis = -1;                 // merged axis of the blocks whose last one is padded
};

Merged merge(const EltwiseProblem& p) {
  const int rank = p.layout.rank() + static_cast<int>(p.layout.blocks().size());
  const size_t inputs = p.has.size();
  Merged m;
  m.has.resize(inputs);
  for (int axis = 0; axis < rank; ++axis) {
    const bool apart = p.pads && (axis == 1 || axis == 2 || axis == rank - 1);
    const bool same =
        !m.axes.empty() && !apart && std::all_of(p.has.begin(), p.has.end(), [&](const std::vector<bool>& has) {
          return has[static_cast<size_t>(axis)] == has[static_cast<size_t>(axis - 1)];
        });
    if (same) {
      m.axes.back().push_back(axis);
      continue;
    }
    m.axes.push_back({axis});
    for (size_t i = 0; i < inputs; ++i) m.has[i].push_back(p.has[i][static_cast<size_t>(axis)]);
    if (p.pads && axis == 1) m.block_axis = static_cast<int>(m.axes.size()) - 1;
  }
  if (m.axes.empty()) {
    m.axes.emplace_back();
    for (auto& has : m.has) has.push_back(true);
  }
  return m;
}

// The merged sizes of an output.
std::vector<int64_t> merged_sizes(const Merged& m, const Layout& layout, const Dims& dims) {
  const Dims physical = layout.physical_dims(dims);
  std::vector<int64_t> sizes;
  for (const std::vector<int>& axes : m.axes) {
    sizes.push_back(std::accumulate(axes.begin(), axes.end(), int64_t{1},
                                    [&](int64_t n, int axis) { return n * physical[static_cast<size_t>(axis)]; }));
  }
  return sizes;
}

// An input of so many merged axes that its indices are not proven to fit 32 bits.
bool is_guarded(const Merged& m, size_t input) {
  const auto own = std::count(m.has[input].begin(), m.has[input].end(), true);
  return own > 2 && own < static_cast<std::ptrdiff_t>(m.axes.size());
}

class EltwiseWriter {
 public:
  EltwiseWriter(const EltwiseProblem& problem, const EltwiseSchedule& schedule)
      : p_(problem), s_(schedule), m_(merge(problem)), b_("eltwise") {}

  kernel::Kernel write() {
    const EltwiseStep* const steps = p_.program.step;
    // Codes are those of the CPU.
    if (std::any_of(steps, steps + p_.program.steps, [](const EltwiseStep& s) { return s.op == EltwiseOp::Quantize; }))
      b_.round_each();
    const size_t axes = m_.axes.size();
    const Expr items =
        b_.size("items", 1, kMaxElements / s_.lanes);  // without rows: vectors of the output; else vectors of a row
    const Expr rows = s_.rows && axes > 1 ? b_.size("rows", 1, kMaxRows) : Expr(1);
    std::vector<Expr> sizes;
    for (size_t i = 0; i < axes; ++i) {
      const bool blocks = static_cast<int>(i) == m_.block_axis;
      const int64_t most = blocks ? kMaxEltwiseChannels : kMaxElements;
      sizes.push_back(b_.size("s" + std::to_string(i), 1, i + 1 == axes && !s_.rows ? most / s_.lanes : most));
    }
    Expr& inner = sizes.back();  // in vectors
    const Expr vectors = inner;
    if (!s_.rows) inner = inner * s_.lanes;
    if (p_.pads) channels_ = b_.size("channels", 1, kMaxEltwiseChannels);
    sizes_ = sizes;
    const Expr all = s_.rows ? (axes > 1 ? rows * inner : inner) : items * s_.lanes;
    for (size_t i = 0; i < p_.has.size(); ++i) {
      const bool is_whole = std::all_of(m_.has[i].begin(), m_.has[i].end(), [](bool x) { return x; });
      elements_.push_back(is_whole            ? Expr()
                          : is_guarded(m_, i) ? b_.size("n" + std::to_string(i), 1, kMaxElements)
                                              : product(own_of(i, sizes)));
      const EltwiseType type = p_.program.type[i];
      inputs_.push_back(b_.input("x" + std::to_string(i), memory_dtype(type), is_whole ? all : elements_.back(),
                                 storage_dtype(type)));
    }
    const EltwiseType result = p_.program.type[p_.program.inputs];
    output_.push_back(b_.output("y", memory_dtype(result), all, storage_dtype(result)));

    if (!s_.rows) {
      each_item(b_, items, s_.threads, [&](const Expr& item) {
        std::vector<Expr> counted = sizes;
        counted.back() = vectors;
        std::vector<Expr> at = split_index(b_, item, counted);
        const auto body = [&] {
          at.back() = at.back() * s_.lanes;
          element(at, item * s_.lanes, s_.lanes);
        };
        if (axes == 1) return body();
        b_.when(at[0] < counted[0], body);
      });
      return b_.finish();
    }
    const Expr row = axes > 1 ? b_.group(1, "row", rows) : Expr(0);
    each_item(b_, items, s_.threads, [&](const Expr& item) {
      const std::vector<Expr> outer(sizes.begin(), sizes.end() - 1);
      std::vector<Expr> at = split_index(b_, row, outer);
      const auto place = [&](const Expr& column) { return axes > 1 ? row * inner + column : column; };
      const auto body = [&] {
        const Expr first = b_.let("first", item * s_.lanes);
        at.push_back(first);
        if (s_.lanes == 1) {
          b_.when(first < inner, [&] { element(at, place(first), 1); });
          return;
        }
        b_.when(
            first + s_.lanes <= inner, [&] { element(at, place(first), s_.lanes); },
            [&] {
              b_.loop("i", first, inner, [&](const Expr& i) {
                at.back() = i;
                element(at, place(i), 1);
              });
            });
      };
      if (at.empty()) return body();
      b_.when(at[0] < sizes[0], body);
    });
    return b_.finish();
  }

 private:
  // The entries of `all`, one per merged axis, for the axes that an input has.
  std::vector<Expr> own_of(size_t input, const std::vector<Expr>& all) const {
    std::vector<Expr> own;
    for (size_t a = 0; a < all.size(); ++a) {
      if (m_.has[input][a]) own.push_back(all[a]);
    }
    return own;
  }

  // `lanes` elements from the place `at` on, which is element `linear` of the output, along the innermost axis.
  void element(const std::vector<Expr>& at, const Expr& linear, int lanes) {
    std::vector<Expr> places;
    Expr inside = kernel::integer(1, kernel::kBool);
    bool guarded = false;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!elements_[i].defined()) {
        places.push_back(linear);
        continue;
      }
      const std::vector<Expr> own = own_of(i, at), sizes = own_of(i, sizes_);
      if (!is_guarded(m_, i)) {
        places.push_back(join_index(own, sizes));
        continue;
      }
      const Expr place = join_index_unproven(b_, own, sizes);
      const Expr fits = place >= 0 && place <= elements_[i] - (m_.has[i].back() ? lanes : 1);
      inside = guarded ? inside && fits : fits;
      guarded = true;
      places.push_back(place);
    }
    if (!guarded) return compute(places, at, linear, lanes);
    b_.when(inside, [&] { compute(places, at, linear, lanes); });
  }

  void compute(const std::vector<Expr>& places, const std::vector<Expr>& at, const Expr& linear, int lanes) {
    const DType computed = p_.whole ? DType::Int64 : DType::Float32;
    std::vector<Expr> values;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      Expr x = inputs_[i].at(places[i], m_.has[i].back() ? lanes : 1);
      if (x->type.dtype != computed) x = cast(x, computed);
      if (x->type.lanes < lanes) x = broadcast(x, lanes);
      values.push_back(b_.let("v", x));
    }
    std::vector<Expr> registers(kEltwiseMaxRegisters);
    Expr result;
    const auto operand = [&](int8_t x) -> Expr {
      if (x >= 0) return registers[static_cast<size_t>(x)];
      return static_cast<size_t>(-1 - x) < values.size() ? values[static_cast<size_t>(-1 - x)] : Expr();
    };
    for (int i = 0; i < p_.program.steps; ++i) {
      const EltwiseStep& step = p_.program.step[i];
      const Expr a = operand(step.a), b = operand(step.b), c = operand(step.c);
      const Expr value = b_.let("r", p_.whole ? apply_whole_step(step.op, a, b, c) : apply_step(b_, step, a, b, c));
      (step.dst < 0 ? result : registers[static_cast<size_t>(step.dst)]) = value;
    }
    store(at, linear, result, lanes);
  }

  void store(const std::vector<Expr>& at, const Expr& linear, Expr value, int lanes) {
    if (p_.pads) {
      const int64_t block = p_.layout.blocks().front().size;
      std::vector<Expr> places;
      for (int i = 0; i < lanes; ++i) places.push_back(kernel::integer(i));
      const Expr first = b_.let("channel", at[static_cast<size_t>(m_.block_axis)] * block + at.back());
      const Expr channel = lanes == 1 ? first : broadcast(first, lanes) + kernel::vector(places);
      const Expr limit = lanes == 1 ? channels_ : broadcast(channels_, lanes);
      value = select(channel < limit, value, number(0, lanes));
    }
    const EltwiseType type = p_.program.type[p_.program.inputs];
    if (type == EltwiseType::Bool) value = select(value != number(0, lanes), number(1, lanes), number(0, lanes));
    if (value->type.dtype != memory_dtype(type)) value = cast(value, memory_dtype(type));
    output_.front().at(linear, lanes) = value;
  }

  Expr number(int64_t n, int lanes) const {
    const Expr one = p_.whole ? kernel::integer(n, {DType::Int64, 1}) : kernel::real(static_cast<double>(n));
    return lanes == 1 ? one : broadcast(one, lanes);
  }

  const EltwiseProblem& p_;
  EltwiseSchedule s_;
  Merged m_;
  Builder b_;
  std::vector<Expr> sizes_, elements_;  // elements: undefined where an input is as large as the output
  Expr channels_;
  std::vector<Array> inputs_, output_;
};

}  // namespace

std::unique_ptr<Program> make_eltwise(const EltwiseProblem& problem, const EltwiseSchedule& schedule) {
  NEO_ASSERT(!problem.whole || schedule.lanes == 1, "vectors of int64 are not compared. Got ", schedule.lanes);
  const auto launches = [m = merge(problem), layout = problem.layout, pads = problem.pads,
                         schedule](std::span<const Dims> shapes) {
    const Dims& dims = shapes.back();
    Launches all;
    if (element_count(dims) == 0) return all;
    std::vector<int64_t> sizes = merged_sizes(m, layout, dims);
    const int64_t inner = sizes.back();
    const int64_t outer = std::accumulate(sizes.begin(), sizes.end() - 1, int64_t{1}, std::multiplies<>());
    KernelLaunch launch;
    const int64_t vectors = (inner + schedule.lanes - 1) / schedule.lanes;
    if (!schedule.rows) {
      NEO_ASSERT(inner % schedule.lanes == 0, "Got rows of ", inner);
      sizes.back() = vectors;
    }
    launch.arguments.emplace_back(schedule.rows ? vectors : vectors * outer);
    if (schedule.rows && sizes.size() > 1) launch.arguments.emplace_back(outer);
    for (const int64_t size : sizes) launch.arguments.emplace_back(size);
    if (pads) launch.arguments.emplace_back(dims[1]);
    for (size_t i = 0; i < shapes.size(); ++i) {
      if (i + 1 < shapes.size() && is_guarded(m, i)) {
        const std::vector<int64_t> whole = merged_sizes(m, layout, dims);
        int64_t count = 1;
        for (size_t a = 0; a < whole.size(); ++a) count *= m.has[i][a] ? whole[a] : 1;
        launch.arguments.emplace_back(count);
      }
      launch.arguments.emplace_back(Operand{static_cast<int>(i)});
    }
    all.launches.push_back(std::move(launch));
    return all;
  };
  std::vector<kernel::Kernel> kernels;
  kernels.push_back(EltwiseWriter(problem, schedule).write());
  return make_program(std::move(kernels), launches);
}

EltwiseSchedule default_schedule(const EltwiseProblem& problem, const Dims& dims, bool is_constant, int lanes) {
  const Merged m = merge(problem);
  const std::vector<int64_t> sizes = merged_sizes(m, problem.layout, dims);
  const int64_t inner = sizes.back();
  const int64_t outer = std::accumulate(sizes.begin(), sizes.end() - 1, int64_t{1}, std::multiplies<>());
  EltwiseSchedule s;
  if (problem.whole) lanes = 1;
  if (problem.pads) {
    s.lanes = dividing_lanes(problem.layout.blocks().front().size, lanes);
    return s;
  }
  // A row's last vectors go one by one: only rows of several vectors gain.
  if (sizes.size() == 1 || (is_constant && outer <= kMaxRows && inner >= 2 * lanes)) {
    s.rows = true;
    s.lanes = static_cast<int>(std::min<int64_t>(lanes, std::max<int64_t>(1, inner / 2)));
    while ((s.lanes & (s.lanes - 1)) != 0) s.lanes &= s.lanes - 1;
    while (s.threads > 8 && int64_t{s.threads} * s.lanes / 2 >= inner) s.threads /= 2;
    return s;
  }
  s.lanes = is_constant ? dividing_lanes(inner, lanes) : 1;
  return s;
}

}  // namespace neo::gpu
