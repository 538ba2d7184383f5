#include <algorithm>

#include "base/check.h"
#include "routines/gpu/channels.h"
#include "routines/gpu/int8/codes_elements.h"
#include "routines/gpu/int8/codes_window.h"
#include "routines/gpu/routine.h"
#include "routines/gpu/target_model.h"
#include "routines/patterns/codes_eltwise.h"

namespace neo::gpu {
namespace {

// How the channels of a value may lie together where there are no padding lanes.
std::vector<int64_t> unpadded_layouts(const Shape& shape) {
  std::vector<int64_t> all{1};
  if (shape.rank() < 3 || !shape[1].is_constant() || shape[1].value() < 2) return all;
  all.push_back(kAllChannels);
  if (shape[1].value() % 4 == 0) all.push_back(4);
  return all;
}

Schema schema_of(const Value& v, int64_t together, const Target& target) {
  Schema s = device_schema(v, target);
  if (together != 1) s.layout = channels_layout(v.shape().rank(), together);
  return s;
}

int place_of_result(const Candidate& candidate) {
  return static_cast<int>(
      std::count_if(candidate.inputs.begin(), candidate.inputs.end(), [](const auto& s) { return s.has_value(); }));
}

// The base of routines whose schedule is a layout, the same of every operand.
class HeldAlikeRoutine : public ProgramRoutine {
 public:
  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry& ops) const final {
    std::vector<Candidate> all;
    for (const int64_t together : layouts(workload)) {
      Schedule s;
      if (together != kAllChannels) s["in"] = together;
      all.push_back(candidate(workload, target, ops, s));
    }
    return all;
  }
  Space space(const Workload& workload, const Target&) const final { return Space({{"in", layouts(workload)}}); }
  Candidate candidate(const Workload& workload, const Target& target, const OpRegistry&,
                      const Schedule& schedule) const final {
    const int64_t together = value_of(schedule, "in");
    Candidate c;
    c.inputs.resize(workload.inputs.size());
    for (const Value* v : operands(workload))
      c.inputs[static_cast<size_t>(workload.input_index(v))] = schema_of(*v, together, target);
    c.outputs.push_back(schema_of(*workload.outputs.front(), together, target));
    c.schedule = schedule;
    c.cost.time_us = estimate(profile(workload, together), model_of(target)).time_us;
    c.cost.packed_bytes = packed_bytes(workload);
    return c;
  }

 protected:
  virtual std::vector<int64_t> layouts(const Workload& workload) const {
    return unpadded_layouts(workload.outputs.front()->shape());
  }
  virtual std::vector<const Value*> operands(const Workload& workload) const = 0;  // at run time
  virtual int64_t packed_bytes(const Workload&) const { return 0; }
  virtual Profile profile(const Workload& workload, int64_t) const {
    const ElementsSchedule s;
    const auto count = static_cast<double>(element_count(workload.outputs.front()->shape().hint_dims()));
    Profile p;
    p.threads = s.threads;
    p.groups = parts(count, int64_t{s.threads} * s.elements);
    p.loads = 3 * s.elements;
    p.other = 12 * s.elements;
    p.registers = 16;
    for (const Value* v : operands(workload)) {
      p.unique_bytes += static_cast<double>(element_count(v->shape().hint_dims()) * item_bytes(v->dtype()));
    }
    p.unique_bytes += count * static_cast<double>(item_bytes(workload.outputs.front()->dtype()));
    p.loaded_bytes = p.unique_bytes / (p.groups * p.threads);
    return p;
  }
};

// QuantizeLinear and DequantizeLinear of one constant scale, rounded as the CPU does.
class CodesLinearRoutine final : public HeldAlikeRoutine {
 public:
  std::string_view name() const override { return "gpu:int8/linear"; }
  std::vector<std::string_view> roots() const override { return {"QuantizeLinear", "DequantizeLinear"}; }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    if (auto reason = cannot_hold(workload)) return reason;
    if (workload.root().inputs[0]->constant) return "its input is a constant";
    if (!read_code_grid(workload.root())) return "not between float32 and 8-bit codes of one constant scale";
    return std::nullopt;
  }
  std::unique_ptr<const Program> program(const Candidate& candidate, const Target&, PackedStore&) const override {
    const Node& node = candidate.workload->root();
    return make_codes_linear(*read_code_grid(node), node.op == "QuantizeLinear", {});
  }

