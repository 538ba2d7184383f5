#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "routines/gpu/device_model.h"
#include "routines/gpu/gemm/gemm.h"
#include "routines/gpu/gemm/tf32_gemm.h"
#include "routines/gpu/remember.h"
#include "routines/gpu/routine.h"
#include "routines/gpu/search.h"
#include "routines/gpu/storage.h"
#include "routines/gpu/target_model.h"
#include "routines/patterns/int8_columns.h"

namespace neo::gpu {
namespace {

// The profile of the product's kernel; only the traffic of its packing kernel counts.
Profile gemm_profile(const GemmForm& form, const GemmSchedule& s, const GemmShape& shape) {
  const auto m = static_cast<double>(shape.m), n = static_cast<double>(shape.n), k = static_cast<double>(shape.k);
  const auto batches = static_cast<double>(shape.batches());
  const double products = std::ceil(k / s.split);
  const int block = s.rows * s.panel();
  const bool wide = !form.geometry.transpose_a && s.inner > 1;
  Profile p;
  p.threads = s.split > 1 ? s.split : s.threads_row * s.threads_column;
  p.groups = batches * parts(parts(m, s.rows), s.split > 1 ? 1 : s.threads_row) *
             parts(parts(n, s.panel()), s.split > 1 ? 1 : s.threads_column);
  p.lanes = s.lanes;
  p.flops = 2 * products * block;
  p.loads = products * (s.vectors + static_cast<double>(s.rows) / (wide ? s.inner : 1));
  p.lane_reads = wide ? products * s.rows : 0;
  const auto item = static_cast<double>(item_bytes(form.result.storage));
  p.loaded_bytes = item * products * (s.panel() + s.rows);
  p.other = products / s.inner + block / s.lanes * 4 + 40;
  p.written = s.rows * s.vectors * s.inner;
  p.registers = block + s.panel() + s.rows * s.inner + 16;
  if (s.split > 1) {
    p.local_bytes = 4 * int64_t{s.split} * block;
    p.local_loaded_bytes = 4.0 * block;
    p.barriers = 1;
  }
  const double b_bytes = item * k * n * batches;
  p.unique_bytes = item * batches * m * (k + n * (form.result.has_residual ? 2 : 1)) + b_bytes * (form.packs_b ? 1 : 3);
  return p;
}

// The base of a device's products: groups that begin with one and end in a residual and an activation.
class GemmRoutine : public ProgramRoutine {
 public:
  std::vector<std::string_view> roots() const final { return gemm_roots(); }
  std::vector<Workload> matches(const Node& root, const Graph::Users& users, const Graph& graph) const final {
    return match_gemm(root, users, graph);
  }

  std::optional<std::string> rejects(const Workload& workload, const Target& target) const final {
    if (auto reason = cannot_hold(workload)) return reason;
    std::string why;
    const auto problem = read(workload, &why);
    if (!problem) return why;
    if (has_codes_product(workload)) return "its operands are codes";
    const Shape& a = problem->a->shape();
    const int summed = problem->geometry.transpose_a ? a.rank() - 2 : a.rank() - 1;
    if (a[summed].range().lo < 1) return "the summed axis may be empty";
    if (const char* reason = rejects_problem(*problem, target)) return reason;
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry& ops) const final {
    const GemmProblem problem = *read(workload);
    const GemmForm form = form_of(problem);
    const GemmShape shape = hint_of(problem);
    const DeviceModel model = model_of(target);
    std::string key = str(name(), " ", key_of(model), " ", neo::name(form.result.storage), " ",
                          form.geometry.transpose_a, form.geometry.transpose_b, form.packs_b, form.result.has_residual,
                          " ", shape.m, " ", shape.n, " ", shape.k);
    for (const int64_t b : shape.batch) key += str(" ", b);
    const std::vector<Schedule> best = remember_schedules(key, [&] {
      return search_by_estimate(space_of(form, shape), model,
                                [&](std::span<const int64_t> point) { return profile_of(form, point, shape); });
    });
    NEO_ASSERT(!best.empty(), "no schedule for ", workload.text());
    return {candidate(workload, target, ops, best.front())};
  }

