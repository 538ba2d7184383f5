#include <algorithm>

#include "routines/gpu/recurrent/recurrent.h"
#include "routines/gpu/routine.h"
#include "routines/patterns/epilogue.h"
#include "routines/patterns/recurrent_form.h"
#include "routines/space.h"

namespace neo::gpu {
namespace {

RecurrentLayer layer_of(const RecurrentForm& form, const Candidate& candidate) {
  RecurrentLayer l;
  l.kind = form.kind;
  l.input = form.input;
  l.hidden = form.hidden;
  l.directions = form.directions;
  l.reverse = form.reverse;
  l.batch_first = form.batch_first;
  l.x = argument_of(candidate, form.x);
  l.initial_h = argument_of(candidate, form.initial_h);
  l.initial_c = argument_of(candidate, form.initial_c);
  int next = static_cast<int>(
      std::count_if(candidate.inputs.begin(), candidate.inputs.end(), [](const auto& s) { return s.has_value(); }));
  int* const made[] = {&l.y, &l.final_h, &l.final_c};
  for (size_t i = 0; i < 3; ++i) {
    if (candidate.workload->root().output(i)) *made[i] = next++;
  }
  return l;
}

// The input's products of all steps in one launch, then one launch for each step (two for a GRU whose reset gate comes
// before its product), without a word to the host.
class RecurrentRoutine final : public ProgramRoutine {
 public:
  std::string_view name() const override { return "gpu:float32/recurrent"; }
  std::vector<std::string_view> roots() const override { return {"LSTM", "GRU", "RNN"}; }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    if (auto reason = cannot_hold(workload)) return reason;
    std::string why;
    const auto form = read_recurrent(workload.root(), &why);
    if (!form) return why;
    if (auto reason = why_not_plain(*form)) return reason;
    if (form->input == 0) return "the input is empty";
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target,
                                    const OpRegistry& ops) const override {
    const RecurrentForm form = *read_recurrent(workload.root(), nullptr);
    const int64_t batch = form.x->shape()[form.batch_first ? 0 : 1].hint();
    const bool cuda = target.device == DeviceKind::Cuda;
    Schedule schedule = {{"lanes", cuda ? 4 : 8},
                         {"rows", batch >= 4   ? 4
                                  : batch >= 2 ? 2
                                               : 1},
                         {"threads", cuda ? 32 : 8},
                         {"by_depth", cuda ? 1 : 0}};
    return {candidate(workload, target, ops, schedule)};
  }

  Space space(const Workload&, const Target&) const override {
    return Space({{"lanes", {4, 8, 16}}, {"rows", {1, 2, 4, 6}}, {"threads", {1, 8, 32, 64}}, {"by_depth", {0, 1}}});
  }

  Candidate candidate(const Workload& workload, const Target& target, const OpRegistry& ops,
                      const Schedule& schedule) const override {
    const RecurrentForm form = *read_recurrent(workload.root(), nullptr);
    Candidate c = plain_candidate(workload, target);
    for (size_t i = 0; i < workload.inputs.size(); ++i) {
      const Value* v = workload.inputs[i];
      if (v != form.x && v != form.initial_h && v != form.initial_c) c.inputs[i] = std::nullopt;
    }
    const int64_t steps = form.x->shape()[form.batch_first ? 1 : 0].hint();
    const int launches = static_cast<int>(steps) * (form.kind == CellKind::GruGates ? 2 : 1) + 4;
    c.schedule = schedule;
    c.cost.time_us = device_us(workload.work(ops), target, 0.1, launches);
    return c;
  }

  std::unique_ptr<const Program> program(const Candidate& candidate, const Target&,
                                         PackedStore& packed) const override {
    const Node& node = candidate.workload->root();
    const RecurrentLayer l = layer_of(*read_recurrent(node, nullptr), candidate);
    const RecurrentSchedule s = RecurrentSchedule::of(candidate.schedule);
    const auto pack = [&](const Value* from, const PackedGates& gates) {
      packed.floats(packed_gates_size(l, s, gates), {from},
                    [&](float* to) { pack_gates(l, s, gates, from->constant->as<float>(), to); });
    };
    const float* biases = node.input(3) ? node.input(3)->constant->as<float>() : nullptr;
    const int64_t units = l.panels(s) * s.lanes;
    pack(node.input(1), {l.input, l.input, 0, l.gates()});
    packed.floats(packed_biases_size(l, s), {node.input(3)}, [&](float* to) { pack_biases(l, s, biases, to); });
    pack(node.input(2), {l.hidden, units, 0, l.kind == CellKind::GruGates ? 2 : l.gates()});
    if (l.kind == CellKind::GruGates) pack(node.input(2), {l.hidden, units, 2, 1});
    if (l.kind == CellKind::GruLinear) {
      packed.floats(l.directions * units, {node.input(3)}, [&](float* to) { pack_candidate_biases(l, s, biases, to); });
    }
    return make_recurrent(l, s);
  }
};

}  // namespace
}  // namespace neo::gpu

namespace neo {

NEO_DEFINE_PROGRAM_ROUTINE(gpu_recurrent, gpu::RecurrentRoutine)

}  // namespace neo
