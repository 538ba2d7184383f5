#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "base/check.h"
#include "kernel_ir/print.h"
#include "programs.h"
#include "runtime/devices/cuda/cuda_compile.h"
#include "runtime/devices/devices.h"

namespace py = pybind11;

namespace neo::gpu::tests {

int64_t Choice::number(const std::string& name) const {
  const auto found = numbers.find(name);
  NEO_CHECK(found != numbers.end(), Model, "programs", "a program's numbers must be given. Got none for ", name);
  return found->second;
}

int64_t Choice::number(const std::string& name, int64_t otherwise) const {
  const auto found = numbers.find(name);
  return found == numbers.end() ? otherwise : found->second;
}

const std::string& Choice::word(const std::string& name) const {
  const auto found = words.find(name);
  NEO_CHECK(found != words.end(), Model, "programs", "a program's words must be given. Got none for ", name);
  return found->second;
}

Schedule Choice::schedule() const {
  return {numbers.begin(), numbers.end()};
}

namespace {

std::map<std::string, Maker>& table() {
  static std::map<std::string, Maker> makers;
  return makers;
}

kernel::LanguageKind language_of(const std::string& name) {
  if (name == "opencl") return kernel::LanguageKind::OpenClC;
  return name == "cuda" ? kernel::LanguageKind::CudaCpp : kernel::LanguageKind::PlainC;
}

kernel::Features features_of(const std::string& subgroups) {
  kernel::Features f;
  f.subgroups = subgroups == "intel"     ? kernel::Features::Subgroups::Intel
                : subgroups == "khronos" ? kernel::Features::Subgroups::Khronos
                                         : kernel::Features::Subgroups::None;
  f.matrices = subgroups == "matrices";
  f.dots = subgroups == "dots" ? kernel::Features::Dots::Native : kernel::Features::Dots::None;
  return f;
}

// Sizes of one launch by the names of its kernel's parameters.
std::map<std::string, int64_t, std::less<>> sizes_of(const kernel::Kernel& k, const KernelLaunch& launch) {
  NEO_CHECK(launch.arguments.size() == k.parameters.size(), Shape, "programs",
            "a launch must have one argument for each parameter of ", k.name, ". Got ", launch.arguments.size(),
            ", expected ", k.parameters.size());
  std::map<std::string, int64_t, std::less<>> sizes;
  for (size_t i = 0; i < k.parameters.size(); ++i) {
    const auto* scalar = std::get_if<kernel::ScalarParameter>(&k.parameters[i]);
    if (scalar == nullptr || scalar->variable->type.dtype != DType::Int32) continue;
    sizes[scalar->variable->name] = std::get<int64_t>(launch.arguments[i]);
  }
  return sizes;
}

// A program with its choice made.
class Instance {
 public:
  Instance(const std::string& name, const std::map<std::string, int64_t>& numbers,
           const std::map<std::string, std::string>& words) {
    const auto found = table().find(name);
    NEO_CHECK(found != table().end(), Model, "programs", "the program must be known. Got ", name);
    program_ = found->second({numbers, words});
  }

  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const kernel::Kernel& k : program_->kernels()) out.push_back(k.name);
    return out;
  }

  std::string print(int index, const std::string& language, const std::string& subgroups) const {
    return kernel::print(program_->kernels().at(static_cast<size_t>(index)), language_of(language),
                         features_of(subgroups));
  }

