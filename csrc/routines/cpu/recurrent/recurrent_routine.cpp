#include <algorithm>

#include "routines/cost/step_cost.h"
#include "routines/cpu/recurrent/codes_product.h"
#include "routines/cpu/recurrent/recurrent_cost.h"
#include "routines/cpu/recurrent/recurrent_step.h"
#include "routines/cpu/tasks.h"
#include "routines/families.h"
#include "routines/space.h"

namespace neo {
namespace {

constexpr double kLayerStepUs = 1;  // of a step, beside its layer's work
constexpr int64_t kMinExponentPacked = 1 << 18;
// Weights of both products, per thread or in all, up to which those of the input are read again for every few steps.
constexpr int64_t kBytesBeside = 16 << 20;

// Inputs that a step reads when it runs.
std::vector<std::optional<Schema>> inputs_of(const Workload& workload, const RecurrentForm& form) {
  std::vector<std::optional<Schema>> inputs(workload.inputs.size());
  std::vector<const Value*> read = {form.x, form.lengths, form.initial_h, form.initial_c};
  if (!form.has_constant_weights) read.insert(read.end(), {form.w, form.r, form.b, form.peepholes});
  for (const Value* v : read) {
    if (v) inputs[static_cast<size_t>(workload.input_index(v))] = plain_schema(v->type);
  }
  return inputs;
}

Candidate candidate_of(const Workload& workload, const RecurrentMethod& method, const Target& target) {
  const RecurrentForm form = *read_recurrent(workload.root(), nullptr);
  const RecurrentKernels kernels = RecurrentKernels::of(target);
  Candidate c;
  c.inputs = inputs_of(workload, form);
  for (const Value* v : workload.outputs) c.outputs.push_back(plain_schema(v->type));
  const int64_t steps = steps_of(form).hint(), batch = batch_of(form).hint(), width = gates_width(form, target.lanes());
  c.cost.time_us = kLayerStepUs + recurrent_us(form, method, steps, batch, target);
  c.cost.error = std::max(method.input_levels > 0 ? strassen_error(method.input_levels) : 0,
                          method.levels > 0 ? strassen_error(method.levels) : 0);
  const RecurrentPacking packing = packing_of(form, method, kernels, target.threads);
  const int64_t groups = form.directions * packing.groups;
  const int64_t recurrent =
      method.way == RecurrentWay::ExponentPacked ? exponent_packed_cells(form, form.gates, target.lanes()).size()
      : method.levels == 0                       ? width * form.hidden
                                                 : groups * (strassen_weight_size(packing.recurrent) +
                                       (packing.candidate.levels > 0 ? strassen_weight_size(packing.candidate) : 0));
  const int64_t projection = method.input_levels > 0 ? strassen_weight_size(packing.projection) : width * form.input;
  c.cost.packed_bytes = (2 * width + projection + recurrent) * 4;
  const InputTiles tiles = input_tiles(form, method, kernels, steps, batch);
  const bool fused = takes_input(form, method, kernels, steps, batch);
  c.cost.workspace_bytes = (fused ? 0 : tiles.small > 0 ? 2 * tiles.large : steps * batch) * width * 4;
  if (method.way == RecurrentWay::InputBeside) c.schedule["beside"] = 1;
  if (method.input_levels > 0) c.schedule["input_levels"] = method.input_levels;
  if (method.levels > 0) c.schedule["levels"] = method.levels;
  return c;
}

RecurrentMethod method_of(const Schedule& schedule, RecurrentWay way) {
  return {value_of(schedule, "beside") > 0 ? RecurrentWay::InputBeside : way, value_of(schedule, "input_levels"),
          value_of(schedule, "levels")};
}

// All inputs first, with each number of Strassen's levels for each product.
std::vector<Candidate> with_levels(const Workload& workload, RecurrentWay way, const Target& target) {
  const RecurrentForm form = *read_recurrent(workload.root(), nullptr);
  const RecurrentKernels kernels = RecurrentKernels::of(target);
  std::vector<Candidate> found;
  for (int64_t levels = 0; levels <= kStrassenLevels; ++levels) {
    for (int64_t input_levels = 0; input_levels <= kStrassenLevels; ++input_levels) {
      const RecurrentMethod method{way, input_levels, levels};
      if (takes_strassen(form, method, kernels)) found.push_back(candidate_of(workload, method, target));
    }
  }
  return found;
}

// LSTM, GRU and RNN, the product with R and the gates in one pass. Its parameters:
//   beside        1: a batch of one multiplies the inputs of some steps beside the product with R of the steps before;
//                 else those of all steps first, as one matrix product
//   input_levels  of Strassen's algorithm, by which that is done
//   levels        by which the product with R is done, of all rows of a batch
class RecurrentRoutine final : public RoutineOf<RecurrentRoutine> {
 public:
  std::string_view name() const override { return "cpu:float32/recurrent"; }
  std::vector<std::string_view> roots() const override { return {"LSTM", "GRU", "RNN"}; }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    std::string why;
    const std::optional<RecurrentForm> form = read_recurrent(workload.root(), &why);
    if (!form) return why;
    return form->dtype == DType::Float32 ? std::nullopt : std::optional<std::string>("the numbers are float64");
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const RecurrentForm form = *read_recurrent(workload.root(), nullptr);
    std::vector<Candidate> found = with_levels(workload, RecurrentWay::InputFirst, target);
    const int64_t bytes = gates_width(form, target.lanes()) * (form.input + form.hidden) * 4;
    if (has_beside(form, target) && bytes <= std::max(kBytesBeside * target.threads, kLastCacheBytes)) {
      found.push_back(candidate_of(workload, {RecurrentWay::InputBeside}, target));
    }
    return found;
  }

