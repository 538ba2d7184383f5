#include <algorithm>
#include <cmath>

#include "routines/cost/step_cost.h"
#include "routines/cpu/reduce/reduce_plan.h"
#include "routines/cpu/reduce/run_time_axes.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"
#include "routines/patterns/float_tensor.h"
#include "routines/patterns/norm.h"

NEO_DECLARE_TIERS(void reduce_tasks(const ReduceArgs&, int64_t, int64_t);
                  void softmax_tasks(const SoftmaxArgs&, int64_t, int64_t);
                  void double_softmax_tasks(const DoubleSoftmaxArgs&, int64_t, int64_t);
                  void norm_tasks(const NormArgs&, int64_t, int64_t);
                  void double_norm_tasks(const DoubleNormArgs&, int64_t, int64_t))

namespace neo {
namespace {

class ReduceRoutine final : public RoutineOf<ReduceRoutine> {
 public:
  std::string_view name() const override { return "cpu:float32/reduce"; }
  std::vector<std::string_view> roots() const override {
    return {"ReduceSum",         "ReduceMean",    "ReduceMax",       "ReduceMin",    "ReduceL1",
            "ReduceL2",          "ReduceProd",    "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp",
            "GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"};
  }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    const Node& node = workload.root();
    if (!is_float_tensor(node.inputs.front())) return "the input is not a float32 tensor of known rank";
    if (!reduce_kind(node)) return "there is no kernel for its power";
    if (!workload.outputs.front()->shape().has_rank()) return "the rank of the result is not known";
    if (!reduced_run(node) && !has_run_time_axes(node)) return "the axes are not known neighbours";
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    constexpr double kExpCycles = 10;
    const Node& node = workload.root();
    const ReduceShape shape = shape_along(node.inputs.front()->shape().hint_dims(), likely_run(node));
    Candidate c = reduction_candidate(workload);
    price(c, workload, reduction_load(StepFamily::Reduce, shape, node.op == "ReduceLogSumExp" ? kExpCycles : 1, target),
          target);
    return {std::move(c)};
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry& ops,
                                         PackedStore&) {
    const Node& node = candidate.workload->root();
    ReduceArgs args;
    args.kind = *reduce_kind(node);
    return make_reduction(candidate, target, ops, args, reduced_run(node), NEO_PICK_TIER(target.isa, reduce_tasks));
  }
};

// The kernels of float32 and of float64, whose names have the prefix `double_`.
template <class T>
struct RowKernels {
  static constexpr DType kDType = DType::Float32;
  static constexpr std::string_view kSoftmax = "cpu:float32/softmax", kNorm = "cpu:float32/norm";
  static auto softmax(Isa isa) { return NEO_PICK_TIER(isa, softmax_tasks); }
  static auto norm(Isa isa) { return NEO_PICK_TIER(isa, norm_tasks); }
};
template <>
struct RowKernels<double> {
  static constexpr DType kDType = DType::Float64;
  static constexpr std::string_view kSoftmax = "cpu/softmax", kNorm = "cpu/norm";
  static auto softmax(Isa isa) { return NEO_PICK_TIER(isa, double_softmax_tasks); }
  static auto norm(Isa isa) { return NEO_PICK_TIER(isa, double_norm_tasks); }
};

template <class T>
class SoftmaxRoutine final : public RoutineOf<SoftmaxRoutine<T>> {
 public:
  std::string_view name() const override { return RowKernels<T>::kSoftmax; }
  std::vector<std::string_view> roots() const override { return {"Softmax", "LogSoftmax"}; }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    const Value* input = workload.root().inputs.front();
    if (auto why = reject_value(input, RowKernels<T>::kDType)) return why;
    return input->shape().rank() == 0 ? std::optional<std::string>("the input has no axis") : std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const Shape& x = workload.root().inputs.front()->shape();
    const int axis = axis_from_front(workload.root().int_attr("axis", -1), x.rank());
    Candidate c = Candidate::plain(workload);
    price(c, workload, reduction_load(StepFamily::Softmax, shape_along(x.hint_dims(), {axis, axis}), 1, target),
          target);
    c.in_place = 0;
    return {std::move(c)};
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore&) {
    const Node& node = candidate.workload->root();
    const int axis = axis_from_front(node.int_attr("axis", -1), node.inputs.front()->shape().rank());
    SoftmaxArgsOf<T> args;
    args.logarithm = node.op == "LogSoftmax";
    return std::make_unique<ReductionStep<SoftmaxArgsOf<T>>>(args, AxisRun{axis, axis},
                                                             RowKernels<T>::softmax(target.isa));
  }
};

