#include "base/check.h"
#include "bindings/bindings.h"
#include "ops/op.h"
#include "runtime/module.h"
#include "saved/variants.h"

namespace neo::python {
namespace {

std::vector<SavedModule> load(const py::object& source) {
  if (py::isinstance<py::str>(source)) {
    const auto path = source.cast<std::string>();
    const py::gil_scoped_release release;
    return load_variants(map_file(path), path, standard_ops(), standard_routines());
  }
  const py::buffer_info info = source.cast<py::buffer>().request();
  const std::span bytes(static_cast<const std::byte*>(info.ptr), static_cast<size_t>(info.size * info.itemsize));
  const py::gil_scoped_release release;
  return load_variants(copy_bytes(bytes), "bytes", standard_ops(), standard_routines());
}

}  // namespace

void bind_saved(py::module_& m) {
  py::class_<Target>(m, "Machine", "A target with the figures that a module was compiled for.")
      .def_readonly("name", &Target::name);

  m.def(
      "save_variants",
      [](const std::vector<py::tuple>& variants, const std::string& path) {
        std::vector<std::shared_ptr<Module>> modules;
        std::vector<SavedModule> saved;
        for (const py::tuple& v : variants) {
          modules.push_back(v[0].cast<std::shared_ptr<Module>>());
          saved.push_back({{modules.back(), &modules.back()->plan()},
                           v[1].cast<Target>(),
                           v[2].cast<std::map<std::string, std::string>>()});
        }
        const py::gil_scoped_release release;
        save_variants(path, saved);
      },
      py::arg("variants"), py::arg("path"), "variants: (module, machine, notes) of each");
  m.def(
      "load_variants",
      [](const py::object& source, int threads) {
        py::list variants;
        for (SavedModule& saved : load(source)) {
          auto module = std::make_shared<Module>(std::move(saved.plan), threads);
          variants.append(py::make_tuple(std::move(module), std::move(saved.target), std::move(saved.notes)));
        }
        return variants;
      },
      py::arg("source"), py::arg("threads"),
      "[(module, machine, notes)] of a path or of bytes: the variants that this machine runs best");
  m.def(
      "input_ranges",
      [](const Module& module) {
        py::list inputs;
        for (const AxisRanges& ranges : input_ranges(module.plan())) {
          py::list axes;
          if (ranges) {
            for (const Range& range : *ranges) axes.append(py::make_tuple(range.lo, range.hi));
          }
          inputs.append(ranges ? py::object(py::tuple(axes)) : py::object(py::none()));
        }
        return inputs;
      },
      py::arg("module"), "by input and axis (least, most); None for an input whose rank is open");
}

}  // namespace neo::python
