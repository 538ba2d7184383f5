#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "exec/plan.h"
#include "ir/graph.h"
#include "ir/tensor.h"
#include "routines/cost/target.h"

namespace neo::python {

namespace py = pybind11;

void bind_errors(py::module_& m);
void bind_graph(py::module_& m);
void bind_messages(py::module_& m);
void bind_operators(py::module_& m);
void bind_select(py::module_& m);
void bind_solve(py::module_& m);
void bind_module(py::module_& m);
void bind_info(py::module_& m);
void bind_cost(py::module_& m);
void bind_devices(py::module_& m);
void bind_tune(py::module_& m);
void bind_machine(py::module_& m);  // before what takes one
void bind_saved(py::module_& m);

// A target by name, with what the device at hand says of its images; a name for one make of device has it say no more
// than the figures do.
Target machine_of(const std::string& name, int threads);

// A node's attributes without its bodies.
py::dict attributes_of(const Node& node);

// Python's signals reach the main thread only; what runs long there looks for them now and then.
void raise_pending_signals();

// NumPy arrays (and what numpy.asarray takes) to host values and back. Numeric arrays are shared where they are dense
// and row-major, copied where not; strings are copied. Lists become sequences, dicts maps, None an empty optional.
// `type` says of which dtypes a map is.
HostValue to_host(const py::handle& object, const Type& type);
// The inputs of a plan.
std::vector<HostValue> to_hosts(const py::list& objects, const Plan& plan);
py::object to_python(const HostValue& value);
Tensor to_tensor(const py::handle& array);
py::array to_array(const Tensor& tensor);

}  // namespace neo::python