  Space space(const Workload& workload, const Target&) const final {
    const GemmProblem problem = *read(workload);
    return space_of(form_of(problem), hint_of(problem));
  }

  Candidate candidate(const Workload& workload, const Target& target, const OpRegistry&,
                      const Schedule& schedule) const final {
    const GemmProblem problem = *read(workload);
    Candidate c;
    c.inputs.resize(workload.inputs.size());
    for (const Value* v : {problem.a, problem.packs_b() ? nullptr : problem.b, problem.residual}) {
      if (v) c.inputs[static_cast<size_t>(workload.input_index(v))] = device_schema(*v, target);
    }
    c.outputs.push_back(device_schema(*problem.c, target));
    c.schedule = schedule;
    const DeviceModel model = model_of(target);
    c.cost = cost(form_of(problem), schedule, hint_of(problem), model);
    if (problem.bias) {
      c.cost.packed_bytes += packed_bytes(padded_columns(problem.columns(), panel(schedule)), problem.a->dtype());
    }
    return c;
  }

  std::unique_ptr<const Program> program(const Candidate& candidate, const Target&, PackedStore& packed) const final {
    const GemmProblem problem = *read(*candidate.workload);
    GemmForm form = form_of(problem);
    form.a = argument_of(candidate, problem.a);
    form.b = argument_of(candidate, problem.b);
    form.residual = argument_of(candidate, problem.residual);
    form.c = static_cast<int>(
        std::count_if(candidate.inputs.begin(), candidate.inputs.end(), [](const auto& s) { return s.has_value(); }));
    if (form.packs_b) pack(form, *problem.b, candidate.schedule, packed);
    if (problem.bias) {
      const int64_t columns = problem.columns(), width = panel(candidate.schedule);
      pack_stored(packed, form.result.storage, padded_columns(columns, width), {problem.bias}, [&](float* to) {
        const ConstantFloats bias(problem.bias);
        const auto count = static_cast<size_t>(problem.bias->constant->size());
        pack_columns(columns, width, problem.bias_scale, {bias.data(), count}, to);
      });
    }
    return program(std::move(form), candidate.schedule);
  }

 protected:
  virtual const char* rejects_problem(const GemmProblem&, const Target&) const { return nullptr; }
  virtual Space space_of(const GemmForm& form, const GemmShape& shape) const = 0;
  virtual Profile profile_of(const GemmForm& form, std::span<const int64_t> point, const GemmShape& shape) const = 0;
  virtual Cost cost(const GemmForm& form, const Schedule& schedule, const GemmShape& shape,
                    const DeviceModel& model) const = 0;
  // Columns that a packed bias has a multiple of.
  virtual int64_t panel(const Schedule& schedule) const = 0;
  virtual void pack(const GemmForm& form, const Value& b, const Schedule& schedule, PackedStore& packed) const = 0;
  virtual std::unique_ptr<const Program> program(GemmForm form, const Schedule& schedule) const = 0;

  static std::optional<GemmProblem> read(const Workload& workload, std::string* why = nullptr) {
    return read_gemm(workload, why, storage_of(workload));
  }

  static GemmShape hint_of(const GemmProblem& problem) {
    GemmShape s = problem.hint();
    s.m = std::max<int64_t>(s.m, 1);
    s.n = std::max<int64_t>(s.n, 1);
    s.k = std::max<int64_t>(s.k, 1);
    for (int64_t& b : s.batch) b = std::max<int64_t>(b, 1);
    return s;
  }

 private:
  static GemmForm form_of(const GemmProblem& problem) {
    GemmForm form;
    form.geometry = problem.geometry;
    form.packs_b = problem.packs_b();
    if (form.packs_b) form.b_dims = problem.b->constant->dims();
    form.bias_scale = problem.bias_scale;
    const Epilogue& e = problem.epilogue;
    ResultForm& r = form.result;
    r.storage = problem.a->dtype();
    r.has_bias = problem.bias != nullptr;
    r.has_residual = problem.residual != nullptr;
    r.lo = e.lo;
    r.hi = e.hi;
    r.has_clamp = r.lo > -std::numeric_limits<float>::infinity() || r.hi < std::numeric_limits<float>::infinity();
    if (e.activation) r.activation = find_activation_step(*e.activation);
    return form;
  }
};

class RegisterGemm final : public GemmRoutine {
 public:
  std::string_view name() const override { return "gpu:float32/gemm"; }