// Which part of the input one mean and variance are taken over, and how scale and bias lie along it.
struct NormForm {
  int64_t first_axis = 0;  // of the row
  bool centred = true;
  int64_t groups = 0;  // GroupNormalization; InstanceNormalization: one per channel
  bool per_channel = false;
  double epsilon = 1e-5;
};

struct NormPlan {
  ReduceShape shape;
  int64_t channels = 0;
  int64_t span = 1;
};

template <class T>
class NormStep final : public KernelStep {
 public:
  using Kernel = void (*)(const NormArgsOf<T>& args, int64_t begin, int64_t end);

  // `scale` and `bias` are places among the inputs, of which there are `inputs`; -1 where there is none.
  NormStep(NormForm form, int scale, int bias, int inputs, int outputs, Kernel kernel)
      : form_(form), scale_(scale), bias_(bias), inputs_(inputs), outputs_(outputs), kernel_(kernel) {}

  Prepared prepare(std::span<const Arg> args) const override {
    const Dims& dims = args[0].dims;
    const int rank = static_cast<int>(dims.size());
    NormPlan plan;
    if (!form_.per_channel) {
      plan.shape = shape_along(dims, {axis_from_front(form_.first_axis, rank), rank - 1});
      return Prepared::of(plan);
    }
    plan.channels = dims[1];
    for (int i = 2; i < rank; ++i) plan.span *= dims[static_cast<size_t>(i)];
    const int64_t groups = form_.groups > 0 ? form_.groups : dims[1];
    plan.shape = shape_along({dims[0] * groups, dims[1] / std::max<int64_t>(1, groups) * plan.span}, {1, 1});
    return Prepared::of(plan);
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte*, Team& team) const override {
    const auto& plan = *reinterpret_cast<const NormPlan*>(prepared);
    const auto numbers = [&](int i) { return i < 0 ? nullptr : reinterpret_cast<T*>(args[i]); };
    NormArgsOf<T> call;
    call.shape = plan.shape;
    call.centred = form_.centred;
    call.epsilon = static_cast<T>(form_.epsilon);
    call.src = numbers(0);
    call.scale = numbers(scale_);
    call.bias = numbers(bias_);
    call.channels = plan.channels;
    call.span = plan.span;
    call.dst = numbers(inputs_);
    if (outputs_ > 1) call.mean = numbers(inputs_ + 1);
    if (outputs_ > 2) call.inverse_deviation = numbers(inputs_ + 2);
    run_reduction(kernel_, call, team);
  }

 private:
  NormForm form_;
  int scale_;
  int bias_;
  int inputs_;
  int outputs_;
  Kernel kernel_;
};

template <class T>
class NormRoutine final : public RoutineOf<NormRoutine<T>> {
 public:
  std::string_view name() const override { return RowKernels<T>::kNorm; }
  std::vector<std::string_view> roots() const override {
    return {"LayerNormalization", "RMSNormalization", "InstanceNormalization", "GroupNormalization"};
  }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    return reject_norm(workload, RowKernels<T>::kDType);
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const Node& node = workload.root();
    const Dims x = node.inputs.front()->shape().hint_dims();
    const int rank = static_cast<int>(x.size());
    const int first = node.op == "InstanceNormalization" ? 2
                      : node.op == "GroupNormalization"  ? 1
                                                         : axis_from_front(node.int_attr("axis", -1), rank);
    Candidate c = Candidate::plain(workload);
    price(c, workload, reduction_load(StepFamily::Norm, shape_along(x, {first, rank - 1}), 1, target), target);
    return {std::move(c)};
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore&) {
    const Node& node = candidate.workload->root();
    NormForm form;
    form.first_axis = node.int_attr("axis", -1);
    form.centred = node.op != "RMSNormalization";
    form.per_channel = node.op == "InstanceNormalization" || node.op == "GroupNormalization";
    form.groups = node.int_attr("num_groups", 0);
    form.epsilon = node.float_attr("epsilon", 1e-5F);
    const Workload& workload = *candidate.workload;
    const auto place = [&](size_t i) { return i < node.inputs.size() ? workload.input_index(node.inputs[i]) : -1; };
    return std::make_unique<NormStep<T>>(form, place(1), place(2), static_cast<int>(workload.inputs.size()),
                                         static_cast<int>(workload.outputs.size()), RowKernels<T>::norm(target.isa));
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(reduce, ReduceRoutine)
NEO_DEFINE_ROUTINE(softmax, SoftmaxRoutine<float>)
NEO_DEFINE_ROUTINE(typed_softmax, SoftmaxRoutine<double>)
NEO_DEFINE_ROUTINE(norm, NormRoutine<float>)
NEO_DEFINE_ROUTINE(typed_norm, NormRoutine<double>)

}  // namespace neo