  Space space(const Workload& workload, const Target& target) const override {
    const RecurrentForm form = *read_recurrent(workload.root(), nullptr);
    return Space({{"beside", {0, 1}}, {"input_levels", {0, 1, 2}}, {"levels", {0, 1, 2}}},
                 [&](std::span<const int64_t> v) {
                   const RecurrentWay way = v[0] > 0 ? RecurrentWay::InputBeside : RecurrentWay::InputFirst;
                   return (v[0] == 0 || has_beside(form, target)) &&
                          takes_strassen(form, {way, v[1], v[2]}, RecurrentKernels::of(target));
                 });
  }

  Candidate candidate(const Workload& workload, const Target& target, const OpRegistry&,
                      const Schedule& schedule) const override {
    return candidate_of(workload, method_of(schedule, RecurrentWay::InputFirst), target);
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore& packed) {
    return make_recurrent_step(candidate, method_of(candidate.schedule, RecurrentWay::InputFirst), target, packed);
  }

 private:
  static bool has_beside(const RecurrentForm& form, const Target& target) {
    return input_tiles(form, {RecurrentWay::InputBeside}, RecurrentKernels::of(target), steps_of(form).hint(),
                       batch_of(form).hint())
               .small > 0;
  }
};

// The same for a batch of one whose weights R leave the private caches: they are held in 28 bits (see
// exponent_packed.h).
class ExponentPackedRecurrentRoutine final : public RoutineOf<ExponentPackedRecurrentRoutine> {
 public:
  std::string_view name() const override { return "cpu:float32/recurrent_exponent_packed"; }
  std::vector<std::string_view> roots() const override { return {"LSTM", "GRU", "RNN"}; }