 protected:
  Space space_of(const GemmForm& form, const GemmShape& shape) const override {
    return gemm_space(form, shape.m, shape.n, shape.k);
  }
  Profile profile_of(const GemmForm& form, std::span<const int64_t> point, const GemmShape& shape) const override {
    return gemm_profile(form, GemmSchedule::of(point), shape);
  }
  Cost cost(const GemmForm& form, const Schedule& schedule, const GemmShape& shape,
            const DeviceModel& model) const override {
    const GemmSchedule s = GemmSchedule::of(schedule);
    Cost c;
    c.time_us = estimate(gemm_profile(form, s, shape), model).time_us;
    if (!form.packs_b) c.time_us += model.launch_us;
    if (form.packs_b) c.packed_bytes = packed_bytes(packed_b_size(form, s, form.b_dims), form.result.storage);
    return c;
  }
  int64_t panel(const Schedule& schedule) const override { return GemmSchedule::of(schedule).panel(); }
  void pack(const GemmForm& form, const Value& b, const Schedule& schedule, PackedStore& packed) const override {
    const GemmSchedule s = GemmSchedule::of(schedule);
    pack_stored(packed, form.result.storage, packed_b_size(form, s, form.b_dims), {&b},
                [&](float* to) { pack_b(form, s, form.b_dims, ConstantFloats(&b).data(), to); });
  }
  std::unique_ptr<const Program> program(GemmForm form, const Schedule& schedule) const override {
    return std::make_unique<GemmProgram>(std::move(form), GemmSchedule::of(schedule));
  }
};

// By matrix instructions, of operands rounded to tf32.
class Tf32Gemm final : public GemmRoutine {
 public:
  std::string_view name() const override { return "gpu:tf32/gemm"; }

 protected:
  const char* rejects_problem(const GemmProblem& problem, const Target& target) const override {
    if (model_of(target).matrix_gflops == 0) return "the device multiplies no matrices";
    if (!problem.a->shape().is_static() || !problem.b->shape().is_static()) return nullptr;  // the estimate tells
    const GemmShape shape = hint_of(problem);
    if (shape.m < 16) return "fewer rows than a matrix has";
    return shape.n < 8 ? "fewer columns than a matrix has" : nullptr;
  }
  Space space_of(const GemmForm& form, const GemmShape& shape) const override { return tf32_gemm_space(form, shape); }
  Profile profile_of(const GemmForm& form, std::span<const int64_t> point, const GemmShape& shape) const override {
    return tf32_gemm_profile(form, Tf32GemmSchedule::of(point), shape);
  }
  Cost cost(const GemmForm& form, const Schedule& schedule, const GemmShape& shape,
            const DeviceModel& model) const override {
    Cost c;
    c.time_us = estimate(tf32_gemm_profile(form, Tf32GemmSchedule::of(schedule), shape), model).time_us;
    c.error = tf32_error(static_cast<double>(shape.k));
    c.rounds = true;
    if (form.packs_b) {
      c.packed_bytes = item_bytes(form.result.storage);
      for (const int64_t d : form.b_dims) c.packed_bytes *= d;
    }
    return c;
  }
  int64_t panel(const Schedule&) const override { return 1; }
  void pack(const GemmForm&, const Value& b, const Schedule&, PackedStore& packed) const override {
    packed.constant(b);
  }
  std::unique_ptr<const Program> program(GemmForm form, const Schedule& schedule) const override {
    return std::make_unique<Tf32GemmProgram>(std::move(form), Tf32GemmSchedule::of(schedule));
  }
};

}  // namespace
}  // namespace neo::gpu

namespace neo {

NEO_DEFINE_PROGRAM_ROUTINE(gpu_gemm, gpu::RegisterGemm)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_gemm_tf32, gpu::Tf32Gemm)

}  // namespace neo
