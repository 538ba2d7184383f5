#include "ir/graph.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>

#include "base/check.h"
#include "base/knobs.h"
#include "bindings/bindings.h"
#include "candidates/store_halves.h"
#include "ops/infer.h"
#include "ops/op.h"
#include "passes/expansion.h"
#include "passes/pass.h"

namespace neo::python {
namespace {

// The symbol of this name in the sizes of an input that the graph has already.
std::optional<Symbol> find_symbol(const Graph& graph, std::string_view name) {
  std::map<std::string, Symbol> symbols;
  for (const Value* v : graph.inputs) {
    if (!v->type.is_tensor() || !v->shape().has_rank()) continue;
    for (const Dim& d : v->shape().dims()) d.collect_symbols(symbols);
  }
  const auto it = symbols.find(std::string(name));
  return it == symbols.end() ? std::nullopt : std::optional(it->second);
}

// The values that references compute while other threads of Python may run.
template <class Evaluate>
py::list results_of(const Evaluate& evaluate) {
  std::vector<HostValue> results;
  {
    const py::gil_scoped_release release;
    results = evaluate();
  }
  py::list out;
  for (const HostValue& v : results) out.append(to_python(v));
  return out;
}

// "[1,64]"
Range to_range(std::string_view text) {
  Range range;
  const char* const end = text.data() + text.size();
  bool whole = text.size() > 2 && text.front() == '[' && text.back() == ']';
  if (whole) {
    const auto lo = std::from_chars(text.data() + 1, end, range.lo);
    const auto hi = lo.ptr != end && *lo.ptr == ',' ? std::from_chars(lo.ptr + 1, end, range.hi) : lo;
    whole = lo.ec == std::errc() && hi.ec == std::errc() && hi.ptr != lo.ptr && hi.ptr + 1 == end;
  }
  NEO_CHECK(whole, Model, "size", "a range is written like [1,64]. Got \"", text, "\"");
  return range;
}

// The formulas that symbols of the graph stand for, those in formulas included.
std::map<std::string, std::string> formulas_of(const Graph& graph) {
  std::map<std::string, std::string> formulas;
  const std::function<void(const Dim&)> add = [&](const Dim& dim) {
    std::map<std::string, Symbol> used;
    dim.collect_symbols(used);
    for (const auto& [name, symbol] : used) {
      if (symbol.formula && formulas.emplace(name, symbol.formula->to_string()).second) add(*symbol.formula);
    }
  };
  for (const auto& v : graph.values()) {
    if (!v->type.is_tensor() || !v->shape().has_rank()) continue;
    for (const Dim& d : v->shape().dims()) add(d);
  }
  for (const auto& node : graph.nodes()) {
    for (const auto& [key, attr] : node->attrs) {
      if (const auto* dims = std::get_if<std::vector<Dim>>(&attr)) std::for_each(dims->begin(), dims->end(), add);
    }
  }
  return formulas;
}

// A number, the name of a symbol, an expression, "N in [1,64]" for a symbol with its range, or None for a new symbol.
// A first axis is most likely a batch of one.
Dim to_dim(const py::handle& object, const Graph& graph, std::string_view stem, bool is_first) {
  if (object.is_none()) return graph.symbols()->fresh(stem);
  if (!py::isinstance<py::str>(object)) return Dim(py::cast<int64_t>(object));
  constexpr std::string_view kIn = " in ";
  const auto text = py::cast<std::string>(object);
  const size_t at = text.rfind(kIn);
  const Dim dim = Dim::parse(text.substr(0, at), [&](std::string_view name) { return find_symbol(graph, name); });
  std::map<std::string, Symbol> used;
  dim.collect_symbols(used);
  for (const auto& [name, symbol] : used) graph.symbols()->reserve(name);
  const auto symbol = dim.as_symbol();
  if (at != std::string::npos) {
    NEO_CHECK(symbol, Model, "size", "only a symbol has a range. Got \"", text, "\"");
  } else if (!symbol || find_symbol(graph, symbol->name)) {
    return dim;
  }
  const Range range =
      at == std::string::npos ? symbol->range : to_range(std::string_view(text).substr(at + kIn.size()));
  // The range may still be empty here: Dim::symbol refuses that.
  const int64_t hint = std::min(std::max<int64_t>(1, range.lo), range.hi);
  return Dim::symbol(symbol->name, range, is_first ? hint : 0);
}

py::object from_dim(const Dim& dim) {
  if (dim.is_constant()) return py::int_(dim.value());
  return py::str(dim.to_string());
}

Attr to_attr(const py::handle& object) {
  if (py::isinstance<py::bool_>(object) || py::isinstance<py::int_>(object)) return py::cast<int64_t>(object);
  if (py::isinstance<py::float_>(object)) return py::cast<double>(object);
  if (py::isinstance<py::str>(object)) return py::cast<std::string>(object);
  if (py::isinstance<py::bytes>(object)) return std::string(py::cast<py::bytes>(object));
  if (py::isinstance<py::array>(object)) return to_tensor(object);
  if (py::isinstance<py::list>(object) || py::isinstance<py::tuple>(object)) {
    const auto items = py::cast<py::sequence>(object);
    bool all_ints = true;
    bool all_strings = py::len(items) > 0;
    for (py::handle item : items) {
      all_ints = all_ints && py::isinstance<py::int_>(item);
      all_strings = all_strings && (py::isinstance<py::str>(item) || py::isinstance<py::bytes>(item));
    }
    if (all_ints) return py::cast<std::vector<int64_t>>(object);
    if (all_strings) return py::cast<std::vector<std::string>>(object);
    return py::cast<std::vector<double>>(object);
  }
  fail(ErrorKind::Type, "import",
       str("an attribute must be a number, a string, a list or an array. Got ",
           std::string(py::str(py::type::of(object).attr("__name__")))));
}

struct AttrToPython {
  py::object operator()(int64_t x) const { return py::int_(x); }
  py::object operator()(double x) const { return py::float_(x); }
  py::object operator()(const std::string& x) const {
    PyObject* text = PyUnicode_DecodeUTF8(x.data(), static_cast<Py_ssize_t>(x.size()), nullptr);
    if (text) return py::reinterpret_steal<py::object>(text);
    PyErr_Clear();
    return py::bytes(x);
  }
  py::object operator()(const std::vector<int64_t>& x) const { return py::cast(x); }
  py::object operator()(const std::vector<double>& x) const { return py::cast(x); }
  py::object operator()(const std::vector<std::string>& x) const { return py::cast(x); }
  py::object operator()(const Tensor& x) const { return to_array(x); }
  py::object operator()(const std::vector<Dim>& x) const {
    py::list dims;
    for (const Dim& d : x) dims.append(from_dim(d));
    return dims;
  }
};

// "float32" with dims, or a whole type as text: "seq(float32[*])".
Type to_type(const std::string& dtype, const py::object& dims, const Graph& graph, std::string_view stem) {
  const auto element = find_dtype(dtype);
  if (!element) return Type::parse(dtype);
  if (dims.is_none()) return Type::tensor(*element, Shape());
  std::vector<Dim> sizes;
  for (const py::handle d : dims) sizes.push_back(to_dim(d, graph, stem, sizes.empty()));
  return Type::tensor(*element, Shape(std::move(sizes)));
}

}  // namespace

py::dict attributes_of(const Node& node) {
  py::dict attrs;
  for (const auto& [key, value] : node.attrs) attrs[key.c_str()] = std::visit(AttrToPython(), value);
  return attrs;
}

namespace {

void bind_value(py::module_& m) {
  py::class_<Value, std::unique_ptr<Value, py::nodelete>>(m, "Value", "A value of a graph; kept alive by its graph.")
      .def_property_readonly("name", [](const Value& v) { return v.name; })
      .def_property_readonly("type", [](const Value& v) { return v.type.to_string(); })
      .def_property_readonly("kind",
                             [](const Value& v) {
                               constexpr const char* kKinds[] = {"tensor", "sequence", "optional", "map"};
                               return kKinds[static_cast<size_t>(v.type.kind)];
                             })
      .def_property_readonly("dtype", [](const Value& v) { return std::string(name(v.type.dtype)); })
      .def_property_readonly("shape",
                             [](const Value& v) -> py::object {
                               if (!v.type.is_tensor() || !v.shape().has_rank()) return py::none();
                               py::list dims;
                               for (const Dim& d : v.shape().dims()) dims.append(from_dim(d));
                               return py::tuple(dims);
                             })
      .def_property_readonly("hints",
                             [](const Value& v) -> py::object {
                               if (!v.type.is_tensor() || !v.shape().has_rank()) return py::none();
                               py::list sizes;
                               for (const Dim& d : v.shape().dims()) sizes.append(d.hint());
                               return py::tuple(sizes);
                             })
      .def_property_readonly(
          "constant",
          [](const Value& v) -> py::object { return v.constant ? py::object(to_array(*v.constant)) : py::none(); })
      .def(
          "set_type", [](Value& v, const std::string& type) { v.type = Type::parse(type); }, py::arg("type"));
}

void bind_node(py::module_& m) {
  py::class_<Node, std::unique_ptr<Node, py::nodelete>>(m, "Node", "A node of a graph; kept alive by its graph.")
      .def_property_readonly("op", [](const Node& n) { return n.op; })
      .def_property_readonly("name", [](const Node& n) { return n.name; })
      .def_property_readonly(
          "inputs", [](const Node& n) { return n.inputs; }, py::return_value_policy::reference)
      .def_property_readonly(
          "outputs", [](const Node& n) { return n.outputs; }, py::return_value_policy::reference)
      .def_property_readonly("attrs", attributes_of)
      .def_property_readonly("bodies",
                             [](const Node& n) {
                               py::dict bodies;
                               for (const auto& [key, body] : n.bodies)
                                 bodies[key.c_str()] = py::cast(body.get(), py::return_value_policy::reference);
                               return bodies;
                             })
      .def(
          "evaluate",
          [](const Node& n, const std::vector<py::object>& inputs) {
            std::vector<HostValue> values;
            for (const py::object& x : inputs) {
              const Value* value = n.input(values.size());
              values.push_back(to_host(x, value ? value->type : Type()));
            }
            return results_of([&] { return evaluate_node(n, standard_ops(), values); });
          },
          py::arg("inputs"),
          "Runs the reference on a value per input, None for one left out; floats may be wider than the graph's.");
}

// The functions that fill a graph, for importers.
void bind_making(py::class_<Graph, std::shared_ptr<Graph>>& graph) {
  graph
      .def(
          "add_input",
          [](Graph& g, const std::string& name, const std::string& dtype, const py::object& dims) {
            return g.add_input(name, to_type(dtype, dims, g, name));
          },
          py::arg("name"), py::arg("dtype"), py::arg("dims") = py::none(), py::return_value_policy::reference_internal,
          "dims: ints, symbols or expressions like '4*N', or None for a size of its own; None altogether: unranked.")
      .def(
          "add_input_like",
          [](Graph& g, const std::string& name, const Value& other) { return g.add_input(name, other.type); },
          py::arg("name"), py::arg("other"), py::return_value_policy::reference_internal)
      .def(
          "add_constant",
          [](Graph& g, const std::string& name, const py::object& array) {
            return g.add_constant(name, to_tensor(array));
          },
          py::arg("name"), py::arg("array"), py::return_value_policy::reference_internal)
      .def(
          "add_splat",
          [](Graph& g, const std::string& name, const py::object& element, const Dims& dims) {
            const Tensor one = to_tensor(element);
            return g.add_constant(
                name, one.dtype() == DType::String ? one.reshaped(dims) : Tensor::splat(one.dtype(), dims, one.data()));
          },
          py::arg("name"), py::arg("element"), py::arg("dims"), py::return_value_policy::reference_internal)
      .def(
          "add_node",
          [](Graph& g, const std::string& op, std::vector<Value*> inputs, const std::vector<std::string>& outputs,
             const py::dict& attrs, const std::string& name, const py::dict& bodies, bool infer) {
            Attrs converted;
            for (const auto& [key, value] : attrs) converted.emplace(py::cast<std::string>(key), to_attr(value));
            Node* node = g.add_node(op, std::move(inputs), outputs, std::move(converted), name);
            for (const auto& [key, value] : bodies) {
              node->bodies.emplace_back(py::cast<std::string>(key), py::cast<const Graph&>(value).clone());
            }
            if (infer) infer_node(*node, standard_ops(), *g.symbols());
            return node;
          },
          py::arg("op"), py::arg("inputs"), py::arg("outputs"), py::arg("attrs") = py::dict(), py::arg("name") = "",
          py::arg("bodies") = py::dict(), py::arg("infer") = true, py::return_value_policy::reference_internal,
          "inputs: values, None for one left out. outputs: names, \"\" for one left out. bodies: copied.");
}

void bind_passes(py::module_& m) {
  m.def(
      "parse_graph", [](const std::string& text) { return std::shared_ptr<Graph>(parse_graph(text)); },
      py::arg("text"));
  m.def(
      "run_passes",
      [](const Graph& graph, const std::optional<std::vector<std::string>>& names, bool keep_codes,
         const std::optional<std::string>& target) {
        PassContext context = reference_context(standard_ops());
        context.keep_codes = keep_codes;
        std::shared_ptr<Graph> result = graph.clone();
        std::vector<Pass> passes;
        for (const Pass& pass : standard_pipeline()) {
          if (!names || std::find(names->begin(), names->end(), pass.name) != names->end()) passes.push_back(pass);
        }
        for (const NodeExpansion& expansion : standard_expansions()) {
          if (names && std::find(names->begin(), names->end(), expansion.name) != names->end())
            passes.insert(passes.begin(), {expansion.name, expansion.rewrite});
        }
        PassObserver observer;
        if (knob_bool(Knob::Verify)) observer = [](const Pass&, const Graph& g, bool) { verify(g); };
        const HalfValues halves = target ? find_half_values(graph) : HalfValues();
        const Target machine = halves.empty() ? Target() : machine_of(*target, 1);
        const py::gil_scoped_release release;
        run_passes(*result, passes, context, observer);
        if (machine.has_device()) store_halves(*result, halves, machine, standard_routines(), standard_ops());
        return result;
      },
      py::arg("graph"), py::arg("names") = py::none(), py::arg("keep_codes") = false, py::arg("target") = py::none(),
      "A new graph; `names` picks expansions and passes of the pipeline, in its order. keep_codes: quantized constants "
      "stay so. "
      "target: a device whose memory then holds the model's halves as such.");
  m.def("pass_names", [] {
    std::vector<std::string> names;
    for (const Pass& pass : standard_pipeline()) names.emplace_back(pass.name);
    return names;
  });
  m.def("op_names", [] {
    std::vector<std::string> names;
    for (const Op* op : standard_ops().all()) names.push_back(op->name);
    return names;
  });
}

}  // namespace

void bind_graph(py::module_& m) {
  bind_value(m);
  bind_node(m);
  py::class_<Graph, std::shared_ptr<Graph>> graph(m, "Graph", "The dataflow graph of a model.");
  graph.def(py::init<>())
      .def_property(
          "name", [](const Graph& g) { return g.name; }, [](Graph& g, std::string name) { g.name = std::move(name); })
      .def_property(
          "inputs", [](const Graph& g) { return g.inputs; },
          [](Graph& g, std::vector<Value*> inputs) { g.inputs = std::move(inputs); },
          py::return_value_policy::reference_internal)
      .def_property(
          "outputs", [](const Graph& g) { return g.outputs; },
          [](Graph& g, std::vector<Value*> outputs) { g.outputs = std::move(outputs); },
          py::return_value_policy::reference_internal)
      .def_property_readonly(
          "nodes",
          [](const Graph& g) {
            std::vector<Node*> nodes;
            for (const auto& n : g.nodes()) nodes.push_back(n.get());
            return nodes;
          },
          py::return_value_policy::reference_internal)
      .def(
          "rename", [](Graph& g, Value& v, const std::string& name) { g.rename(&v, name); }, py::arg("value"),
          py::arg("name"), "Gives a value another name; a value that has the name gets a new one.")
      .def(
          "subgraph", [](Graph& g) { return std::make_shared<Graph>(g.symbols()); },
          "An empty body that shares this graph's symbols.")
      .def(
          "declare_symbol", [](Graph& g, const std::string& name) { g.symbols()->reserve(name); }, py::arg("name"))
      .def_property_readonly("formulas", formulas_of, "What symbols of this graph stand for, by their names.")
      .def_property_readonly("reduction_length", [](const Graph& g) { return longest_reduction(g, standard_ops()); })
      .def("infer", [](Graph& g) { infer_graph(g, standard_ops()); })
      .def("verify", [](const Graph& g) { verify(g); })
      .def("clone", [](const Graph& g) { return std::shared_ptr<Graph>(g.clone()); })
      .def(
          "print", [](const Graph& g, int64_t inline_elements) { return print(g, inline_elements); },
          py::arg("inline_elements") = 16)
      .def("__str__", [](const Graph& g) { return print(g); })
      .def(
          "evaluate",
          [](const Graph& g, const std::vector<py::object>& inputs) {
            std::vector<HostValue> values;
            for (const py::object& x : inputs) {
              const size_t i = values.size();
              values.push_back(to_host(x, i < g.inputs.size() ? g.inputs[i]->type : Type()));
            }
            return results_of([&] { return evaluate_graph(g, standard_ops(), values); });
          },
          py::arg("inputs"), "Runs every node with its reference.");
  bind_making(graph);
  bind_passes(m);
}

}  // namespace neo::python