  // (bytes of the temporaries, [(kernel, [("operand" | "packed" | "temporary", index, bytes) | ("int32" | dtype,
  // value)])]).
  py::tuple launches(const std::vector<Dims>& shapes) const {
    const Launches all = program_->launches(shapes);
    py::list rows;
    for (const KernelLaunch& launch : all.launches) {
      const kernel::Kernel& k = program_->kernels().at(static_cast<size_t>(launch.kernel));
      const kernel::Geometry g = kernel::geometry(k, sizes_of(k, launch));
      py::list arguments;
      for (size_t i = 0; i < k.parameters.size(); ++i) {
        const LaunchArgument& a = launch.arguments[i];
        if (const auto* m = std::get_if<kernel::Memory>(&k.parameters[i])) {
          const int64_t bytes = g.elements[i] * (*m)->bytes();
          if (const auto* o = std::get_if<Operand>(&a)) arguments.append(py::make_tuple("operand", o->index, bytes));
          if (const auto* p = std::get_if<Packed>(&a)) arguments.append(py::make_tuple("packed", p->index, bytes));
          if (const auto* t = std::get_if<Temporary>(&a)) {
            arguments.append(py::make_tuple("temporary", t->index, bytes));
          }
          continue;
        }
        const DType dtype = std::get<kernel::ScalarParameter>(k.parameters[i]).variable->type.dtype;
        if (const auto* size = std::get_if<int64_t>(&a)) {
          arguments.append(py::make_tuple(std::string(name(dtype)), *size));
        } else {
          arguments.append(py::make_tuple(std::string(name(dtype)), std::get<double>(a)));
        }
      }
      rows.append(py::make_tuple(launch.kernel, arguments));
    }
    return py::make_tuple(all.temporaries, rows);
  }

  const Program& program() const { return *program_; }

 private:
  std::unique_ptr<Program> program_;
};

// A device of the tests.
class Runner {
 public:
  explicit Runner(const std::string& kind)
      : device_(open_device(kind == "opencl" ? DeviceKind::OpenCl
                            : kind == "cuda" ? DeviceKind::Cuda
                                             : DeviceKind::Null)),
        queue_(device_->make_queue(true)) {}

