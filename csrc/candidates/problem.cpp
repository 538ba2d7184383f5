#include "candidates/problem.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "base/budget.h"
#include "base/check.h"
#include "routines/cost/product_start.h"

namespace neo {
namespace {

constexpr double kUnknownTrips = 10;

class Builder {
 public:
  Builder(const OpRegistry& ops, const RoutineTable& routines, const Target& target, const ProblemOptions& options)
      : ops_(ops), routines_(routines), target_(target), options_(options) {}

  std::unique_ptr<SelectionProblem> build(const Graph& graph) {
    auto problem = std::make_unique<SelectionProblem>();
    problem_ = problem.get();
    add_graphs(graph, 1);
    problem->open = find_open_nodes(graph);
    target_.cold_constants = problem->cold_constants = constant_bytes() > target_.kept_bytes;
    const std::vector<std::pair<const Graph*, double>> own = problem->graphs;
    for (const auto& [graph_part, trips] : own) add_choices(*graph_part);
    for (const auto& [graph_part, trips] : own) add_expansions(*graph_part, trips);
    check_choices();
    price_problem(*problem, target_);
    return problem;
  }

 private:
  // Every graph with its trips, and a variable for every node, those of a body behind its node's.
  void add_graphs(const Graph& graph, double trips) {
    problem_->graphs.emplace_back(&graph, trips);
    for (const auto& node : graph.nodes()) {
      problem_->index[node.get()] = static_cast<int>(problem_->nodes.size());
      problem_->nodes.push_back({node.get(), trips, {}, {}});
      for (const auto& [name, body] : node->bodies) add_graphs(*body, trips * expected_trips(*node));
    }
  }

  void add_expansions(const Graph& graph, double trips) {
    const Graph::Users users = graph.users();
    const size_t count = graph.nodes().size();
    for (size_t n = 0; n < count; ++n) {
      const Node& node = *graph.nodes()[n];
      for (const NodeExpansion& expansion : standard_expansions()) {
        if (expansion.op != node.op) continue;
        for (const auto& nodes : expandable_groups(node, users, graph)) add_expansion(expansion, nodes, graph, trips);
      }
    }
  }

  void add_expansion(const NodeExpansion& expansion, const std::vector<const Node*>& nodes, const Graph& graph,
                     double trips) {
    for (const Node* node : nodes) {
      if (is_known(*node) || problem_->open.count(node) > 0 || !node->symbols.empty()) return;
      for (const Value* v : node->inputs) {
        if (v && v->constant && v->constant->is_absent()) return;
        // A group with the operator before it multiplies codes.
        if (v && v->producer && v->producer->op == "DequantizeLinear") return;
      }
    }
    checkpoint();
    std::unique_ptr<Graph> inner = expand(expansion, nodes, graph, ops_);
    // A pin is asked only about what could compute the nodes, for it lists what was offered where it leaves nothing.
    if (!inner || (options_.allow && !options_.allow(nodes, text_of(expansion)))) return;
    const int index = static_cast<int>(problem_->expansions.size());
    const Workload workload = Workload::of(nodes);
    size_t taken = 0;
    for (const Value* v : workload.inputs) {
      if (!v->constant) problem_->interfaces[inner->inputs[taken++]] = v;
    }
    problem_->interfaces[inner->outputs.front()] = workload.outputs.front();
    add_graphs(*inner, trips);
    for (const auto& node : inner->nodes()) {
      SelectionProblem::NodeVariable& variable = at(*node);
      variable.expansion = index;
      variable.choices.push_back({std::nullopt, kNotTaken});
    }
    add_group(workload);
    at(*nodes.back()).choices.push_back({std::nullopt, kExpanded, 0, false, index});
    problem_->expansions.push_back({&expansion, &graph, nodes, std::move(inner)});
    add_choices(*problem_->expansions.back().graph);
  }

