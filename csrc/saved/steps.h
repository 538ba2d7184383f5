#pragma once

#include <memory>
#include <optional>
#include <string>

#include "exec/plan.h"
#include "routines/routine.h"
#include "saved/blobs.h"

namespace neo {

// A step that was made again, and what its plan must agree with.
struct SavedStep {
  struct Operand {
    Type type;
    Schema schema;
    const Tensor* constant = nullptr;  // the operand is this constant, where its contents are saved with the workload
    bool is_constant = false;
  };
  StepItem item;  // without slots
  std::vector<Operand> reads;
  std::vector<Operand> writes;
  std::vector<Guard> guards;  // that the workload needs
  std::map<std::string, Symbol> symbols;
  std::shared_ptr<const Graph> graph;
  bool is_data_dependent = false;  // a step on a device that finds out the sizes of its outputs
  int in_place = -1;               // read whose memory the first write may be
};

// A number, or the text of an expression.
Dim read_dim(const Json& json, const SymbolLookup& symbols);

// The facts about a workload that its text does not hold.
WorkloadFacts facts_of(const StepSpec& spec);

// Makes steps from their specs. A spec is taken only where compiling could have chosen it: the routine matches and does
// not reject the workload, and offers the candidate on the target.
class StepMaker {
 public:
  StepMaker(const Target& target, const OpRegistry& ops, const RoutineTable& routines, const SavedBlobs& blobs)
      : target_(target), ops_(ops), routines_(routines), blobs_(blobs) {}

  SavedStep make(const Json& spec, const std::string& node, const SymbolLookup& symbols) const;
  // The plan's symbols that stand for formulas: inference of a workload takes them too.
  void note_formula(const Symbol& symbol) { formulas_.push_back(symbol); }

 private:
  std::string with_formulas(const std::string& workload) const;
  // The candidate that a routine offers for a workload it takes and that a spec names; none where it offers no such.
  std::optional<Candidate> find_offered(const Routine& routine, const Workload& workload, const StepSpec& spec) const;
  SavedStep make_conversion(StepSpec spec, const SymbolLookup& symbols) const;

  const Target& target_;
  const OpRegistry& ops_;
  const RoutineTable& routines_;
  const SavedBlobs& blobs_;
  std::vector<Symbol> formulas_;
};

}  // namespace neo
