#include <algorithm>
#include <iterator>
#include <set>
#include <tuple>

#include "base/budget.h"
#include "base/check.h"
#include "candidates/problem.h"

namespace neo {
namespace {

// The arrays of a problem, from its choices.
class ArrayBuilder {
 public:
  ArrayBuilder(SelectionProblem& problem, const Target& target) : problem_(problem), target_(target) {}

  void build() {
    for (size_t g = 0; g < problem_.groups.size(); ++g) group_index_[problem_.groups[g].nodes] = static_cast<int>(g);
    problem_.schemas.clear();
    problem_.costs.clear();
    problem_.edges.clear();
    problem_.resources.clear();
    find_group_values();
    add_node_costs();
    add_group_edges();
    add_expansion_edges();
    add_value_edges();
  }

 private:
  void find_group_values() {
    for (const auto& variable : problem_.nodes) {
      for (const auto& choice : variable.choices) {
        if (!choice.candidate) continue;
        for (const Node* node : choice.candidate->workload->nodes) {
          if (choice.candidate->workload->repeats(*node)) repeated_.insert(node);
        }
        for (const Value* v : choice.candidate->workload->outputs) {
          if (v->producer != variable.node) inner_.insert(v);
        }
      }
    }
  }

  int group_of(const SelectionProblem::Choice& choice) const {
    if (choice.absorbed_by >= 0) return choice.absorbed_by;
    if (choice.absorbed_by != kExpanded && !choice.candidate) return -1;
    const std::vector<const Node*> nodes =
        choice.candidate ? members_of(*choice.candidate->workload) : expansion(choice.expansion).nodes;
    return nodes.size() < 2 ? -1 : group_index_.at(nodes);
  }

  const SelectionProblem::Expanded& expansion(int index) const {
    return problem_.expansions[static_cast<size_t>(index)];
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
    auto& constants = problem_.resources["constant_bytes"];
    auto& workspace = problem_.resources["workspace_bytes"];
    auto& error = problem_.resources["error"];
    auto& rounding = problem_.resources["rounding"];
    for (const auto& variable : problem_.nodes) {
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
      problem_.costs.push_back(std::move(time));
      constants.push_back(std::move(k));
      workspace.push_back(std::move(w));
      error.push_back(std::move(e));
      rounding.push_back(std::move(r));
    }
  }

  // A group is taken whole or not at all. Each member agrees with the next one that reads its results, up to the root:
  // edges to nodes nearby leave an elimination smaller tables than edges to the root would.
  void add_group_edges() {
    for (size_t g = 0; g < problem_.groups.size(); ++g) {
      const auto& nodes = problem_.groups[g].nodes;
      const auto takes = [&](int variable, size_t choice) {
        return group_of(problem_.nodes[static_cast<size_t>(variable)].choices[choice]) == static_cast<int>(g);
      };
      for (size_t i = 0; i + 1 < nodes.size(); ++i) {
        const auto reads_member = [&](const Node* node) {
          return std::any_of(node->inputs.begin(), node->inputs.end(),
                             [&](const Value* value) { return value && value->producer == nodes[i]; });
        };
        auto next = std::find_if(nodes.begin() + static_cast<std::ptrdiff_t>(i) + 1, nodes.end(), reads_member);
        if (next == nodes.end()) --next;
        add_agreement(problem_.index.at(nodes[i]), problem_.index.at(*next), takes);
      }
    }
  }

  // Nodes of an inner graph are taken where the root's choice is the expansion, and only there. Each agrees with the
  // next one that reads it, the last one with the root.
  void add_expansion_edges() {
    for (size_t e = 0; e < problem_.expansions.size(); ++e) {
      const auto& expanded = problem_.expansions[e];
      const int root = problem_.index.at(expanded.nodes.back());
      const auto takes = [&](int variable, size_t choice) {
        const auto& c = problem_.nodes[static_cast<size_t>(variable)].choices[choice];
        return variable == root ? c.expansion == static_cast<int>(e) : c.absorbed_by != kNotTaken;
      };
      const Graph::Users users = expanded.graph->users();
      for (const auto& node : expanded.graph->nodes()) {
        int reader = root;
        for (const Value* v : node->outputs) {
          const auto it = v ? users.find(v) : users.end();
          if (it != users.end()) reader = problem_.index.at(it->second.front().first);
        }
        add_agreement(problem_.index.at(node.get()), reader, takes);
      }
    }
  }

  template <class F>
  void add_agreement(int a, int b, const F& takes) {
    add_edge(a, b, [&](size_t i, size_t j) { return takes(a, i) == takes(b, j) ? 0.0 : kForbidden; });
  }

  template <class F>
  void add_edge(int a, int b, F&& cost) {
    SelectionProblem::Edge edge{std::min(a, b), std::max(a, b), {}};
    const size_t rows = problem_.costs[static_cast<size_t>(edge.u)].size();
    const size_t columns = problem_.costs[static_cast<size_t>(edge.v)].size();
    bool any = false;
    for (size_t i = 0; i < rows; ++i) {
      for (size_t j = 0; j < columns; ++j) {
        const double c = a < b ? cost(i, j) : cost(j, i);
        any = any || c != 0;
        edge.costs.push_back(c);
      }
    }
    if (any) problem_.edges.push_back(std::move(edge));
  }

