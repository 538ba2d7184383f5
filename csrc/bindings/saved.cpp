#include "saved/saved.h"

#include "base/check.h"
#include "bindings/bindings.h"
#include "ops/op.h"
#include "runtime/module.h"
#include "saved/compact.h"

namespace neo::python {
namespace {

SavedModule load(const py::object& source) {
  if (py::isinstance<py::str>(source)) {
    const auto path = source.cast<std::string>();
    const py::gil_scoped_release release;
    return load_module(map_file(path), path, standard_ops(), standard_routines());
  }
  const py::buffer_info info = source.cast<py::buffer>().request();
  const std::span bytes(static_cast<const std::byte*>(info.ptr), static_cast<size_t>(info.size * info.itemsize));
  const py::gil_scoped_release release;
  return load_module(copy_bytes(bytes), "bytes", standard_ops(), standard_routines());
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
      [](const py::object& source, int threads) {
        SavedModule saved = load(source);
        return py::make_tuple(std::make_shared<Module>(std::move(saved.plan), threads), saved.target, saved.notes);
      },
      py::arg("source"), py::arg("threads"), "(module, machine, notes) of a path or of bytes");
  m.def(
      "compact_module",
      [](const std::string& path) {
        const FileBytes file = map_file(path);
        const SavedModule saved = load_module(file, path, standard_ops(), standard_routines());
        const CompactModule compact = write_compact(saved, file);
        const py::bytes plan(reinterpret_cast<const char*>(compact.bytes.data()), compact.bytes.size());
        return py::make_tuple(plan, compact.makers, compact.families, saved.target.name, isa_name(saved.target.isa));
      },
      py::arg("path"), "(plan, makers of its steps, families of its references, target, tier) of a saved module");
}

}  // namespace neo::python
