// The extension that tests make routines wrong with: the right step runs, and then its result is damaged.
#include <cstring>

#include "bindings/bindings.h"
#include "bindings/problem.h"

namespace neo::python {
namespace {

enum class Fault : uint8_t {
  Scaled,     // every element times 1.01
  Shifted,    // every element of the first eighth takes its neighbour's place
  Unwritten,  // the last eighth is never written
  Rounded,    // computed in bfloat16
};

void damage(Fault fault, std::span<float> result) {
  const size_t eighth = (result.size() + 7) / 8;
  switch (fault) {
    case Fault::Scaled:
      for (float& x : result) x *= 1.01F;
      break;
    case Fault::Shifted:
      for (size_t i = 0; i < eighth && i + 1 < result.size(); ++i) result[i] = result[i + 1];
      break;
    case Fault::Unwritten:
      for (float& x : result.last(eighth)) x = 0.0F;
      break;
    case Fault::Rounded:
      for (float& x : result) {
        uint32_t bits = 0;
        std::memcpy(&bits, &x, sizeof bits);
        bits &= 0xFFFF0000U;
        std::memcpy(&x, &bits, sizeof bits);
      }
      break;
  }
}

class WrongStep final : public KernelStep {
 public:
  WrongStep(std::unique_ptr<Step> right, Fault fault) : right_(std::move(right)), fault_(fault) {}

  Prepared prepare(std::span<const Arg> args) const override {
    Prepared prepared = right().prepare(args);
    const Arg& result = args.back();
    Header header;
    header.argument = args.size() - 1;
    header.elements = element_count(result.layout.physical_dims(result.dims));
    const auto* bytes = reinterpret_cast<const std::byte*>(&header);
    prepared.bytes.insert(prepared.bytes.begin(), bytes, bytes + sizeof header);
    return prepared;
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    Header header;
    std::memcpy(&header, prepared, sizeof header);
    right().run(prepared + sizeof header, args, scratch, team);
    damage(fault_, {reinterpret_cast<float*>(args[header.argument]), static_cast<size_t>(header.elements)});
  }

 private:
  // As long as the strictest alignment that a routine's own bytes may want.
  struct alignas(64) Header {
    size_t argument = 0;
    int64_t elements = 0;
  };

  const KernelStep& right() const { return static_cast<const KernelStep&>(*right_); }

  std::unique_ptr<Step> right_;
  Fault fault_;
};

class WrongRoutine final : public Routine {
 public:
  WrongRoutine(const Routine& right, Fault fault) : right_(right), fault_(fault) {}

  std::string_view name() const override { return right_.name(); }
  std::vector<std::string_view> roots() const override { return right_.roots(); }
  std::optional<std::string> rejects(const Workload& workload, const Target& target) const override {
    return right_.rejects(workload, target);
  }
  std::vector<Candidate> candidates(const Workload& workload, const Target& target,
                                    const OpRegistry& ops) const override {
    return right_.candidates(workload, target, ops);
  }
  std::unique_ptr<Step> make(const Candidate& candidate, const Target& target, const OpRegistry& ops,
                             PackedStore& packed) const override {
    Candidate right = candidate;
    right.routine = &right_;
    return std::make_unique<WrongStep>(right_.make(right, target, ops, packed), fault_);
  }

 private:
  const Routine& right_;
  Fault fault_;
};

// Whether a choice is a kernel step of one float32 result.
bool can_be_wrong(const BoundProblem& bound, size_t node, size_t choice) {
  const auto& candidate = bound.problem->nodes.at(node).choices.at(choice).candidate;
  return candidate && candidate->kind == Candidate::Kind::Step && candidate->workload->outputs.size() == 1 &&
         candidate->workload->outputs.front()->dtype() == DType::Float32 &&
         candidate->routine->name() != "cpu/reference";
}

// Every module lowered from the problem with this choice, from now on, computes the node wrongly.
void make_wrong(BoundProblem& bound, size_t node, size_t choice, Fault fault) {
  static std::vector<std::unique_ptr<WrongRoutine>> kept;
  Candidate& candidate = *bound.problem->nodes.at(node).choices.at(choice).candidate;
  kept.push_back(std::make_unique<WrongRoutine>(*candidate.routine, fault));
  candidate.routine = kept.back().get();
}

}  // namespace
}  // namespace neo::python

PYBIND11_MODULE(_wrong_routines, m) {
  namespace py = pybind11;
  using namespace neo::python;  // NOLINT
  py::enum_<Fault>(m, "Fault")
      .value("scaled", Fault::Scaled)
      .value("shifted", Fault::Shifted)
      .value("unwritten", Fault::Unwritten)
      .value("rounded", Fault::Rounded);
  m.def("can_be_wrong", &can_be_wrong, py::arg("problem"), py::arg("node"), py::arg("choice"));
  m.def("make_wrong", &make_wrong, py::arg("problem"), py::arg("node"), py::arg("choice"), py::arg("fault"));
}