  // The schema in which each choice of a variable reads or writes a value; none: the choice does not touch it.
  using Schemas = std::vector<std::optional<Schema>>;
  // Which choices of a variable leave others without a value.
  using Withheld = std::vector<bool>;
  // A variable with a choice that makes a value; -1: an input. A value that an inner graph makes as well has several,
  // of which a solution takes one.
  struct Producer {
    int variable = -1;
    Schemas gives;
    Withheld withheld;
  };
  struct Consumer {
    int variable = -1;
    Schemas required;
  };
  struct Reads {
    std::set<int> readers;
    bool is_output = false;
    double trips = 1;
  };

  // The place of a value, or of what it is to an inner graph.
  int index_of(const std::vector<Value*>& values, const Value* value) const {
    const auto it =
        std::find_if(values.begin(), values.end(), [&](const Value* v) { return problem_.outer(v) == value; });
    return it == values.end() ? -1 : static_cast<int>(it - values.begin());
  }

  Schemas required_schemas(const SelectionProblem::NodeVariable& variable, const Value* value) const {
    Schemas required;
    for (const auto& choice : variable.choices) {
      std::optional<Schema> wish;
      if (choice.candidate) {
        const int i = index_of(choice.candidate->workload->inputs, value);
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
        const int i = index_of(choice.candidate->workload->outputs, value);
        if (i >= 0) give = choice.candidate->outputs[static_cast<size_t>(i)];
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
      return repeated_.count(problem_.nodes[static_cast<size_t>(reader)].node) > 0;
    });
    Withheld withheld;
    for (const auto& choice : variable.choices)
      withheld.push_back(choice.absorbed_by == kLeftOut || (is_shared && choice.absorbed_by >= 0));
    return withheld;
  }

  void add_value_edges() {
    std::map<const Value*, Reads> reads;
    std::vector<const Value*> order;
    const auto found = [&](const Value* value, double trips) -> Reads& {
      auto [it, fresh] = reads.try_emplace(value);
      if (fresh) {
        order.push_back(value);
        it->second.trips = trips;
      }
      return it->second;
    };
    for (const auto& [graph, trips] : problem_.graphs) {
      const double often = trips;
      const auto read = [&](const Value* value, int variable) {
        if (value && !value->is_constant()) found(problem_.outer(value), often).readers.insert(variable);
      };
      for (const auto& node : graph->nodes()) {
        const int v = problem_.index.at(node.get());
        for (const Value* input : node->inputs) read(input, v);
        for (const auto& choice : problem_.nodes[static_cast<size_t>(v)].choices) {
          if (!choice.candidate) continue;
          for (const Value* input : choice.candidate->workload->inputs) read(input, v);
        }
      }
      for (const Value* output : graph->outputs) {
        if (!output || output->is_constant()) continue;
        if (problem_.interfaces.count(output) > 0) {
          makers_[problem_.outer(output)].push_back(problem_.index.at(output->producer));
        } else {
          found(output, trips).is_output = true;
        }
      }
    }
    for (const Value* value : order) {
      checkpoint();
      add_value(*value, reads.at(value));
    }
  }

  // The time of a conversion, entered into the problem the first time it is asked for.
  double convert_us(const Value& value, const Schema& from, const Schema& to) {
    if (from == to) return 0;
    const auto [it, fresh] =
        problem_.conversion_index.emplace(conversion_key(value, from, to), problem_.conversions.size());
    if (fresh) {
      const double estimate_us = adapt_time_us(value.type, from, to, target_);
      problem_.conversions.push_back({&value, from, to, estimate_us, estimate_us});
    }
    return problem_.conversions[it->second].time_us;
  }

  std::vector<Producer> producers_of(const Value& value, const std::set<int>& readers) const {
    if (!value.producer) return {{-1, {plain_schema(value.type)}, {false}}};
    std::vector<int> variables{problem_.index.at(value.producer)};
    if (const auto it = makers_.find(&value); it != makers_.end())
      variables.insert(variables.end(), it->second.begin(), it->second.end());
    std::vector<Producer> producers;
    for (const int v : variables) {
      const auto& variable = problem_.nodes[static_cast<size_t>(v)];
      producers.push_back({v, produced_schemas(variable, &value), withheld_of(variable, readers)});
    }
    return producers;
  }

  // Whether a solution lets two variables read at the same time: not a node and an inner graph that computes it.
  bool may_read_together(int a, int b) const {
    const auto computed = [&](int v) {
      const auto& variable = problem_.nodes[static_cast<size_t>(v)];
      return variable.expansion < 0 ? std::vector<const Node*>{variable.node} : expansion(variable.expansion).nodes;
    };
    if (problem_.nodes[static_cast<size_t>(a)].expansion == problem_.nodes[static_cast<size_t>(b)].expansion)
      return true;
    const std::vector<const Node*> nodes = computed(a);
    return std::ranges::none_of(
        computed(b), [&](const Node* node) { return std::find(nodes.begin(), nodes.end(), node) != nodes.end(); });
  }

