#include "candidates/problem.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <tuple>

#include "base/budget.h"
#include "base/check.h"
#include "routines/cost/product_start.h"

namespace neo {
namespace {

constexpr double kUnknownTrips = 10;

// The nodes of a group that nobody but it computes, the root last.
std::vector<const Node*> members_of(const Workload& workload) {
  std::vector<const Node*> nodes;
  std::copy_if(workload.nodes.begin(), workload.nodes.end(), std::back_inserter(nodes),
               [&](const Node* node) { return !workload.repeats(*node); });
  return nodes;
}

class Builder {
 public:
  Builder(const OpRegistry& ops, const RoutineTable& routines, const Target& target, const ProblemOptions& options)
      : ops_(ops), routines_(routines), target_(target), options_(options) {}

  std::unique_ptr<SelectionProblem> build(const Graph& graph) {
    auto problem = std::make_unique<SelectionProblem>();
    problem_ = problem.get();
    add_graphs(graph, 1, true);
    problem->open = find_open_nodes(graph);
    target_.cold_constants = problem->cold_constants = constant_bytes() > target_.kept_bytes;
    for (auto& [graph_part, trips] : graphs_) add_choices(*graph_part);
    add_arrays();
    return problem;
  }

  void price(const Graph& graph, SelectionProblem& problem) {
    problem_ = &problem;
    add_graphs(graph, 1, false);
    for (size_t g = 0; g < problem.groups.size(); ++g) group_index_[problem.groups[g].nodes] = static_cast<int>(g);
    problem.schemas.clear();
    problem.costs.clear();
    problem.edges.clear();
    problem.resources.clear();
    add_arrays();
  }

 private:
  void add_arrays() {
    find_group_values();
    add_node_costs();
    add_group_edges();
    for (auto& [graph_part, trips] : graphs_) add_value_edges(*graph_part, trips);
  }

  // Every graph with its trips; `variables`: and a variable for every node, those of a body behind its node's.
  void add_graphs(const Graph& graph, double trips, bool variables) {
    graphs_.emplace_back(&graph, trips);
    for (const auto& node : graph.nodes()) {
      if (variables) {
        problem_->index[node.get()] = static_cast<int>(problem_->nodes.size());
        problem_->nodes.push_back({node.get(), trips, {}, {}});
      }
      for (const auto& [name, body] : node->bodies) add_graphs(*body, trips * expected_trips(*node), variables);
    }
  }

