#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "base/check.h"
#include "kernel_ir/print.h"
#include "kernels.h"
#include "runtime/devices/cuda/cuda_compile.h"
#include "runtime/devices/devices.h"
#include "runtime/devices/null/null_device.h"

namespace py = pybind11;

namespace neo::kernel::examples {
namespace {

const Kernel& find(const std::string& name) {
  const auto found = all().find(name);
  NEO_CHECK(found != all().end(), Model, "kernels", "the kernel must be known. Got ", name);
  return found->second;
}

LanguageKind language_of(const std::string& name) {
  if (name == "opencl") return LanguageKind::OpenClC;
  return name == "cuda" ? LanguageKind::CudaCpp : LanguageKind::PlainC;
}

Features features_of(const std::string& subgroups) {
  Features f;
  f.subgroups = subgroups == "intel"     ? Features::Subgroups::Intel
                : subgroups == "khronos" ? Features::Subgroups::Khronos
                                         : Features::Subgroups::None;
  f.matrices = subgroups == "matrices";
  f.software_halves = subgroups == "software_halves";
  f.dots = subgroups == "dots"       ? Features::Dots::Native
           : subgroups == "arm_dots" ? Features::Dots::Arm
                                     : Features::Dots::None;
  return f;
}

using Sizes = std::map<std::string, int64_t, std::less<>>;

py::dict geometry_of(const std::string& name, const Sizes& sizes) {
  const Kernel& k = find(name);
  const Geometry g = geometry(k, sizes);
  py::dict out;
  out["groups"] = g.groups;
  out["locals"] = g.locals;
  py::list parameters;
  for (size_t i = 0; i < k.parameters.size(); ++i) {
    if (const auto* m = std::get_if<Memory>(&k.parameters[i])) {
      const int64_t numbers = g.elements[i] * (*m)->type.lanes;
      parameters.append(py::make_tuple((*m)->name, std::string(neo::name((*m)->stored())), numbers,
                                       (*m)->access == Access::Read    ? "read"
                                       : (*m)->access == Access::Write ? "write"
                                                                       : "both"));
    } else {
      const auto& v = *std::get<ScalarParameter>(k.parameters[i]).variable;
      parameters.append(py::make_tuple(v.name, std::string(neo::name(v.type.dtype)), -1, "number"));
    }
  }
  out["parameters"] = parameters;
  return out;
}

// A device of the tests: launches by kernel name, arrays by parameter name.
class Runner {
 public:
  Runner(const std::string& kind, const std::string& wanted)
      : device_(open_device(kind == "opencl" ? DeviceKind::OpenCl
                            : kind == "cuda" ? DeviceKind::Cuda
                                             : DeviceKind::Null,
                            wanted)),
        queue_(device_->make_queue(true)) {}

  // Runs one kernel; arrays that it writes are changed in place. Times in ns, one for each of `repeats` launches.
  std::vector<int64_t> run(const std::string& name, const Sizes& sizes, const std::map<std::string, double>& numbers,
                           const std::map<std::string, py::array>& arrays, int repeats, bool sequence) {
    const Kernel& k = find(name);
    const Geometry g = geometry(k, sizes);
    const DeviceInfo& info = device_->info();
    const LanguageKind language = info.kind == DeviceKind::Cuda ? LanguageKind::CudaCpp : LanguageKind::OpenClC;
    Features features;
    if (info.has_subgroups) {
      features.subgroups = info.has_block_reads ? Features::Subgroups::Intel : Features::Subgroups::Khronos;
    }
    features.dots = info.has_dots ? Features::Dots::Native : Features::Dots::None;
    features.software_halves = info.platform.find("PoCL") != std::string::npos;
    Launch launch;
    launch.program = device_->compile({.text = print(k, language, features)});
    launch.kernel = entry_name(k, language);
    launch.groups = g.groups;
    launch.locals = g.locals;
    launch.local_bytes = k.local_bytes();
    std::vector<std::unique_ptr<DeviceBuffer>> buffers;
    std::vector<std::pair<DeviceBuffer*, py::array>> written;
    for (size_t i = 0; i < k.parameters.size(); ++i) {
      if (const auto* m = std::get_if<Memory>(&k.parameters[i])) {
        py::array array = arrays.at((*m)->name);
        const int64_t bytes = g.elements[i] * (*m)->bytes();
        NEO_CHECK(array.nbytes() == bytes, Shape, "kernels", "an array must fit. Got ", array.nbytes(), " bytes for ",
                  (*m)->name, ", expected ", bytes);
        buffers.push_back(device_->allocate(std::max<int64_t>(bytes, 1)));
        queue_->write(*buffers.back(), 0, {static_cast<const std::byte*>(array.data()), static_cast<size_t>(bytes)});
        BufferArgument argument{buffers.back().get(), 0};
        if ((*m)->space == Space::Image) argument.texels = g.elements[i];
        launch.arguments.emplace_back(argument);
        if ((*m)->access != Access::Read) written.emplace_back(buffers.back().get(), array);
        continue;
      }
      const auto& v = *std::get<ScalarParameter>(k.parameters[i]).variable;
      if (v.type.dtype == DType::Int32) {
        launch.arguments.emplace_back(NumberArgument::of(static_cast<int32_t>(sizes.find(v.name)->second)));
      } else {
        launch.arguments.emplace_back(NumberArgument::of(static_cast<float>(numbers.at(v.name))));
      }
    }
    if (sequence) {
      const auto prepared = queue_->prepare({launch});
      for (int i = 0; i < repeats; ++i) queue_->launch(*prepared);
    } else {
      for (int i = 0; i < repeats; ++i) queue_->launch(launch);
    }
    std::vector<int64_t> times;
    for (const LaunchTime& t : queue_->take_times()) times.push_back(t.end_ns - t.start_ns);
    for (auto& [buffer, array] : written) {
      queue_->read(*buffer, 0, {static_cast<std::byte*>(array.mutable_data()), static_cast<size_t>(array.nbytes())});
    }
    return times;
  }

