#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "exec/step.h"
#include "ir/graph.h"
#include "ir/schema.h"
#include "ops/op.h"
#include "routines/cost/step_cost.h"
#include "routines/packed_store.h"

namespace neo {

// The nodes that one routine would compute: one, or a group that ends in `root`. Only its outputs, and those of nodes
// that the group repeats, are read from outside the group. Constant inputs stay in `inputs`; their values are facts for
// the routine, not part of the text.
struct Workload {
  std::vector<const Node*> nodes;  // topological order, root last
  std::vector<Value*> inputs;      // every outside value the nodes read, once each, in order of first use
  std::vector<Value*> outputs;     // the root's, without those left out, then inner ones in the order of the nodes

  static Workload of(const Node& node);
  // `inner`: values of other nodes that are outputs, too. A candidate gives them as plain_schema has it, and its step
  // stands in the place of the group's first node, before which all that it reads must be computable.
  static Workload of(std::vector<const Node*> nodes, std::vector<Value*> inner = {});
  // The workload of the nodes of a parsed text, whose outputs are called y.
  static Workload parsed(std::vector<const Node*> nodes);
  const Node& root() const { return *nodes.back(); }
  int input_index(const Value* value) const;  // -1 where it is not an input
  bool has_inner_outputs() const { return !outputs.empty() && outputs.back()->producer != nodes.back(); }
  // Whether the group computes a node for itself, whoever else does: one that is cheap enough, as a DequantizeLinear
  // before the root is.
  bool repeats(const Node& node) const { return &node != nodes.back() && node.op == "DequantizeLinear"; }
  Work work(const OpRegistry& ops) const;
  // Whether the result is an integer that float32 holds: of whole numbers every sum and product must be exact, which a
  // direct sum's are. A pass says so by the attribute `exact` of the product.
  bool is_exact() const;

  // docs/workloads.md. The key of the database, test ids, traces; parse_workload reads it back.
  std::string text() const;
};

// Why a routine whose error is not the direct sum's does not take an exact workload.
inline constexpr const char* kRejectExact = "the result is an integer, which its arithmetic would round";

// How a value is held at a block's boundary and by every reference: on the host, row-major.
Schema plain_schema(const Type& type);

// Constants of so few elements are facts that a routine may turn into immediates; the text has them in full.
inline constexpr int64_t kWrittenElements = 4;

struct ParsedWorkload {
  std::unique_ptr<Graph> graph;
  Workload workload;
};
// Facts that a workload's text does not hold.
struct WorkloadFacts {
  // Tensors: a constant by its name ("k0"; none: its contents are absent), one in an attribute by its hash.
  std::function<std::optional<Tensor>(std::string_view)> constants;
  // Elements of integer inputs that are known expressions, by name ("i1").
  std::map<std::string, std::vector<Dim>> contents;
};
// Without facts constants are zero.
ParsedWorkload parse_workload(std::string_view text, const OpRegistry& ops, const WorkloadFacts* facts = nullptr);

// One point of a routine's space: {ic_bn=16 oc_bn=32 reg_n=14}.
using Schedule = std::map<std::string, int64_t, std::less<>>;
std::string to_string(const Schedule& schedule);

// The time and the resources of a candidate in the selection problem.
struct Cost {
  double time_us = 0;
  StepLoad load;        // what time_us was made of, where price() made it
  double error = 0;     // rms, in units of the direct method's
  bool rounds = false;  // operands to fewer bits than their dtype has: only where the user allows it
  int64_t packed_bytes = 0;
  int64_t workspace_bytes = 0;
};

class Routine;
class Space;
struct LoopNest;

// One way to execute a workload: what it takes, gives and costs.
struct Candidate {
  enum class Kind : uint8_t {
    Step,           // make() gives a kernel step, whose sizes are known before it runs
    Host,           // make() gives a host step: any kind of value, and sizes that it finds out itself
    View,           // the outputs are parts of input 0's memory: no step
    ConcatInPlace,  // the inputs are written straight into their places in the output: no step (Concat)
    DataDependent,  // make() gives a device step that finds out the sizes of its outputs
  };
  const Routine* routine = nullptr;
  std::shared_ptr<const Workload> workload;
  Kind kind = Kind::Step;
  std::vector<std::optional<Schema>>
      inputs;                   // by workload input; none: not read at run time (packed, or only its sizes matter)
  std::vector<Schema> outputs;  // by workload output
  Schedule schedule;
  Cost cost;
  std::vector<Dim>
      offsets;  // in elements; View: where each output starts, ConcatInPlace: where each of the node's inputs goes
  int in_place = -1;  // input whose memory an output of equal schema and size may take over