  // Runs the program on operands that it changes in place. Times in ns, of all launches of a round together.
  std::vector<int64_t> run(const Instance& instance, const std::vector<Dims>& shapes,
                           const std::vector<py::array>& operands, const std::vector<py::array>& packed, int repeats) {
    const Program& program = instance.program();
    const bool is_cuda = device_->info().kind == DeviceKind::Cuda;
    kernel::Features features;
    features.software_halves = device_->info().platform.find("PoCL") != std::string::npos;
    if (device_->info().has_subgroups) {
      features.subgroups =
          device_->info().has_block_reads ? kernel::Features::Subgroups::Intel : kernel::Features::Subgroups::Khronos;
    }
    std::vector<std::shared_ptr<const DeviceProgram>> compiled;
    const auto language = is_cuda ? kernel::LanguageKind::CudaCpp : kernel::LanguageKind::OpenClC;
    for (const kernel::Kernel& k : program.kernels()) {
      compiled.push_back(device_->compile({.text = kernel::print(k, language, features)}));
    }
    const Launches all = program.launches(shapes);
    // All in one buffer, as a plan's memory is.
    struct Part {
      int64_t offset, bytes;
      const void* from;
    };
    std::vector<Part> parts;
    int64_t end = 0;
    const auto place = [&](int64_t bytes, const void* from) {
      constexpr int64_t kAlignment = 256;
      parts.push_back({end, bytes, from});
      end += (std::max<int64_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
    };
    for (const py::array& a : operands) place(a.nbytes(), a.data());
    for (const py::array& a : packed) place(a.nbytes(), a.data());
    for (const int64_t bytes : all.temporaries) place(bytes, nullptr);
    const auto memory = device_->allocate(std::max<int64_t>(end, 1));
    for (const Part& p : parts) {
      if (p.from == nullptr || p.bytes == 0) continue;
      queue_->write(*memory, p.offset, {static_cast<const std::byte*>(p.from), static_cast<size_t>(p.bytes)});
    }

    std::vector<Launch> launches;
    for (const KernelLaunch& l : all.launches) {
      const kernel::Kernel& k = program.kernels().at(static_cast<size_t>(l.kernel));
      const kernel::Geometry g = kernel::geometry(k, sizes_of(k, l));
      Launch launch{compiled[static_cast<size_t>(l.kernel)],
                    kernel::entry_name(k, language),
                    g.groups,
                    g.locals,
                    k.local_bytes(),
                    {}};
      for (size_t i = 0; i < k.parameters.size(); ++i) {
        const LaunchArgument& a = l.arguments[i];
        if (const auto* m = std::get_if<kernel::Memory>(&k.parameters[i])) {
          size_t at = 0;
          if (const auto* o = std::get_if<Operand>(&a)) at = static_cast<size_t>(o->index);
          if (const auto* p = std::get_if<Packed>(&a)) at = operands.size() + static_cast<size_t>(p->index);
          if (const auto* t = std::get_if<Temporary>(&a)) {
            at = operands.size() + packed.size() + static_cast<size_t>(t->index);
          }
          const int64_t bytes = g.elements[i] * (*m)->bytes();
          NEO_CHECK(parts.at(at).bytes >= bytes, Shape, "programs", "memory must be large enough for ", (*m)->name,
                    " of ", k.name, ". Got ", parts[at].bytes, " bytes, expected ", bytes);
          BufferArgument argument{memory.get(), parts[at].offset};
          if ((*m)->space == kernel::Space::Image) argument.texels = g.elements[i];
          launch.arguments.emplace_back(argument);
          continue;
        }
        const DType dtype = std::get<kernel::ScalarParameter>(k.parameters[i]).variable->type.dtype;
        if (const auto* size = std::get_if<int64_t>(&a); size != nullptr && dtype == DType::Int32) {
          launch.arguments.emplace_back(NumberArgument::of(static_cast<int32_t>(*size)));
        } else if (size != nullptr) {
          launch.arguments.emplace_back(NumberArgument::of(*size));
        } else if (dtype == DType::Float64) {
          launch.arguments.emplace_back(NumberArgument::of(std::get<double>(a)));
        } else {
          launch.arguments.emplace_back(NumberArgument::of(static_cast<float>(std::get<double>(a))));
        }
      }
      launches.push_back(std::move(launch));
    }
    std::vector<int64_t> times;
    for (int r = 0; r < repeats; ++r) {
      for (const Launch& launch : launches) queue_->launch(launch);
      int64_t sum = 0;
      for (const LaunchTime& t : queue_->take_times()) sum += t.end_ns - t.start_ns;
      times.push_back(sum);
    }
    for (size_t i = 0; i < operands.size(); ++i) {
      py::array a = operands[i];
      if (a.nbytes() == 0 || !a.writeable()) continue;
      queue_->read(*memory, parts[i].offset,
                   {static_cast<std::byte*>(a.mutable_data()), static_cast<size_t>(a.nbytes())});
    }
    return times;
  }

 private:
  std::shared_ptr<Device> device_;
  std::unique_ptr<DeviceQueue> queue_;
};

}  // namespace

Registered::Registered(std::string name, Maker maker) {
  table().emplace(std::move(name), std::move(maker));
}

}  // namespace neo::gpu::tests

PYBIND11_MODULE(_gpu_programs, m) {
  using namespace neo::gpu::tests;  // NOLINT
  py::register_local_exception_translator([](std::exception_ptr p) {
    try {
      if (p) std::rethrow_exception(p);
    } catch (const neo::Error& e) {
      PyErr_SetString(PyExc_RuntimeError, e.what());
    }
  });
  m.def("compile_cuda",
        [](const std::string& text, int capability) { return py::bytes(neo::compile_cuda(text, capability)); });
  py::class_<Instance>(m, "Program")
      .def(py::init<const std::string&, const std::map<std::string, int64_t>&,
                    const std::map<std::string, std::string>&>(),
           py::arg("name"), py::arg("numbers"), py::arg("words"))
      .def("names", &Instance::names)
      .def("print", &Instance::print, py::arg("index"), py::arg("language"), py::arg("subgroups") = "none")
      .def("launches", &Instance::launches);
  py::class_<Runner>(m, "Runner")
      .def(py::init<const std::string&>())
      .def("run", &Runner::run, py::arg("program"), py::arg("shapes"), py::arg("operands"),
           py::arg("packed") = std::vector<py::array>(), py::arg("repeats") = 1);
}
