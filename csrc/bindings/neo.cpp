#include "bindings/bindings.h"

PYBIND11_MODULE(_neo, m) {
  m.doc() = "The core of neo. Private: use the package neo.";
  neo::python::bind_errors(m);
  neo::python::bind_graph(m);
  neo::python::bind_messages(m);
  neo::python::bind_operators(m);
  neo::python::bind_machine(m);
  neo::python::bind_module(m);
  neo::python::bind_saved(m);
  neo::python::bind_select(m);
  neo::python::bind_solve(m);
  neo::python::bind_info(m);
  neo::python::bind_cost(m);
  neo::python::bind_devices(m);
  neo::python::bind_tune(m);
}
