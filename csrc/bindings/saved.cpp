#include "saved/saved.h"

#include <cstring>

#include "base/check.h"
#include "base/topology.h"
#include "bindings/bindings.h"
#include "ops/op.h"
#include "routines/cpu/microkernel/used_kernels.h"
#include "routines/patterns/compile_program.h"
#include "runtime/module.h"
#include "saved/compact.h"
#include "saved/variants.h"

namespace neo::python {
namespace {

std::vector<SavedModule> load(const py::object& source, const Quota& quota) {
  const std::function<void()> poll = raise_pending_signals;
  if (py::isinstance<py::str>(source)) {
    const auto path = source.cast<std::string>();
    const py::gil_scoped_release release;
    return load_variants(map_file(path), path, standard_ops(), standard_routines(), quota, &poll);
  }
  const py::buffer_info info = source.cast<py::buffer>().request();
  const std::span bytes(static_cast<const std::byte*>(info.ptr), static_cast<size_t>(info.size * info.itemsize));
  const py::gil_scoped_release release;
  return load_variants(copy_bytes(bytes), "bytes", standard_ops(), standard_routines(), quota, &poll);
}

constexpr uint64_t kAll = ~uint64_t{0};

// The kernels that an export compiles, a bit each: register blocks by rows, by columns and of Strassen's algorithm
// (used_kernels.h), and elementwise operators.
struct UsedKernels {
  uint64_t rows = kAll, columns = kAll, strassen = kAll, eltwise = kAll;
};

// Symbolic sizes may leave any rest of rows, which keeps all blocks of the same vectors.
uint64_t with_rests(uint64_t used) {
  uint64_t kept = 0;
  for (int shift = 0; shift < 64; shift += 16) {
    if (used >> shift & 0xFFFF) kept |= uint64_t{0xFFFF} << shift;
  }
  return kept;
}

// The kernels that a module runs, found by loading and calling it once on zeros; all where that cannot be done.
UsedKernels find_kernels(const FileBytes& file, const std::string& path) {
  const UsedTiles tiles;
  const EltwiseUse eltwise;
  SavedModule saved = load_module(file, path, standard_ops(), standard_routines());
  const Block& root = *saved.plan->root;
  bool is_fixed = root.regions.size() == 1 && root.regions.front().sources.empty();
  std::vector<HostValue> inputs;
  for (const int slot : root.arguments) {
    const Type& type = root.slots[static_cast<size_t>(slot)].type;
    if (!type.is_tensor() || !type.shape.has_rank()) return {};
    Tensor zeros(type.dtype, type.shape.hint_dims());
    if (type.dtype != DType::String) std::memset(zeros.data(), 0, static_cast<size_t>(zeros.bytes()));
    inputs.emplace_back(std::move(zeros));
  }
  for (const Region& region : root.regions) {
    for (const Item& item : region.items) {
      // Zeros may decide another way than what the module is for, or never end a loop.
      if (std::holds_alternative<IfItem>(item.what) || std::holds_alternative<LoopItem>(item.what)) return {};
    }
  }
  try {
    for (const int threads : {1, 4}) Module(saved.plan, {1, threads}, true).call(inputs, {});
  } catch (const Error&) {
    return {};
  }
  if (is_fixed) return {tiles.rows(), tiles.columns(), tiles.strassen(), eltwise.ops()};
  return {with_rests(tiles.rows()), with_rests(tiles.columns()), with_rests(tiles.strassen()), eltwise.ops()};
}

}  // namespace

void bind_machine(py::module_& m) {
  py::class_<Target>(m, "Machine", "A target with the figures that a module was compiled for.")
      .def_readonly("name", &Target::name)
      .def_readonly("threads", &Target::threads, "the team size that estimates are of");
}

void bind_saved(py::module_& m) {
  m.def(
      "save_variants",
      [](const std::vector<py::tuple>& variants, const std::string& path) {
        std::vector<std::shared_ptr<Module>> modules;
        std::vector<SavedModule> saved;
        for (const py::tuple& v : variants) {
          modules.push_back(v[0].cast<std::shared_ptr<Module>>());
          saved.push_back({{modules.back(), &modules.back()->plan()},
                           v[1].cast<Target>(),
                           v[2].cast<std::map<std::string, std::string>>(),
                           v[3].cast<bool>() ? std::optional(modules.back()->configuration()) : std::nullopt});
        }
        const py::gil_scoped_release release;
        save_variants(path, saved);
      },
      py::arg("variants"), py::arg("path"),
      "variants: (module, machine, notes, whether its executors were chosen for it) of each");
  m.def(
      "load_variants",
      [](const py::object& source, std::optional<int> threads, std::optional<int64_t> memory,
         std::optional<double> seconds) {
        const Quota quota{memory, seconds};
        py::list variants;
        for (SavedModule& saved : load(source, quota)) {
          const Configuration configuration =
              threads ? Configuration{1, *threads} : configuration_for(saved, default_threads());
          auto module = std::make_shared<Module>(std::move(saved.plan), configuration, false, quota);
          const bool was_chosen = saved.chosen == configuration;
          variants.append(
              py::make_tuple(std::move(module), std::move(saved.target), std::move(saved.notes), was_chosen));
        }
        return variants;
      },
      py::arg("source"), py::arg("threads"), py::arg("memory") = py::none(), py::arg("seconds") = py::none(),
      "[(module, machine, notes, whether it has the executors that were chosen for it)] of a path or of bytes: the "
      "variants that this machine runs best; threads: None for the saved executors where there are as many threads");
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
  m.def(
      "compact_module",
      [](const std::string& path) {
        const FileBytes file = map_file(path);
        const SavedModule saved = load_module(file, path, standard_ops(), standard_routines());
        const CompactModule compact = write_compact(saved, file);
        const py::bytes plan(reinterpret_cast<const char*>(compact.bytes.data()), compact.bytes.size());
        const UsedKernels used = find_kernels(file, path);
        py::dict kernels;
        kernels["ROWS"] = used.rows;
        kernels["COLUMNS"] = used.columns;
        kernels["STRASSEN"] = used.strassen;
        kernels["FORMS"] = compact.depthwise_forms;
        kernels["ELTWISE"] = used.eltwise;
        return py::make_tuple(plan, compact.makers, compact.families, saved.target.name, isa_name(saved.target.isa),
                              kernels);
      },
      py::arg("path"),
      "(plan, makers of its steps, families of its references, target, tier, what it runs of the kernels by the words "
      "of the export's CMakeLists.txt, a bit each) of a saved module");
}

}  // namespace neo::python
