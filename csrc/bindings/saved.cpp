#include "saved/saved.h"

#include "base/check.h"
#include "bindings/bindings.h"
#include "ops/op.h"
#include "runtime/module.h"

namespace neo::python {
namespace {

SavedModule load(const py::object& source, const Quota& quota) {
  const std::function<void()> poll = raise_pending_signals;
  if (py::isinstance<py::str>(source)) {
    const auto path = source.cast<std::string>();
    const py::gil_scoped_release release;
    return load_module(map_file(path), path, standard_ops(), standard_routines(), quota, &poll);
  }
  const py::buffer_info info = source.cast<py::buffer>().request();
  const std::span bytes(static_cast<const std::byte*>(info.ptr), static_cast<size_t>(info.size * info.itemsize));
  const py::gil_scoped_release release;
  return load_module(copy_bytes(bytes), "bytes", standard_ops(), standard_routines(), quota, &poll);
}

}  // namespace

void bind_saved(py::module_& m) {
  py::class_<Target>(m, "Machine", "A target with the figures that a module was compiled for.")
      .def_readonly("name", &Target::name);

  m.def(
      "save_module",
      [](const Module& module, const Target& machine, const std::string& path,
         const std::map<std::string, std::string>& notes) {
        const py::gil_scoped_release release;
        save_module(path, module.plan(), machine, notes);
      },
      py::arg("module"), py::arg("machine"), py::arg("path"), py::arg("notes"));
  m.def(
      "load_module",
      [](const py::object& source, int threads, std::optional<int64_t> memory, std::optional<double> seconds) {
        const Quota quota{memory, seconds};
        SavedModule saved = load(source, quota);
        return py::make_tuple(std::make_shared<Module>(std::move(saved.plan), threads, false, quota), saved.target,
                              saved.notes);
      },
      py::arg("source"), py::arg("threads"), py::arg("memory") = py::none(), py::arg("seconds") = py::none(),
      "(module, machine, notes) of a path or of bytes; limits of the loading and of each call");
}

}  // namespace neo::python