  // The bytes of the constants of all graphs, each constant once.
  int64_t constant_bytes() const {
    std::set<const void*> seen;
    int64_t bytes = 0;
    for (const auto& [graph, trips] : problem_->graphs) {
      for (const auto& node : graph->nodes()) {
        for (const Value* v : node->inputs) {
          if (!v || !v->constant || v->dtype() == DType::String || !seen.insert(v).second) continue;
          bytes += v->constant->size() * item_bytes(v->constant->dtype());
        }
      }
    }
    return bytes;
  }

  static double expected_trips(const Node& node) {
    if (node.op == "If") return 0.5;
    if (node.op == "Loop") {
      const Value* count = node.input(0);
      if (count && count->constant && count->constant->size() == 1) {
        return static_cast<double>(std::max<int64_t>(0, load_int64(count->dtype(), count->constant->data())));
      }
      return kUnknownTrips;
    }
    const auto scanned = static_cast<size_t>(node.int_attr("num_scan_inputs", 0));
    const auto captured = static_cast<size_t>(node.int_attr("num_captured", 0));
    const std::vector<int64_t> axes = node.ints_attr("scan_input_axes", std::vector<int64_t>(scanned, 0));
    if (scanned + captured <= node.inputs.size() && scanned > 0) {
      const Shape& shape = node.inputs[node.inputs.size() - captured - scanned]->shape();
      if (shape.has_rank()) {
        const int64_t axis = axes.front() < 0 ? axes.front() + shape.rank() : axes.front();
        return static_cast<double>(shape[static_cast<int>(axis)].hint());
      }
    }
    return kUnknownTrips;
  }

  // Why only a host step can do this: its memory cannot be laid out before it runs.
  std::optional<std::string> open_size(const Workload& workload) const {
    for (const Node* node : workload.nodes) {
      const auto it = problem_->open.find(node);
      if (it != problem_->open.end()) return it->second;
    }
    return std::nullopt;
  }

  void add_choices(const Graph& graph) {
    const Graph::Users users = graph.users();
    for (const auto& node : graph.nodes()) {
      checkpoint();
      SelectionProblem::NodeVariable& variable = at(*node);
      if (!node->bodies.empty()) {
        variable.choices.push_back({});
        continue;
      }
      if (is_known(*node)) {
        variable.choices.push_back({std::nullopt, kLeftOut});
        continue;
      }
      std::vector<std::shared_ptr<const Workload>> workloads;
      for (const Routine* routine : routines_for(node->op)) {
        for (Workload& workload : routine->matches(*node, users, graph)) {
          if (auto reason = routine->rejects(workload, target_)) {
            variable.rejections.push_back({routine, *reason});
            continue;
          }
          const std::shared_ptr<const Workload> shared = shared_workload(workloads, std::move(workload));
          const std::optional<std::string> open = open_size(*shared);
          for (Candidate& candidate : routine->candidates(*shared, target_, ops_)) {
            if ((candidate.cost.error > 0 || candidate.cost.rounds) && shared->is_exact()) {
              if (variable.rejections.empty() || variable.rejections.back().routine != routine)
                variable.rejections.push_back({routine, kRejectExact});
              continue;
            }
            if (open && candidate.kind != Candidate::Kind::Host && candidate.kind != Candidate::Kind::DataDependent) {
              variable.rejections.push_back({routine, *open});
              break;
            }
            candidate.routine = routine;
            candidate.workload = shared;
            if (options_.allow && !options_.allow(shared->nodes, candidate.text())) continue;
            if (shared->nodes.size() > 1) add_group(*shared);
            if (options_.trees && candidate.kind == Candidate::Kind::Step) {
              candidate.cost.time_us = options_.trees->time_us(candidate, target_).value_or(candidate.cost.time_us);
            }
            if (candidate.cost.load.family == StepFamily::Product) candidate.cost.time_us += start_us(routine->name());
            const double estimate_us = candidate.cost.time_us;
            variable.choices.push_back({std::move(candidate), -1, estimate_us});
          }
        }
      }
    }
    // Members of groups may be absorbed; offered last, after what they can do themselves.
    for (size_t g = first_group_; g < problem_->groups.size(); ++g) {
      const auto& nodes = problem_->groups[g].nodes;
      for (size_t i = 0; i + 1 < nodes.size(); ++i)
        at(*nodes[i]).choices.push_back({std::nullopt, static_cast<int>(g)});
    }
    first_group_ = problem_->groups.size();
    for (const auto& node : graph.nodes()) {
      auto& variable = at(*node);
      if (repeated_.count(node.get()) > 0 && !is_known(*node)) variable.choices.push_back({std::nullopt, kLeftOut});
    }
  }

