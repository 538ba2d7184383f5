#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "routines/gpu/gemm/gemm.h"
#include "routines/gpu/remember.h"
#include "routines/gpu/routine.h"
#include "routines/gpu/search.h"
#include "routines/gpu/target_model.h"

namespace neo::gpu {
namespace {

constexpr std::string_view kOps[] = {"MatMul", "Gemm", "com.microsoft.FusedMatMul"};

double parts(double whole, int64_t part) {
  return std::ceil(whole / static_cast<double>(part));
}

// What the threads of the product's kernel do; of its packing kernel only the traffic counts.
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
  p.loaded_bytes = 4 * products * (s.panel() + s.rows);
  p.other = products / s.inner + block / s.lanes * 4 + 40;
  p.written = s.rows * s.vectors * s.inner;
  p.registers = block + s.panel() + s.rows * s.inner + 16;
  if (s.split > 1) {
    p.local_bytes = 4 * int64_t{s.split} * block;
    p.local_loaded_bytes = 4.0 * block;
    p.barriers = 1;
  }
  const double b_bytes = 4 * k * n * batches;
  p.unique_bytes = 4 * batches * m * (k + n * (form.result.has_residual ? 2 : 1)) + b_bytes * (form.packs_b ? 1 : 3);
  return p;
}

class GemmRoutine final : public ProgramRoutine {
 public:
  std::string_view name() const override { return "gpu:float32/gemm"; }

  std::vector<std::string_view> roots() const override {
    std::vector<std::string_view> roots(std::begin(kOps), std::end(kOps));
    roots.insert(roots.end(), epilogue_ops().begin(), epilogue_ops().end());
    return roots;
  }

  std::vector<Workload> matches(const Node& root, const Graph::Users& users, const Graph& graph) const override {
    return match_epilogues(root, kOps, users, graph);
  }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    if (auto reason = cannot_hold(workload)) return reason;
    std::string why;
    const auto problem = read_gemm(workload, &why);
    if (!problem) return why;
    const Shape& a = problem->a->shape();
    const int summed = problem->geometry.transpose_a ? a.rank() - 2 : a.rank() - 1;
    if (a[summed].range().lo < 1) return "the summed axis may be empty";
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target,
                                    const OpRegistry& ops) const override {
    const GemmProblem problem = *read_gemm(workload, nullptr);
    const GemmForm form = form_of(problem);
    const GemmShape shape = hint_of(problem);
    const DeviceModel model = model_of(target);
    std::string key = str(name(), " ", key_of(model), " ", form.geometry.transpose_a, form.packs_b,
                          form.result.has_residual, " ", shape.m, " ", shape.n, " ", shape.k);
    for (const int64_t b : shape.batch) key += str(" ", b);
    const std::vector<Schedule> best = remember_schedules(key, [&] {
      return search_by_estimate(
          gemm_space(form, shape.m, shape.n, shape.k), model,
          [&](std::span<const int64_t> values) { return gemm_profile(form, GemmSchedule::of(values), shape); });
    });
    NEO_ASSERT(!best.empty(), "no schedule for ", workload.text());
    return {candidate(workload, target, ops, best.front())};
  }

  Space space(const Workload& workload, const Target&) const override {
    const GemmProblem problem = *read_gemm(workload, nullptr);
    const GemmShape shape = hint_of(problem);
    return gemm_space(form_of(problem), shape.m, shape.n, shape.k);
  }

  Candidate candidate(const Workload& workload, const Target& target, const OpRegistry&,
                      const Schedule& schedule) const override {
    const GemmProblem problem = *read_gemm(workload, nullptr);
    const GemmForm form = form_of(problem);
    const GemmSchedule s = GemmSchedule::of(schedule);
    const DeviceModel model = model_of(target);
    Candidate c;
    c.inputs.resize(workload.inputs.size());
    for (const Value* v : {problem.a, problem.packs_b() ? nullptr : problem.b, problem.residual}) {
      if (v) c.inputs[static_cast<size_t>(workload.input_index(v))] = device_schema(*v, target);
    }
    c.outputs.push_back(device_schema(*problem.c, target));
    c.schedule = schedule;
    c.cost.time_us = estimate(gemm_profile(form, s, hint_of(problem)), model).time_us;
    if (!form.packs_b) c.cost.time_us += model.launch_us;
    if (form.packs_b) c.cost.packed_bytes += packed_b_size(form, s, form.b_dims) * 4;
    if (problem.bias) c.cost.packed_bytes += packed_columns(s, problem.columns()) * 4;
    return c;
  }

  std::unique_ptr<const Program> program(const Candidate& candidate, const Target&,
                                         PackedStore& packed) const override {
    const GemmProblem problem = *read_gemm(*candidate.workload, nullptr);
    GemmForm form = form_of(problem);
    const GemmSchedule schedule = GemmSchedule::of(candidate.schedule);
    form.a = argument_of(candidate, problem.a);
    form.b = argument_of(candidate, problem.b);
    form.residual = argument_of(candidate, problem.residual);
    form.c = static_cast<int>(
        std::count_if(candidate.inputs.begin(), candidate.inputs.end(), [](const auto& s) { return s.has_value(); }));
    if (form.packs_b) {
      packed.floats(packed_b_size(form, schedule, form.b_dims), {problem.b},
                    [&](float* to) { pack_b(form, schedule, form.b_dims, problem.b->constant->as<float>(), to); });
    }
    if (problem.bias) {
      packed.floats(packed_columns(schedule, problem.columns()), {problem.bias}, [&](float* to) {
        const Tensor& bias = *problem.bias->constant;
        pack_columns(schedule, problem.columns(), problem.bias_scale,
                     {bias.as<float>(), static_cast<size_t>(bias.size())}, to);
      });
    }
    return std::make_unique<GemmProgram>(std::move(form), schedule);
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
    r.has_bias = problem.bias != nullptr;
    r.has_residual = problem.residual != nullptr;
    r.lo = e.lo;
    r.hi = e.hi;
    r.has_clamp = r.lo > -std::numeric_limits<float>::infinity() || r.hi < std::numeric_limits<float>::infinity();
    if (e.activation) r.activation = find_activation_step(*e.activation);
    return form;
  }

  static GemmShape hint_of(const GemmProblem& problem) {
    GemmShape s = problem.hint();
    s.m = std::max<int64_t>(s.m, 1);
    s.n = std::max<int64_t>(s.n, 1);
    s.k = std::max<int64_t>(s.k, 1);
    for (int64_t& b : s.batch) b = std::max<int64_t>(b, 1);
    return s;
  }
};

}  // namespace
}  // namespace neo::gpu

namespace neo {

NEO_DEFINE_PROGRAM_ROUTINE(gpu_gemm, gpu::GemmRoutine)

}  // namespace neo
