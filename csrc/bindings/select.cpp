#include <pybind11/functional.h>

#include <algorithm>

#include "base/arena.h"
#include "base/check.h"
#include "bindings/bindings.h"
#include "bindings/problem.h"
#include "lower/lower.h"
#include "lower/pack_steps.h"
#include "routines/routine.h"
#include "routines/space.h"
#include "runtime/module.h"
#include "runtime/thread_pool.h"

namespace neo::python {
namespace {

template <class T>
using DenseArray = py::array_t<T, py::array::c_style | py::array::forcecast>;

template <class T>
std::vector<T> listed(const DenseArray<T>& x) {
  return {x.data(), x.data() + x.size()};
}

py::array_t<double> vector_of(const std::vector<double>& x) {
  return py::array_t<double>(static_cast<py::ssize_t>(x.size()), x.data());
}

py::array_t<int64_t> numbers_of(const std::vector<int64_t>& x) {
  return py::array_t<int64_t>(static_cast<py::ssize_t>(x.size()), x.data());
}

struct FlatArrays {
  std::vector<int64_t> sizes;
  std::vector<double> costs;
  std::vector<int64_t> pairs;  // each once
  std::vector<double> matrices;
};

FlatArrays flatten(const SelectionProblem& problem) {
  FlatArrays flat;
  for (const auto& costs : problem.costs) {
    flat.sizes.push_back(static_cast<int64_t>(costs.size()));
    flat.costs.insert(flat.costs.end(), costs.begin(), costs.end());
  }
  std::map<std::pair<int, int>, size_t> offsets;
  for (const auto& edge : problem.edges) {
    const auto [found, is_new] = offsets.try_emplace({edge.u, edge.v}, flat.matrices.size());
    if (is_new) {
      flat.pairs.insert(flat.pairs.end(), {edge.u, edge.v});
      flat.matrices.insert(flat.matrices.end(), edge.costs.begin(), edge.costs.end());
    } else {
      for (size_t i = 0; i < edge.costs.size(); ++i) flat.matrices[found->second + i] += edge.costs[i];
    }
  }
  return flat;
}

const char* text_of(Candidate::Kind kind) {
  switch (kind) {
    case Candidate::Kind::Step:
      return "step";
    case Candidate::Kind::Host:
      return "host";
    case Candidate::Kind::View:
      return "view";
    case Candidate::Kind::DataDependent:
      return "data-dependent";
    case Candidate::Kind::ConcatInPlace:
      break;
  }
  return "concat in place";
}

// A graph and its bodies: what it takes and gives, every value's type, and its nodes by their variable.
py::dict describe_graph(const Graph& graph, const SelectionProblem& problem) {
  const auto names = [](const std::vector<Value*>& values) {
    py::list list;
    for (const Value* v : values) list.append(v ? py::object(py::str(v->name)) : py::object(py::none()));
    return list;
  };
  py::dict values;
  for (const auto& v : graph.values()) {
    const py::object constant = v->constant ? py::object(py::int_(v->constant->bytes())) : py::object(py::none());
    values[py::str(v->name)] = py::make_tuple(v->type.to_string(), constant, plain_schema(v->type).to_string());
  }
  py::list nodes;
  for (const auto& node : graph.nodes()) {
    py::dict entry, bodies;
    for (const auto& [name, body] : node->bodies) bodies[py::str(name)] = describe_graph(*body, problem);
    entry["variable"] = problem.index.at(node.get());
    entry["inputs"] = names(node->inputs);
    entry["outputs"] = names(node->outputs);
    entry["bodies"] = bodies;
    entry["attrs"] = attributes_of(*node);
    nodes.append(entry);
  }
  py::dict out;
  out["name"] = graph.name;
  out["inputs"] = names(graph.inputs);
  out["outputs"] = names(graph.outputs);
  out["values"] = values;
  out["nodes"] = nodes;
  return out;
}

py::list choices_of(const SelectionProblem& problem, const SelectionProblem::NodeVariable& variable) {
  py::list choices;
  for (const auto& choice : variable.choices) {
    py::dict entry;
    if (choice.candidate) {
      const Candidate& c = *choice.candidate;
      entry["routine"] = c.text();
      entry["time_us"] = c.cost.time_us;
      entry["estimate_us"] = choice.estimate_us;
      entry["measured"] = choice.measured;
      entry["packed_bytes"] = c.cost.packed_bytes;
      entry["workspace_bytes"] = c.cost.workspace_bytes;
      entry["error"] = c.cost.error;
      py::list nodes, members, inputs, outputs, reads, writes;
      for (const Node* n : c.workload->nodes) {
        nodes.append(n->name);
        members.append(problem.index.at(n));
      }
      for (const Value* v : c.workload->inputs) reads.append(v->name);
      for (const Value* v : c.workload->outputs) writes.append(v->name);
      for (const auto& s : c.inputs) inputs.append(s ? py::object(py::str(s->to_string())) : py::object(py::none()));
      for (const auto& s : c.outputs) outputs.append(s.to_string());
      entry["nodes"] = nodes;
      entry["workload"] = c.workload->text();
      entry["inputs"] = inputs;
      entry["outputs"] = outputs;
      entry["members"] = members;
      entry["reads"] = reads;
      entry["writes"] = writes;
      entry["kind"] = text_of(c.kind);
    } else {
      entry["left_out"] = choice.absorbed_by == kLeftOut || choice.absorbed_by == kNotTaken;
      if (choice.expansion >= 0) {
        const auto& expanded = problem.expansions[static_cast<size_t>(choice.expansion)];
        py::list nodes, members;
        for (const Node* n : expanded.nodes) {
          nodes.append(n->name);
          members.append(problem.index.at(n));
        }
        entry["nodes"] = nodes;
        entry["expansion"] = text_of(*expanded.expansion);
        entry["members"] = members;
        entry["graph"] = describe_graph(*expanded.graph, problem);
      }
      entry["absorbed_by"] =
          choice.absorbed_by >= 0
              ? py::object(py::str(problem.groups[static_cast<size_t>(choice.absorbed_by)].nodes.back()->name))
              : py::object(py::none());
    }
    choices.append(entry);
  }
  return choices;
}

}  // namespace

void bind_select(py::module_& m) {
  py::class_<BoundProblem, std::shared_ptr<BoundProblem>>(m, "Problem", "The selection problem of a graph, as arrays.")
      .def_property_readonly("flat",
                             [](const BoundProblem& p) {
                               const FlatArrays flat = flatten(*p.problem);
                               const auto pairs = static_cast<py::ssize_t>(flat.pairs.size() / 2);
                               return py::make_tuple(numbers_of(flat.sizes), vector_of(flat.costs),
                                                     numbers_of(flat.pairs).attr("reshape")(pairs, 2),
                                                     vector_of(flat.matrices));
                             })
      .def_property_readonly("graph", [](const BoundProblem& p) { return describe_graph(*p.graph, *p.problem); })
      .def(
          "resource",
          [](const BoundProblem& p, const std::string& name) {
            py::list list;
            for (const auto& v : p.problem->resources.at(name)) list.append(vector_of(v));
            return list;
          },
          py::arg("name"), "what each choice of each variable takes of a resource")
      .def_property_readonly("packed_forms", [](const BoundProblem& p) { return numbers_of(packed_forms(*p.problem)); })
      .def_property_readonly("rounds",
                             [](const BoundProblem& p) {
                               const auto& vectors = p.problem->resources.at("rounding");
                               return std::any_of(vectors.begin(), vectors.end(), [](const std::vector<double>& v) {
                                 return std::any_of(v.begin(), v.end(), [](double x) { return x != 0; });
                               });
                             })
      .def_property_readonly("nodes",
                             [](const BoundProblem& p) {
                               py::list nodes;
                               for (const auto& variable : p.problem->nodes) {
                                 py::dict entry;
                                 entry["name"] = variable.node->name;
                                 entry["op"] = variable.node->op;
                                 entry["outputs"] = [&] {
                                   py::list names;
                                   for (const Value* v : variable.node->outputs) names.append(v ? v->name : "");
                                   return names;
                                 }();
                                 entry["trips"] = variable.trips;
                                 entry["inner"] = variable.expansion >= 0;
                                 entry["choices"] = choices_of(*p.problem, variable);
                                 py::list rejections;
                                 for (const auto& r : variable.rejections)
                                   rejections.append(py::make_tuple(std::string(r.routine->name()), r.reason));
                                 entry["rejections"] = rejections;
                                 nodes.append(entry);
                               }
                               return nodes;
                             })
      .def_property_readonly(
          "places",
          [](const BoundProblem& p) -> py::object {
            if (!p.target.has_device()) return py::none();
            return py::cast(places_of(*p.problem));
          },
          "per node and choice: a bit for each device where it may run; 1: the CPU, 0: anywhere. None without a device")
      .def_property_readonly("cpu_penalty_us", [](const BoundProblem& p) { return p.target.cpu_penalty_us; })
      .def_property_readonly("machine", [](const BoundProblem& p) { return p.target; })
      .def(
          "lower",
          [](BoundProblem& p, const std::vector<int>& choices, double total_us, int threads, bool oversubscribe,
             bool keeps_denormals, const std::function<std::shared_ptr<Graph>()>& remake) {
            if (p.remake) {
              restore_constants(*p.graph, *p.remake());
              restore_expansions(*p.problem, standard_ops());
            }
            p.remake = remake;
            const py::gil_scoped_release release;
            return_freed_memory();  // tables of the selection, before weights are packed
            const auto team = process_thread_pool().lease(threads, Oversubscribe::No);
            auto plan = lower(*p.graph, *p.problem, choices, total_us, standard_ops(), p.target, *team,
                              keeps_denormals ? Denormals::Keep : Denormals::Flush,
                              remake ? SourceConstants::Release : SourceConstants::Keep);
            return std::make_shared<Module>(std::move(plan), Configuration{1, threads}, oversubscribe);
          },
          py::arg("choices"), py::arg("total_us"), py::arg("threads"), py::arg("oversubscribe") = false,
          py::arg("keeps_denormals") = false, py::arg("remake") = py::none(),
          "remake: makes the graph once more; with it, constants that are packed are given up, until one lowers again");

  m.def(
      "space_sizes",
      [](const std::string& text, const std::string& target, int threads) {
        const ParsedWorkload parsed = parse_workload(text, standard_ops());
        const Target machine = machine_of(target, threads);
        const Graph::Users users = parsed.graph->users();
        py::dict sizes;
        for (const Routine* r : standard_routines().for_root(parsed.workload.root().op)) {
          for (const Workload& w : r->matches(parsed.workload.root(), users, *parsed.graph)) {
            if (w.nodes != parsed.workload.nodes || r->rejects(w, machine)) continue;
            sizes[py::str(std::string(r->name()))] = r->space(w, machine).size();
          }
        }
        return sizes;
      },
      py::arg("workload"), py::arg("target"), py::arg("threads"), "schedules of every routine that takes a workload");
  py::class_<RegressionTrees, std::shared_ptr<RegressionTrees>>(m, "RegressionTrees",
                                                                "Evaluates the arrays of neo.tune.trees.Trees.")
      .def(
          "predict",
          [](const RegressionTrees& trees, const DenseArray<float>& rows) {
            NEO_CHECK(rows.ndim() == 2 && static_cast<size_t>(rows.shape(1)) == trees.columns(), Model, "tune",
                      "rows must have the columns of the trees. Got ", rows.ndim() == 2 ? rows.shape(1) : -1,
                      ", expected ", trees.columns());
            py::array_t<float> values(rows.shape(0));
            for (py::ssize_t i = 0; i < rows.shape(0); ++i) {
              *values.mutable_data(i) = trees.value({rows.data(i), trees.columns()});
            }
            return values;
          },
          py::arg("rows"), "the value of every row");
  py::class_<CostTrees, std::shared_ptr<CostTrees>>(m, "CostTrees", "Corrects the estimates of routines.");
  m.def(
      "make_trees",
      [](const DenseArray<int32_t>& roots, const DenseArray<int16_t>& feature, const DenseArray<float>& threshold,
         const DenseArray<int32_t>& left, size_t columns) {
        return std::make_shared<RegressionTrees>(
            RegressionTrees::Arrays{listed(roots), listed(feature), listed(threshold), listed(left)}, columns);
      },
      py::arg("roots"), py::arg("feature"), py::arg("threshold"), py::arg("left"), py::arg("columns"),
      "of the arrays of neo.tune.trees.Trees");
  m.def(
      "make_cost_trees",
      [](std::shared_ptr<const RegressionTrees> trees, const std::vector<std::string>& names,
         std::vector<int64_t> lanes) { return std::make_shared<CostTrees>(std::move(trees), names, std::move(lanes)); },
      py::arg("trees"), py::arg("names"), py::arg("lanes"));
  m.def(
      "build_problem",
      [](std::shared_ptr<Graph> graph, const std::string& target, int threads,
         const std::function<bool(std::string, std::string)>& allow, std::shared_ptr<const CostTrees> trees,
         const std::pair<int64_t, int64_t>& caches) {
        auto bound = std::make_shared<BoundProblem>();
        bound->target = machine_of(target, threads);
        if (caches.second > 0) bound->target.caches = {caches.first, caches.second};
        ProblemOptions options;
        options.trees = std::move(trees);
        if (allow) {
          options.allow = [&](const std::vector<const Node*>& nodes, const std::string& routine) {
            return std::all_of(nodes.begin(), nodes.end(), [&](const Node* n) { return allow(n->name, routine); });
          };
        }
        bound->problem = build_problem(*graph, standard_ops(), standard_routines(), bound->target, options);
        bound->graph = std::move(graph);
        return bound;
      },
      py::arg("graph"), py::arg("target"), py::arg("threads"), py::arg("allow") = py::none(),
      py::arg("trees") = py::none(), py::arg("caches") = std::pair<int64_t, int64_t>(),
      "caches: bytes of a core's first and second level where they are not this machine's");

  m.def(
      "parse_workload",
      [](const std::string& text) {
        const ParsedWorkload parsed = parse_workload(text, standard_ops());
        return py::make_tuple(parsed.workload.text(), std::shared_ptr<Graph>(parsed.graph->clone()));
      },
      py::arg("text"), "(the full form, a graph that computes it)");
  m.def("routine_names", [] {
    std::vector<std::string> names;
    for (const auto& r : standard_routines().all()) names.emplace_back(r->name());
    return names;
  });
  m.def("expansion_names", [] {
    std::vector<std::string> names;
    for (const NodeExpansion& expansion : standard_expansions()) {
      const std::string name = text_of(expansion);
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    return names;
  });
}

}  // namespace neo::python