  std::optional<std::string> rejects(const Workload& workload, const Target& target) const override {
    std::string why;
    const std::optional<RecurrentForm> form = read_recurrent(workload.root(), &why);
    if (!form) return why;
    if (form->dtype != DType::Float32) return "the numbers are float64";
    if (!form->has_constant_weights) return "the weights are not constants";
    if (!batch_of(*form).is(1)) return "more than one row";
    const ExponentPackedShape shape = exponent_packed_cells(*form, form->gates, target.lanes());
    if (shape.weights < kMinExponentPacked) return "few weights, which the caches hold";
    const char* reason =
        reject_exponent_packed(shape, RecurrentKernels::of(target).exponent_packed, *form->r->constant);
    return reason ? std::optional<std::string>(reason) : std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    return with_levels(workload, RecurrentWay::ExponentPacked, target);
  }

  Space space(const Workload& workload, const Target& target) const override {
    const RecurrentForm form = *read_recurrent(workload.root(), nullptr);
    return Space({{"input_levels", {0, 1, 2}}}, [&](std::span<const int64_t> v) {
      return takes_strassen(form, {RecurrentWay::ExponentPacked, v[0]}, RecurrentKernels::of(target));
    });
  }

  Candidate candidate(const Workload& workload, const Target& target, const OpRegistry&,
                      const Schedule& schedule) const override {
    return candidate_of(workload, method_of(schedule, RecurrentWay::ExponentPacked), target);
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore& packed) {
    return make_recurrent_step(candidate, method_of(candidate.schedule, RecurrentWay::ExponentPacked), target, packed);
  }
};

// com.microsoft.DynamicQuantizeLSTM: both products of 8-bit codes, summed exactly.
class CodesRecurrentRoutine final : public RoutineOf<CodesRecurrentRoutine> {
 public:
  std::string_view name() const override { return "cpu:int8/recurrent"; }
  std::vector<std::string_view> roots() const override { return {"com.microsoft.DynamicQuantizeLSTM"}; }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    std::string why;
    if (!read_recurrent(workload.root(), &why)) return why;
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const RecurrentForm form = *read_recurrent(workload.root(), nullptr);
    Candidate c = candidate_of(workload, {RecurrentWay::Codes}, target);
    const CodedRowsKernels kernels = CodedRowsKernels::of(target);
    c.cost.packed_bytes = 4 * (CodesMatrix::floats(form, form.input, kernels) +
                               CodesMatrix::floats(form, form.hidden, kernels) + gates_width(form, target.lanes()));
    return {c};
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore& packed) {
    return make_recurrent_step(candidate, {RecurrentWay::Codes}, target, packed);
  }
};

// The same of float64, whatever the form.
class Recurrent64Routine final : public RoutineOf<Recurrent64Routine> {
 public:
  std::string_view name() const override { return "cpu:float64/recurrent"; }
  std::vector<std::string_view> roots() const override { return {"LSTM", "GRU", "RNN"}; }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    std::string why;
    const std::optional<RecurrentForm> form = read_recurrent(workload.root(), &why);
    if (!form) return why;
    return form->dtype == DType::Float64 ? std::nullopt : std::optional<std::string>("the numbers are not float64");
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target,
                                    const OpRegistry& ops) const override {
    const RecurrentForm form = *read_recurrent(workload.root(), nullptr);
    Candidate c;
    c.inputs = inputs_of(workload, form);
    for (const Value* v : workload.outputs) c.outputs.push_back(plain_schema(v->type));
    const Work work = workload.work(ops);
    const double arithmetic_us = 4 * static_cast<double>(work.flops.hint()) / (target.gflops_per_thread * 1e3);
    c.cost.time_us = unfitted_us({arithmetic_us, static_cast<double>(work.bytes.hint())}, target);
    return {c};
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore& packed) {
    return make_recurrent64_step(candidate, target, packed);
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(recurrent64, Recurrent64Routine)
NEO_DEFINE_ROUTINE(recurrent, RecurrentRoutine)
NEO_DEFINE_ROUTINE(recurrent_codes, CodesRecurrentRoutine)
NEO_DEFINE_ROUTINE(recurrent_exponent_packed, ExponentPackedRecurrentRoutine)

}  // namespace neo