  // The bytes of the constants of all graphs, each constant once.
  int64_t constant_bytes() const {
    std::set<const void*> seen;
    int64_t bytes = 0;
    for (const auto& [graph, trips] : graphs_) {
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
            if (options_.allow && !options_.allow(*node, candidate)) continue;
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
      variable.choices.shrink_to_fit();
      variable.rejections.shrink_to_fit();
      std::string reasons;
      for (const auto& r : variable.rejections) reasons += str("; ", r.routine->name(), ": ", r.reason);
      NEO_CHECK(!variable.choices.empty(), Unsupported, node->op, "no routine takes this node", reasons, " - at ",
                node->place());
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

  void find_group_values() {
    for (const auto& variable : problem_->nodes) {
      for (const auto& choice : variable.choices) {
        if (!choice.candidate) continue;
        add_repeated(*choice.candidate->workload);
        for (const Value* v : choice.candidate->workload->outputs) {
          if (v->producer != variable.node) inner_.insert(v);
        }
      }
    }
  }

  int group_of(const SelectionProblem::Choice& choice) const {
    if (choice.absorbed_by >= 0) return choice.absorbed_by;
    if (!choice.candidate || choice.candidate->workload->nodes.size() < 2) return -1;
    const std::vector<const Node*> nodes = members_of(*choice.candidate->workload);
    return nodes.size() < 2 ? -1 : group_index_.at(nodes);
  }

  // Constants that a candidate reads when it runs, which the module has to hold beside those that are packed.
  static int64_t read_bytes(const Candidate& candidate) {
    int64_t bytes = 0;
    for (size_t i = 0; i < candidate.inputs.size() && i < candidate.workload->inputs.size(); ++i) {
      const Value* v = candidate.workload->inputs[i];
      if (!candidate.inputs[i] || !v->constant || v->dtype() == DType::String) continue;
      bytes += v->constant->size() * item_bytes(v->dtype());
    }
    return bytes;
  }

  void add_node_costs() {
    auto& constants = problem_->resources["constant_bytes"];
    auto& workspace = problem_->resources["workspace_bytes"];
    auto& error = problem_->resources["error"];
    auto& rounding = problem_->resources["rounding"];
    for (const auto& variable : problem_->nodes) {
      std::vector<double> time, k, w, e, r;
      for (const auto& choice : variable.choices) {
        const Cost cost = choice.candidate ? choice.candidate->cost : Cost{};
        const double penalty = choice.candidate ? penalty_us(*choice.candidate, target_) : 0;
        time.push_back((cost.time_us + penalty) * variable.trips);
        k.push_back(static_cast<double>(cost.packed_bytes + (choice.candidate ? read_bytes(*choice.candidate) : 0)));
        w.push_back(static_cast<double>(cost.workspace_bytes));
        e.push_back(cost.error);
        r.push_back(cost.rounds ? 1 : 0);
      }
      problem_->costs.push_back(std::move(time));
      constants.push_back(std::move(k));
      workspace.push_back(std::move(w));
      error.push_back(std::move(e));
      rounding.push_back(std::move(r));
    }
  }

  // A group is taken whole or not at all. Each member agrees with the next one that reads its results, up to the root:
  // edges to nodes nearby leave an elimination smaller tables than edges to the root would.
  void add_group_edges() {
    for (size_t g = 0; g < problem_->groups.size(); ++g) {
      const auto& nodes = problem_->groups[g].nodes;
      const auto takes = [&](int variable, size_t choice) {
        return group_of(problem_->nodes[static_cast<size_t>(variable)].choices[choice]) == static_cast<int>(g);
      };
      for (size_t i = 0; i + 1 < nodes.size(); ++i) {
        const auto reads_member = [&](const Node* node) {
          return std::any_of(node->inputs.begin(), node->inputs.end(),
                             [&](const Value* value) { return value && value->producer == nodes[i]; });
        };
        auto next = std::find_if(nodes.begin() + static_cast<std::ptrdiff_t>(i) + 1, nodes.end(), reads_member);
        if (next == nodes.end()) --next;
        const int member = problem_->index.at(nodes[i]), reader = problem_->index.at(*next);
        add_edge(member, reader,
                 [&](size_t m, size_t r) { return takes(member, m) == takes(reader, r) ? 0.0 : kForbidden; });
      }
    }
  }

  template <class F>
  void add_edge(int a, int b, F&& cost) {
    SelectionProblem::Edge edge{std::min(a, b), std::max(a, b), {}};
    const size_t rows = problem_->costs[static_cast<size_t>(edge.u)].size();
    const size_t columns = problem_->costs[static_cast<size_t>(edge.v)].size();
    bool any = false;
    for (size_t i = 0; i < rows; ++i) {
      for (size_t j = 0; j < columns; ++j) {
        const double c = a < b ? cost(i, j) : cost(j, i);
        any = any || c != 0;
        edge.costs.push_back(c);
      }
    }
    if (any) problem_->edges.push_back(std::move(edge));
  }

  // The schema in which each choice of a variable reads or writes a value; none: the choice does not touch it.
  using Schemas = std::vector<std::optional<Schema>>;
  // Which choices of a variable leave others without a value.
  using Withheld = std::vector<bool>;

  static Schemas required_schemas(const SelectionProblem::NodeVariable& variable, const Value* value) {
    Schemas required;
    for (const auto& choice : variable.choices) {
      std::optional<Schema> wish;
      if (choice.candidate) {
        const int i = choice.candidate->workload->input_index(value);
        if (i >= 0) wish = choice.candidate->inputs[static_cast<size_t>(i)];
      } else if (choice.absorbed_by == -1) {
        wish = plain_schema(value->type);
      }
      required.push_back(std::move(wish));
    }
    return required;
  }

  Schemas produced_schemas(const SelectionProblem::NodeVariable& variable, const Value* value) const {
    Schemas gives;
    for (const auto& choice : variable.choices) {
      std::optional<Schema> give;
      if (choice.candidate) {
        const auto& outputs = choice.candidate->workload->outputs;
        const auto it = std::find(outputs.begin(), outputs.end(), value);
        if (it != outputs.end()) give = choice.candidate->outputs[static_cast<size_t>(it - outputs.begin())];
      } else if (choice.absorbed_by == -1 || (choice.absorbed_by >= 0 && inner_.count(value) > 0)) {
        give = plain_schema(value->type);
      }
      gives.push_back(std::move(give));
    }
    return gives;
  }

  // Choices that leave the node out, and choices absorbed by a group, where a reader is repeated by other groups, too.
  Withheld withheld_of(const SelectionProblem::NodeVariable& variable, const std::set<int>& readers) const {
    const bool is_shared = std::any_of(readers.begin(), readers.end(), [&](int reader) {
      return repeated_.count(problem_->nodes[static_cast<size_t>(reader)].node) > 0;
    });
    Withheld withheld;
    for (const auto& choice : variable.choices)
      withheld.push_back(choice.absorbed_by == kLeftOut || (is_shared && choice.absorbed_by >= 0));
    return withheld;
  }

  void add_value_edges(const Graph& graph, double trips) {
    std::map<const Value*, std::set<int>> readers;
    std::vector<const Value*> order;
    const auto reads = [&](const Value* value, int variable) {
      if (!value || value->is_constant()) return;
      auto [it, fresh] = readers.try_emplace(value);
      if (fresh) order.push_back(value);
      it->second.insert(variable);
    };
    for (const auto& node : graph.nodes()) {
      const int v = problem_->index.at(node.get());
      for (const Value* input : node->inputs) reads(input, v);
      for (const auto& choice : at(*node).choices) {
        if (!choice.candidate) continue;
        for (const Value* input : choice.candidate->workload->inputs) reads(input, v);
      }
    }
    for (const Value* output : graph.outputs) {
      if (output && !output->is_constant() && readers.try_emplace(output).second) order.push_back(output);
    }
    for (const Value* value : order) {
      checkpoint();
      add_value(*value, readers[value], graph.is_output(value), trips);
    }
  }

  // The time of a conversion, entered into the problem the first time it is asked for.
  double convert_us(const Value& value, const Schema& from, const Schema& to) {
    if (from == to) return 0;
    const auto [it, fresh] =
        problem_->conversion_index.emplace(conversion_key(value, from, to), problem_->conversions.size());
    if (fresh) {
      const double estimate_us = adapt_time_us(value.type, from, to, target_);
      problem_->conversions.push_back({&value, from, to, estimate_us, estimate_us});
    }
    return problem_->conversions[it->second].time_us;
  }

  void add_value(const Value& value, const std::set<int>& readers, bool is_output, double trips) {
    const Schema boundary = plain_schema(value.type);
    const int producer = value.producer ? problem_->index.at(value.producer) : -1;
    const Schemas gives =
        producer >= 0 ? produced_schemas(problem_->nodes[static_cast<size_t>(producer)], &value) : Schemas{boundary};
    const Withheld withheld =
        producer >= 0 ? withheld_of(problem_->nodes[static_cast<size_t>(producer)], readers) : Withheld{false};
    std::vector<std::pair<int, Schemas>> consumers;
    std::vector<Schema> wanted;
    const auto want = [&](const Schema& s) {
      if (std::find(wanted.begin(), wanted.end(), s) == wanted.end()) wanted.push_back(s);
    };
    for (int reader : readers) {
      Schemas required = required_schemas(problem_->nodes[static_cast<size_t>(reader)], &value);
      for (const auto& w : required) {
        if (w) want(*w);
      }
      if (std::any_of(required.begin(), required.end(), [](const auto& w) { return w.has_value(); })) {
        consumers.emplace_back(reader, std::move(required));
      }
    }
    if (is_output) want(boundary);
    const bool produced_plain =
        std::all_of(gives.begin(), gives.end(), [&](const auto& g) { return !g || *g == boundary; }) &&
        std::find(withheld.begin(), withheld.end(), true) == withheld.end();
    if (wanted.empty() || (wanted.size() == 1 && wanted.front() == boundary && produced_plain)) return;

    // Choices repeat few schemas: each pair of them is looked up once.
    std::vector<std::tuple<Schema, Schema, double>> known;
    const auto cost_of_give = [&](size_t i, const Schema& to) {
      if (withheld[i]) return kForbidden;
      if (!gives[i] || *gives[i] == to) return 0.0;
      for (const auto& [from, there, cost] : known) {
        if (from == *gives[i] && there == to) return cost;
      }
      known.emplace_back(*gives[i], to, convert_us(value, *gives[i], to) * trips);
      return std::get<2>(known.back());
    };
    if (consumers.size() + (is_output ? 1 : 0) == 1) {
      if (is_output) {
        if (producer < 0) return;
        for (size_t i = 0; i < gives.size(); ++i)
          problem_->costs[static_cast<size_t>(producer)][i] += cost_of_give(i, boundary);
        return;
      }
      const int reader = consumers.front().first;
      const auto& required = consumers.front().second;
      if (producer < 0) {
        for (size_t j = 0; j < required.size(); ++j) {
          if (required[j]) problem_->costs[static_cast<size_t>(reader)][j] += cost_of_give(0, *required[j]);
        }
      } else {
        add_edge(producer, reader,
                 [&](size_t i, size_t j) { return required[j] ? cost_of_give(i, *required[j]) : 0.0; });
      }
      return;
    }
    // Paid once per value and wanted schema: a 0/1 variable for each.
    for (const Schema& schema : wanted) {
      const int variable = static_cast<int>(problem_->costs.size());
      problem_->schemas.push_back({&value, schema});
      const bool forced = is_output && schema == boundary;
      problem_->costs.push_back({forced ? kForbidden : 0.0, producer < 0 ? cost_of_give(0, schema) : 0.0});
      for (auto& [name, vectors] : problem_->resources) vectors.push_back({0.0, 0.0});
      if (producer >= 0) {
        add_edge(producer, variable, [&](size_t i, size_t on) { return on ? cost_of_give(i, schema) : 0.0; });
      }
      for (const auto& [reader, required] : consumers) {
        const Schemas& w = required;
        add_edge(reader, variable,
                 [&](size_t j, size_t on) { return w[j] && *w[j] == schema && !on ? kForbidden : 0.0; });
      }
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
  std::vector<std::pair<const Graph*, double>> graphs_;
  std::map<std::vector<const Node*>, int> group_index_;
  std::set<const Node*> repeated_;  // by some group, which computes it for itself
  std::set<const Value*> inner_;    // outputs of groups that do not end there
  size_t first_group_ = 0;
};

}  // namespace

std::unique_ptr<SelectionProblem> build_problem(const Graph& graph, const OpRegistry& ops, const RoutineTable& routines,
                                                const Target& target, const ProblemOptions& options) {
  return Builder(ops, routines, target, options).build(graph);
}

void price_problem(const Graph& graph, SelectionProblem& problem, const OpRegistry& ops, const RoutineTable& routines,
                   const Target& target) {
  const ProblemOptions options;
  Builder(ops, routines, target, options).price(graph, problem);
}

DeviceKind place_of(const Candidate& candidate) {
  return candidate.outputs.empty() ? DeviceKind::Cpu : candidate.outputs.front().device;
}

std::vector<std::vector<uint32_t>> places_of(const SelectionProblem& problem) {
  const auto bit = [](DeviceKind kind) { return uint32_t{1} << static_cast<uint32_t>(kind); };
  std::map<std::vector<const Node*>, uint32_t> of_groups;
  for (const auto& variable : problem.nodes) {
    for (const auto& choice : variable.choices) {
      if (choice.candidate && choice.candidate->workload->nodes.size() > 1)
        of_groups[members_of(*choice.candidate->workload)] |= bit(place_of(*choice.candidate));
    }
  }
  std::vector<std::vector<uint32_t>> places;
  for (const auto& variable : problem.nodes) {
    auto& of_choices = places.emplace_back();
    for (const auto& choice : variable.choices) {
      if (choice.candidate) {
        of_choices.push_back(bit(place_of(*choice.candidate)));
      } else {
        const int group = choice.absorbed_by;
        of_choices.push_back(group < 0 ? 0 : of_groups[problem.groups[static_cast<size_t>(group)].nodes]);
      }
    }
  }
  return places;
}

double penalty_us(const Candidate& candidate, const Target& target) {
  if (!target.has_device() || candidate.outputs.empty() || place_of(candidate) != DeviceKind::Cpu) return 0;
  return target.cpu_penalty_us * static_cast<double>(candidate.workload->nodes.size());
}

double time_behind(const SelectionProblem& problem, const std::vector<int>& choices, double total_us,
                   const Target& target) {
  for (size_t i = 0; i < problem.nodes.size(); ++i) {
    const auto& variable = problem.nodes[i];
    const auto& candidate = variable.choices[static_cast<size_t>(choices[i])].candidate;
    if (candidate) total_us -= penalty_us(*candidate, target) * variable.trips;
  }
  return total_us;
}

std::string sizes_text(const Type& type) {
  std::string sizes;
  if (type.is_tensor() && type.shape.has_rank()) {
    for (const Dim& d : type.shape.dims()) sizes += str(sizes.empty() ? "" : ",", d.hint());
  }
  return str(name(type.dtype), "[", sizes, "]");
}

std::string conversion_key(const Value& value, const Schema& from, const Schema& to) {
  return str(sizes_text(value.type), " ", from.to_string(), "->", to.to_string());
}

const SelectionProblem::Conversion* SelectionProblem::conversion(const Value& value, const Schema& from,
                                                                 const Schema& to) const {
  const auto it = conversion_index.find(conversion_key(value, from, to));
  return it == conversion_index.end() ? nullptr : &conversions[it->second];
}

}  // namespace neo