  void compile(const std::string& text, bool float16, bool subgroups, bool images) {
    device_->compile({.text = text, .needs_float16 = float16, .needs_subgroups = subgroups, .needs_images = images});
  }
  void allocate(int64_t bytes) { device_->allocate(bytes); }
  void launch_with(int64_t threads, int64_t local_bytes) {
    Launch l;
    l.kernel = "any";
    l.locals = {threads, 1, 1};
    l.local_bytes = local_bytes;
    queue_->launch(l);
  }

  // Memory of the host, used in place: copied to another buffer on the device and looked at again.
  bool shares_memory() {
    constexpr size_t kBytes = 4096;
    auto* memory = static_cast<std::byte*>(std::aligned_alloc(4096, kBytes));
    std::memset(memory, 0, kBytes);
    bool same = false;
    {
      const auto mine = device_->adopt({memory, kBytes});
      const auto other = device_->allocate(kBytes);
      if (mine != nullptr) {
        std::vector<std::byte> ones(kBytes, std::byte{1});
        queue_->write(*other, 0, ones);
        queue_->copy(*other, 0, *mine, 0, kBytes);
        queue_->read(*mine, 0, {memory, kBytes});
        same = std::memcmp(memory, ones.data(), kBytes) == 0;
      }
    }
    std::free(memory);
    return same;
  }

  std::vector<std::string> record() const {
    const auto* null = dynamic_cast<const NullDevice*>(device_.get());
    return null == nullptr ? std::vector<std::string>() : null->record();
  }

 private:
  std::shared_ptr<Device> device_;
  std::unique_ptr<DeviceQueue> queue_;
};

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const auto& [name, kernel] : all()) out.push_back(name);
  return out;
}

}  // namespace
}  // namespace neo::kernel::examples

PYBIND11_MODULE(_kernels, m) {
  using namespace neo::kernel::examples;  // NOLINT
  py::register_local_exception_translator([](std::exception_ptr p) {
    try {
      if (p) std::rethrow_exception(p);
    } catch (const neo::Error& e) {
      PyErr_SetString(PyExc_RuntimeError, e.what());
    }
  });
  m.def("names", &names);
  m.def(
      "print",
      [](const std::string& name, const std::string& language, const std::string& subgroups) {
        return neo::kernel::print(find(name), language_of(language), features_of(subgroups));
      },
      py::arg("name"), py::arg("language"), py::arg("subgroups") = "none");
  m.def("geometry", &geometry_of);
  m.def("build_wrong", &build_wrong);
  m.def("compile_cuda",
        [](const std::string& text, int capability) { return py::bytes(neo::compile_cuda(text, capability)); });
  py::class_<Runner>(m, "Runner")
      .def(py::init<const std::string&, const std::string&>(), py::arg("kind"), py::arg("wanted") = "")
      .def("run", &Runner::run, py::arg("name"), py::arg("sizes"), py::arg("numbers"), py::arg("arrays"),
           py::arg("repeats") = 1, py::arg("sequence") = false)
      .def("compile", &Runner::compile, py::arg("text"), py::arg("float16") = false, py::arg("subgroups") = false,
           py::arg("images") = false)
      .def("allocate", &Runner::allocate)
      .def("launch_with", &Runner::launch_with)
      .def("shares_memory", &Runner::shares_memory)
      .def("record", &Runner::record);
}