  void check_choices() {
    for (auto& variable : problem_->nodes) {
      variable.choices.shrink_to_fit();
      variable.rejections.shrink_to_fit();
      std::string reasons;
      for (const auto& r : variable.rejections) reasons += str("; ", r.routine->name(), ": ", r.reason);
      NEO_CHECK(!variable.choices.empty(), Unsupported, variable.node->op, "no routine takes this node", reasons,
                " - at ", variable.node->place());
    }
  }

  // The workload, or one of the same nodes that another routine took.
  static std::shared_ptr<const Workload> shared_workload(std::vector<std::shared_ptr<const Workload>>& known,
                                                         Workload workload) {
    for (const auto& other : known) {
      if (other->nodes == workload.nodes && other->inputs == workload.inputs && other->outputs == workload.outputs) {
        return other;
      }
    }
    return known.emplace_back(std::make_shared<const Workload>(std::move(workload)));
  }

  // Those that serve the target, looked up once for each operator.
  const std::vector<const Routine*>& routines_for(const std::string& op) {
    const auto [it, fresh] = serving_.try_emplace(op);
    if (fresh) {
      it->second = routines_.for_root(op);
      std::erase_if(it->second, [&](const Routine* routine) { return !routine->serves(target_); });
    }
    return it->second;
  }

  static bool is_known(const Node& node) {
    return !node.outputs.empty() &&
           std::all_of(node.outputs.begin(), node.outputs.end(), [](const Value* v) { return !v || v->constant; });
  }

  void add_group(const Workload& workload) {
    add_repeated(workload);
    const std::vector<const Node*> nodes = members_of(workload);
    if (nodes.size() < 2) return;
    if (group_index_.emplace(nodes, static_cast<int>(problem_->groups.size())).second)
      problem_->groups.push_back({nodes});
  }

  void add_repeated(const Workload& workload) {
    for (const Node* node : workload.nodes) {
      if (workload.repeats(*node)) repeated_.insert(node);
    }
  }

  SelectionProblem::NodeVariable& at(const Node& node) {
    return problem_->nodes[static_cast<size_t>(problem_->index.at(&node))];
  }

  const OpRegistry& ops_;
  const RoutineTable& routines_;
  Target target_;
  const ProblemOptions& options_;
  SelectionProblem* problem_ = nullptr;
  std::map<std::string, std::vector<const Routine*>> serving_;  // by operator
  std::map<std::vector<const Node*>, int> group_index_;
  std::set<const Node*> repeated_;  // by some group, which computes it for itself
  size_t first_group_ = 0;
};

}  // namespace

std::vector<const Node*> members_of(const Workload& workload) {
  std::vector<const Node*> nodes;
  std::copy_if(workload.nodes.begin(), workload.nodes.end(), std::back_inserter(nodes),
               [&](const Node* node) { return !workload.repeats(*node); });
  return nodes;
}

std::unique_ptr<SelectionProblem> build_problem(const Graph& graph, const OpRegistry& ops, const RoutineTable& routines,
                                                const Target& target, const ProblemOptions& options) {
  return Builder(ops, routines, target, options).build(graph);
}

}  // namespace neo
