#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "ops/pool.h"
#include "routines/cost/step_cost.h"
#include "routines/cpu/tasks.h"
#include "routines/families.h"

namespace neo {
namespace {

struct UnpoolCall {
  int64_t pooled = 0, plane = 0;  // elements of a plane
  TaskSplit split;
};

// Elements of so many bytes, plane by plane; indices count the elements of the whole tensor.
class UnpoolStep final : public KernelStep {
 public:
  explicit UnpoolStep(int64_t width) : width_(width) {}

  Prepared prepare(std::span<const Arg> args) const override {
    for (const Arg& arg : args) NEO_ASSERT(arg.is_dense(), "it takes whole planes");
    const auto plane = [](const Dims& dims) { return element_count({dims.begin() + 2, dims.end()}); };
    UnpoolCall call;
    call.pooled = plane(args.front().dims);
    call.plane = plane(args.back().dims);
    const int64_t planes = args.back().dims[0] * args.back().dims[1];
    call.split = TaskSplit::of(planes, planes * (call.plane + 4 * call.pooled));
    return Prepared::of(call);
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte*, Team& team) const override {
    const auto& call = *reinterpret_cast<const UnpoolCall*>(prepared);
    const auto* places = reinterpret_cast<const int64_t*>(args[1]);
    run_tasks(team, call.split, [&](int64_t begin, int64_t end, int) {
      width_ == 4 ? unpool<float>(call, args[0], places, args[2], begin, end)
                  : unpool<double>(call, args[0], places, args[2], begin, end);
    });
  }

 private:
  template <class T>
  static void unpool(const UnpoolCall& call, const std::byte* x, const int64_t* places, std::byte* y, int64_t begin,
                     int64_t end) {
    const T* from = reinterpret_cast<const T*>(x);
    T* to = reinterpret_cast<T*>(y);
    for (int64_t plane = begin; plane < end; ++plane) {
      std::memset(to + plane * call.plane, 0, static_cast<size_t>(call.plane) * sizeof(T));
      for (int64_t i = plane * call.pooled; i < (plane + 1) * call.pooled; ++i) to[places[i]] = from[i];
    }
  }

  int64_t width_;
};

// MaxUnpool by the indices of a MaxPool whose input had the size of the output: each lies in its own plane.
class MaxUnpoolRoutine final : public RoutineOf<MaxUnpoolRoutine> {
 public:
  std::string_view name() const override { return "cpu/max_unpool"; }
  std::vector<std::string_view> roots() const override { return {"MaxUnpool"}; }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    const Node& node = workload.root();
    const Value *x = node.inputs[0], *y = node.outputs.front();
    const Node* pool = node.inputs[1]->producer;
    if (!pool || pool->op != "MaxPool" || pool->output(1) != node.inputs[1] || pool->int_attr("storage_order", 0) != 0)
      return "the indices are not those of a MaxPool";
    if (x->dtype() != DType::Float32 && x->dtype() != DType::Float64) return "there is no kernel for its dtype";
    const Shape& pooled = pool->inputs[0]->shape();
    if (!x->shape().has_rank() || !y->shape().has_rank() || !pooled.has_rank()) return "a rank is not known";
    if (pads(*pool, pooled.rank() - 2)) return "a window may have no element";
    const bool fits = y->shape() == pooled && x->shape() == pool->outputs.front()->shape() &&
                      unpooled_shape(node, x->shape()) == pooled;
    if (!fits) return "the output has not the size of what was pooled";
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    constexpr double kCycles = 2;  // for each element of the input
    Candidate c = Candidate::reading(workload, {workload.root().inputs[0], workload.root().inputs[1]});
    const auto count = [](const Value* v) { return static_cast<double>(v->shape().element_count().hint()); };
    const Value *x = workload.root().inputs[0], *y = workload.outputs.front();
    const auto width = static_cast<double>(item_bytes(x->dtype()));
    const double bytes = count(x) * (8 + width) + count(y) * width;
    c.cost.time_us = unfitted_us({cycles_us(kCycles * count(x), target), bytes}, target);
    return {std::move(c)};
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target&, const OpRegistry&, PackedStore&) {
    return std::make_unique<UnpoolStep>(item_bytes(candidate.workload->outputs.front()->dtype()));
  }

 private:
  static bool pads(const Node& pool, int axes) {
    const Window window = read_window(pool, axes);
    return window.auto_pad != AutoPad::NotSet || window.ceil_mode ||
           std::any_of(window.pads.begin(), window.pads.end(), [](int64_t pad) { return pad != 0; });
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(max_unpool, MaxUnpoolRoutine)

}  // namespace neo