  bool is_read_once(const std::vector<Consumer>& consumers) const {
    for (size_t i = 0; i < consumers.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (may_read_together(consumers[i].variable, consumers[j].variable)) return false;
      }
    }
    return true;
  }

  void add_value(const Value& value, const Reads& reads) {
    const Schema boundary = plain_schema(value.type);
    const std::vector<Producer> producers = producers_of(value, reads.readers);
    std::vector<Consumer> consumers;
    std::vector<Schema> wanted;
    const auto want = [&](const Schema& s) {
      if (std::find(wanted.begin(), wanted.end(), s) == wanted.end()) wanted.push_back(s);
    };
    for (int reader : reads.readers) {
      Schemas required = required_schemas(problem_.nodes[static_cast<size_t>(reader)], &value);
      for (const auto& w : required) {
        if (w) want(*w);
      }
      if (std::any_of(required.begin(), required.end(), [](const auto& w) { return w.has_value(); })) {
        consumers.push_back({reader, std::move(required)});
      }
    }
    if (reads.is_output) want(boundary);
    const bool produced_plain = std::all_of(producers.begin(), producers.end(), [&](const Producer& p) {
      return std::all_of(p.gives.begin(), p.gives.end(), [&](const auto& g) { return !g || *g == boundary; }) &&
             std::find(p.withheld.begin(), p.withheld.end(), true) == p.withheld.end();
    });
    if (wanted.empty() || (wanted.size() == 1 && wanted.front() == boundary && produced_plain)) return;

    // Choices repeat few schemas: each pair of them is looked up once.
    std::vector<std::tuple<Schema, Schema, double>> known;
    const auto cost_of_give = [&](const Producer& p, size_t i, const Schema& to) {
      if (p.withheld[i]) return kForbidden;
      if (!p.gives[i] || *p.gives[i] == to) return 0.0;
      for (const auto& [from, there, cost] : known) {
        if (from == *p.gives[i] && there == to) return cost;
      }
      known.emplace_back(*p.gives[i], to, convert_us(value, *p.gives[i], to) * reads.trips);
      return std::get<2>(known.back());
    };
    if (reads.is_output && consumers.empty()) {
      for (const Producer& p : producers) {
        if (p.variable < 0) continue;
        auto& costs = problem_.costs[static_cast<size_t>(p.variable)];
        for (size_t i = 0; i < p.gives.size(); ++i) costs[i] += cost_of_give(p, i, boundary);
      }
      return;
    }
    if (!reads.is_output && is_read_once(consumers)) {
      for (const Consumer& c : consumers) {
        for (const Producer& p : producers) {
          const auto cost = [&](size_t i, size_t j) {
            return c.required[j] ? cost_of_give(p, i, *c.required[j]) : 0.0;
          };
          if (p.variable >= 0) {
            add_edge(p.variable, c.variable, cost);
            continue;
          }
          auto& costs = problem_.costs[static_cast<size_t>(c.variable)];
          for (size_t j = 0; j < costs.size(); ++j) costs[j] += cost(0, j);
        }
      }
      return;
    }
    // Paid once per value and wanted schema: a 0/1 variable for each.
    for (const Schema& schema : wanted) {
      const int variable = static_cast<int>(problem_.costs.size());
      problem_.schemas.push_back({&value, schema});
      const bool forced = reads.is_output && schema == boundary;
      const bool is_input = producers.front().variable < 0;
      problem_.costs.push_back(
          {forced ? kForbidden : 0.0, is_input ? cost_of_give(producers.front(), 0, schema) : 0.0});
      for (auto& [name, vectors] : problem_.resources) vectors.push_back({0.0, 0.0});
      for (const Producer& p : producers) {
        if (p.variable < 0) continue;
        add_edge(p.variable, variable, [&](size_t i, size_t on) { return on ? cost_of_give(p, i, schema) : 0.0; });
      }
      for (const Consumer& c : consumers) {
        const Schemas& w = c.required;
        add_edge(c.variable, variable,
                 [&](size_t j, size_t on) { return w[j] && *w[j] == schema && !on ? kForbidden : 0.0; });
      }
    }
  }

  SelectionProblem& problem_;
  const Target& target_;
  std::map<std::vector<const Node*>, int> group_index_;
  std::set<const Node*> repeated_;                   // by some group, which computes it for itself
  std::set<const Value*> inner_;                     // outputs of groups that do not end there
  std::map<const Value*, std::vector<int>> makers_;  // variables of inner graphs that make a value around them
};

}  // namespace

void price_problem(SelectionProblem& problem, const Target& target) {
  ArrayBuilder(problem, target).build();
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

const Value* SelectionProblem::outer(const Value* value) const {
  const auto it = interfaces.find(value);
  return it == interfaces.end() ? value : it->second;
}

}  // namespace neo
