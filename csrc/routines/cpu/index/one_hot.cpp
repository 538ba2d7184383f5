#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "routines/cost/step_cost.h"
#include "routines/cpu/index/index.h"
#include "routines/cpu/tasks.h"
#include "routines/families.h"
#include "routines/patterns/epilogue.h"
#include "routines/patterns/movement.h"

namespace neo {
namespace {

struct OneHotFillCall {
  int64_t inner = 1;  // positions behind the new axis
  int64_t depth = 0;
  TaskSplit split;  // of positions before it
};

class OneHotFillStep final : public KernelStep {
 public:
  OneHotFillStep(int axis, int indices, DType index, int values, DType dtype)
      : axis_(axis), indices_(indices), index_(index), values_(values), dtype_(dtype) {}

  Prepared prepare(std::span<const Arg> args) const override {
    for (const Arg& arg : args) NEO_ASSERT(arg.is_dense(), "it takes dense tensors");
    const Dims& dims = args.back().dims;
    OneHotFillCall call;
    call.depth = dims[static_cast<size_t>(axis_)];
    const int64_t outer = count_between(dims, 0, axis_);
    call.inner = count_between(dims, axis_ + 1, static_cast<int>(dims.size()));
    call.split = TaskSplit::of(outer, outer * call.inner * (call.depth + 8));
    return Prepared::of(call);
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte*, Team& team) const override {
    const auto& call = *reinterpret_cast<const OneHotFillCall*>(prepared);
    std::byte* y = args[std::max(indices_, values_) + 1];
    run_tasks(team, call.split, [&](int64_t begin, int64_t end, int) {
      if (index_ == DType::Int32) {
        write(call, reinterpret_cast<const int32_t*>(args[indices_]), args[values_], y, begin, end);
      } else {
        write(call, reinterpret_cast<const int64_t*>(args[indices_]), args[values_], y, begin, end);
      }
    });
  }

 private:
  // The off value everywhere, then the on values; an index outside the axis has none.
  template <class Index>
  void write(const OneHotFillCall& call, const Index* index, const std::byte* values, std::byte* y, int64_t begin,
             int64_t end) const {
    const int64_t block = call.depth * call.inner;
    fill_elements(dtype_, y, begin * block, (end - begin) * block, values);
    with_width(item_bytes(dtype_), [&](auto width) {
      for (int64_t o = begin; o < end; ++o) {
        for (int64_t i = 0; i < call.inner; ++i) {
          const int64_t given = index[o * call.inner + i], at = given < 0 ? given + call.depth : given;
          if (at < 0 || at >= call.depth) continue;
          std::memcpy(y + (o * block + at * call.inner + i) * width, values + width, width);
        }
      }
    });
  }

  int axis_;
  int indices_;
  DType index_;
  int values_;
  DType dtype_;
};

class OneHotRoutine final : public RoutineOf<OneHotRoutine> {
 public:
  std::string_view name() const override { return "cpu/one_hot"; }
  std::vector<std::string_view> roots() const override { return {"OneHot"}; }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    const Node& node = workload.root();
    for (const Value* v : workload.inputs) {
      if (!v->type.is_tensor() || !v->shape().has_rank()) return "the rank of an input is not known";
    }
    const DType index = node.inputs[0]->dtype();
    if (index != DType::Int64 && index != DType::Int32) return "the indices are neither int32 nor int64";
    const Value* values = node.inputs[2];
    if (values->dtype() == DType::String) return "strings have owners of their own";
    if (!(values->shape().element_count() == Dim(2))) return "values may hold more than two elements";
    if (makes_sizes(node)) return "the depth is only known when it runs";
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const Node& node = workload.root();
    const Value* output = workload.outputs.front();
    Candidate c = Candidate::reading(workload, {node.inputs[0], node.inputs[2]});
    constexpr double kIndexCycles = 2;
    const auto indices = static_cast<double>(node.inputs[0]->shape().element_count().hint());
    const auto bytes = static_cast<double>(output->shape().element_count().hint() * item_bytes(output->dtype()));
    c.cost.time_us = unfitted_us({cycles_us(kIndexCycles * indices, target), bytes}, target);
    return {std::move(c)};
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target&, const OpRegistry&, PackedStore&) {
    const Node& node = candidate.workload->root();
    const auto axis = node.int_attr("axis", -1);
    const int rank = candidate.workload->outputs.front()->shape().rank();
    return std::make_unique<OneHotFillStep>(static_cast<int>(axis < 0 ? axis + rank : axis),
                                            argument_of(candidate, node.inputs[0]), node.inputs[0]->dtype(),
                                            argument_of(candidate, node.inputs[2]), node.inputs[2]->dtype());
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(one_hot, OneHotRoutine)

}  // namespace neo