 protected:
  std::vector<const Value*> operands(const Workload& workload) const override { return {workload.root().inputs[0]}; }
};

// Functions of one value of codes by a table, sums and products of two.
class CodesEltwiseRoutine final : public HeldAlikeRoutine {
 public:
  std::string_view name() const override { return "gpu:int8/eltwise"; }
  std::vector<std::string_view> roots() const override { return {"QuantizeLinear"}; }
  std::vector<Workload> matches(const Node& root, const Graph::Users& users, const Graph& graph) const override {
    return match_codes_eltwise(root, users, graph);
  }
  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    if (auto reason = cannot_hold(workload)) return reason;
    std::string why;
    return CodesEltwise::read(workload, &why) ? std::nullopt : std::optional(why);
  }
  std::unique_ptr<const Program> program(const Candidate& candidate, const Target&,
                                         PackedStore& packed) const override {
    const CodesEltwise e = *CodesEltwise::read(*candidate.workload, nullptr);
    if (!e.other) {
      packed.floats(kCodeTable / 4, {}, [&](float* to) {
        fill_code_table({candidate.workload->nodes, e.x}, standard_ops(), reinterpret_cast<uint8_t*>(to));
      });
      return make_codes_table({});
    }
    CodesBinaryForm form;
    form.of = e;
    form.x = argument_of(candidate, e.x);
    form.other = argument_of(candidate, e.other);
    form.y = place_of_result(candidate);
    const int64_t together = value_of(candidate.schedule, "in");
    if (e.repeats) form.repeat = together == 1 ? CodesRepeat::Planes : CodesRepeat::Last;
    return make_codes_binary(form, {});
  }

 protected:
  std::vector<int64_t> layouts(const Workload& workload) const override {
    std::vector<int64_t> all = HeldAlikeRoutine::layouts(workload);
    const CodesEltwise e = *CodesEltwise::read(workload, nullptr);
    // A block's channels repeat apart from those of the next.
    if (e.repeats) all.erase(std::remove(all.begin(), all.end(), 4), all.end());
    return all;
  }
  std::vector<const Value*> operands(const Workload& workload) const override {
    const CodesEltwise e = *CodesEltwise::read(workload, nullptr);
    return e.other ? std::vector{e.x, e.other} : std::vector{e.x};
  }
  int64_t packed_bytes(const Workload& workload) const override {
    return CodesEltwise::read(workload, nullptr)->other ? 0 : kCodeTable;
  }
};

class CodesPoolRoutine final : public HeldAlikeRoutine {
 public:
  std::string_view name() const override { return "gpu:int8/pool"; }
  std::vector<std::string_view> roots() const override { return {"QuantizeLinear"}; }
  std::vector<Workload> matches(const Node& root, const Graph::Users& users, const Graph& graph) const override {
    return match_codes_pool(root, users, graph);
  }
  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    if (auto reason = cannot_hold(workload)) return reason;
    std::string why;
    return CodesPoolProblem::read(workload, &why) ? std::nullopt : std::optional(why);
  }
  std::unique_ptr<const Program> program(const Candidate& candidate, const Target&, PackedStore&) const override {
    return make_codes_pool(
        CodesPool(*CodesPoolProblem::read(*candidate.workload, nullptr), value_of(candidate.schedule, "in")), kThreads);
  }

 protected:
  // Padding lanes become zero.
  std::vector<int64_t> layouts(const Workload& workload) const override {
    const int64_t channels = workload.outputs.front()->shape()[1].value();
    if (channels < 2) return {1};
    return {1, 4, kAllChannels};
  }
  std::vector<const Value*> operands(const Workload& workload) const override {
    return {CodesPoolProblem::read(workload, nullptr)->x};
  }
  Profile profile(const Workload& workload, int64_t together) const override {
    const CodesPoolProblem p = *CodesPoolProblem::read(workload, nullptr);
    return codes_pool_profile(CodesPool(p, together), kThreads, p.x->shape().hint_dims(), p.y->shape().hint_dims());
  }

 private:
  static constexpr int kThreads = 64;
};

}  // namespace
}  // namespace neo::gpu

namespace neo {

NEO_DEFINE_PROGRAM_ROUTINE(gpu_int8_linear, gpu::CodesLinearRoutine)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_int8_eltwise, gpu::CodesEltwiseRoutine)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_int8_pool, gpu::CodesPoolRoutine)

}  // namespace neo
