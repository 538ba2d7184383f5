#include <map>

#include "base/check.h"
#include "bindings/bindings.h"
#include "ops/movement.h"
#include "ops/register.h"

// Operators whose inference and computation are functions of Python's.
namespace neo::python {
namespace {

// infer(node) gives a pair of dtype and sizes for each output, compute(node, inputs) their values.
struct Functions {
  py::object infer;
  py::object compute;
};

// Read and written with the GIL held; never destroyed, because Python is gone when the process ends.
std::map<std::string, Functions>& known_functions() {
  static auto* const known = new std::map<std::string, Functions>();
  return *known;
}

// A size as the function of inference gives it: a number, an expression over symbols of the inputs, None.
Dim to_size(const py::handle& size, InferContext& context, const std::map<std::string, Symbol>& symbols) {
  if (size.is_none()) return context.fresh("size");
  if (!py::isinstance<py::str>(size)) return Dim(py::cast<int64_t>(size));
  const auto text = py::cast<std::string>(size);
  return Dim::parse(text, [&](std::string_view name) -> std::optional<Symbol> {
    const auto it = symbols.find(std::string(name));
    context.check(it != symbols.end(),
                  str("a size must be made of the inputs' sizes. Got \"", text, "\", which no input's shape has"));
    return it->second;
  });
}

void infer_in_python(InferContext& context) {
  const py::gil_scoped_acquire gil;
  const Node& node = context.node();
  std::map<std::string, Symbol> symbols;
  for (int i = 0; i < context.input_count(); ++i) {
    if (!context.ranked(i)) continue;
    for (const Dim& d : context.shape(i).dims()) d.collect_symbols(symbols);
  }
  const py::object node_object = py::cast(&node, py::return_value_policy::reference);
  const auto types = py::cast<py::list>(known_functions().at(node.op).infer(node_object));
  for (int i = 0; i < context.output_count(); ++i) {
    const auto [text, sizes] = py::cast<std::pair<std::string, py::object>>(types[static_cast<size_t>(i)]);
    const auto dtype = find_dtype(text);
    if (!dtype) {
      context.set_output(i, Type::parse(text));
      continue;
    }
    Shape shape;
    if (!sizes.is_none()) {
      std::vector<Dim> dims;
      for (const py::handle size : sizes) dims.push_back(to_size(size, context, symbols));
      shape = Shape(std::move(dims));
    }
    context.set_output(i, *dtype, std::move(shape));
  }
}

void compute_in_python(ReferenceContext& context) {
  const py::gil_scoped_acquire gil;
  const Node& node = context.node();
  py::list inputs;
  for (int i = 0; i < context.input_count(); ++i) {
    inputs.append(context.has_input(i) ? to_python(context.value(i)) : py::none());
  }
  const py::object node_object = py::cast(&node, py::return_value_policy::reference);
  const auto results = py::cast<py::list>(known_functions().at(node.op).compute(node_object, inputs));
  for (int i = 0; i < context.output_count(); ++i) {
    if (!context.has_output(i)) continue;
    const size_t place = static_cast<size_t>(i);
    HostValue value = to_host(results[place], node.outputs[place]->type);
    if (value.kind != HostValue::Kind::Tensor) {
      context.set_output(i, std::move(value));
      continue;
    }
    copy_tensor(value.tensor, context.output(i, value.tensor.dtype(), value.tensor.dims()));
  }
}

}  // namespace

void bind_operators(py::module_& m) {
  m.def(
      "register_op",
      [](const std::string& name, const py::object& infer, const py::object& compute, bool pure) {
        Op op;
        op.name = name;
        op.min_inputs = 0;
        op.max_inputs = -1;
        op.max_outputs = -1;
        op.infer = infer_in_python;
        op.reference = compute_in_python;
        op.random = !pure;
        register_op(std::move(op));
        known_functions()[name] = {infer, compute};
      },
      py::arg("name"), py::arg("infer"), py::arg("compute"), py::arg("pure"),
      "Adds an operator: infer(node) gives (dtype, sizes or None) for each output, compute(node, inputs) the values.");
}

}  // namespace neo::python