  // Reads and gives every operand as plain_schema has it.
  static Candidate plain(const Workload& workload);
  // The same, but reads only these inputs at run time, null ones aside.
  static Candidate reading(const Workload& workload, std::initializer_list<const Value*> read);
  std::string text() const;  // "cpu:float32/direct_nchwc{ic_bn=16 oc_bn=32 reg_n=14}"
};

// One implementation of an op or of a pattern of ops. Pure data and pure functions; also listed for machines that are
// absent.
class Routine {
 public:
  virtual ~Routine() = default;
  virtual std::string_view name() const = 0;                // "cpu:float32/direct_nchwc"
  virtual std::vector<std::string_view> roots() const = 0;  // ops its workloads end in; empty: any op

  // Whether it is for such machines at all; it is not asked further for others.
  virtual bool serves(const Target&) const { return true; }
  // Groups this routine could take that end in `root`. The default: the node alone.
  virtual std::vector<Workload> matches(const Node& root, const Graph::Users& users, const Graph& graph) const;
  // Why it cannot take this workload on this target; for the whole range of every symbol.
  virtual std::optional<std::string> rejects(const Workload& workload, const Target& target) const = 0;
  // Called only where rejects() gave nothing. At least one; `routine` and `workload` are filled in by the caller.
  virtual std::vector<Candidate> candidates(const Workload& workload, const Target& target,
                                            const OpRegistry& ops) const = 0;
  // The schedules it can be given for this workload: what candidates() chose by estimate is among them. All of them
  // have the schemas of the candidates. The default: the empty schedule alone.
  virtual Space space(const Workload& workload, const Target& target) const;
  // The candidate of one point of the space; asserts that it is one.
  virtual Candidate candidate(const Workload& workload, const Target& target, const OpRegistry& ops,
                              const Schedule& schedule) const;
  // A schedule's loops over the workload, for a cost model.
  virtual LoopNest loops(const Candidate& candidate, const Target& target) const;
  // Packs constants through the store and binds the kernel; the same calls of the store for the same candidate. Not
  // called for views.
  virtual std::unique_ptr<Step> make(const Candidate& candidate, const Target& target, const OpRegistry& ops,
                                     PackedStore& packed) const = 0;
};

// The one table. Selection, tests, benchmarks, the command line and docs enumerate it.
class RoutineTable {
 public:
  void add(std::unique_ptr<Routine> routine);
  const std::vector<std::unique_ptr<Routine>>& all() const { return routines_; }
  const Routine* find(std::string_view name) const;
  // The routines that may end in this op, the reference last.
  std::vector<const Routine*> for_root(std::string_view op) const;

 private:
  std::vector<std::unique_ptr<Routine>> routines_;
};
const RoutineTable& standard_routines();

// Conversions between schemas of one value: layout transforms, copies between devices (and casts, quantization as those
// come). Time of a conversion at the hint; infinite where there is none. A conversion that takes two steps is the sum:
// `intermediate_schema` is the schema between them.
double adapt_time_us(const Type& type, const Schema& from, const Schema& to, const Target& target);
std::optional<Schema> intermediate_schema(const Schema& from, const Schema& to);
// "cpu:adapt/cpu:float32:NCHW->cpu:float32:NCHW16c"
std::string adapt_name(const Schema& from, const Schema& to);
std::unique_ptr<Step> make_adapt(const Type& type, const Schema& from, const Schema& to, const Target& target);
// On the CPU alone, for programs that link no more.
bool is_host_convertible(const Schema& from, const Schema& to);
std::unique_ptr<Step> make_host_adapt(const Type& type, const Schema& from, const Schema& to, const Target& target);
// A constant brought into another schema at compile time.
Tensor adapt_constant(const Tensor& tensor, const Schema& from, const Schema& to);

// The work of a conversion, for the CPU alone.
StepLoad adapt_load(const Type& type, const Schema& from, const Schema& to);

// Bytes of a value as a schema holds it, lanes of padding too; at the hints.
double schema_bytes(const Type& type, const Schema& schema);
// An operand of a step as it is bound at the hints.
Arg hint_arg(const Type& type, const Schema& schema);
// Gives a candidate, whose schemas are filled in, the cost of a load. The load's bytes, where it has none, are those of
// the operands.
void price(Candidate& candidate, const Workload& workload, StepLoad load, const Target& target);

}  // namespace neo
