#include <algorithm>

#include "routines/gpu/recurrent/recurrent.h"
#include "routines/gpu/routine.h"
#include "routines/gpu/storage.h"
#include "routines/patterns/epilogue.h"
#include "routines/patterns/recurrent_form.h"
#include "routines/space.h"

namespace neo::gpu {
namespace {

// `read`: the workload that the form is of, whose operands lie as the candidate's do.
RecurrentLayer layer_of(const RecurrentForm& form, const Workload& read, const Candidate& candidate) {
  const auto place = [&](const Value* v) {
    const int i = v ? read.input_index(v) : -1;
    return i < 0 ? -1 : argument_of(candidate, candidate.workload->inputs[static_cast<size_t>(i)]);
  };
  RecurrentLayer l;
  l.kind = form.kind;
  l.input = form.input;
  l.hidden = form.hidden;
  l.directions = form.directions;
  l.reverse = form.reverse;
  l.batch_first = form.batch_first;
  l.x = place(form.x);
  l.initial_h = place(form.initial_h);
  l.initial_c = place(form.initial_c);
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
    const WideView view(workload);
    const auto form = read_recurrent(view.workload().root(), &why);
    if (!form) return why;
    if (auto reason = why_not_plain(*form)) return reason;
    if (form->input == 0) return "the input is empty";
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target,
                                    const OpRegistry& ops) const override {
    const WideView view(workload);
    const RecurrentForm form = *read_recurrent(view.workload().root(), nullptr);
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
    const WideView view(workload);
    const RecurrentForm form = *read_recurrent(view.workload().root(), nullptr);
    Candidate c = plain_candidate(workload, target);
    for (size_t i = 0; i < workload.inputs.size(); ++i) {
      const Value* v = view.workload().inputs[i];
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
    const DType storage = storage_of(*candidate.workload);
    const WideView view(*candidate.workload);
    const RecurrentLayer l = layer_of(*read_recurrent(view.workload().root(), nullptr), view.workload(), candidate);
    const RecurrentSchedule s = RecurrentSchedule::of(candidate.schedule);
    const auto pack = [&](const Value* from, const PackedGates& gates) {
      pack_stored(packed, storage, packed_gates_size(l, s, gates), {from},
                  [&](float* to) { pack_gates(l, s, gates, ConstantFloats(from).data(), to); });
    };
    const auto biases = [&] { return node.input(3) ? ConstantFloats(node.input(3)) : ConstantFloats(); };
    const int64_t units = l.panels(s) * s.lanes;
    pack(node.input(1), {l.input, l.input, 0, l.gates()});
    pack_stored(packed, storage, packed_biases_size(l, s), {node.input(3)},
                [&](float* to) { pack_biases(l, s, biases().data(), to); });
    pack(node.input(2), {l.hidden, units, 0, l.kind == CellKind::GruGates ? 2 : l.gates()});
    if (l.kind == CellKind::GruGates) pack(node.input(2), {l.hidden, units, 2, 1});
    if (l.kind == CellKind::GruLinear) {
      pack_stored(packed, storage, l.directions * units, {node.input(3)},
                  [&](float* to) { pack_candidate_biases(l, s, biases().data(), to); });
    }
    return stored_program(make_recurrent(l, s), storage);
  }
};

}  // namespace
}  // namespace neo::gpu

namespace neo {

NEO_DEFINE_PROGRAM_ROUTINE(gpu_recurrent, gpu::RecurrentRoutine)

}  // namespace neo
