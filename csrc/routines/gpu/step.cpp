#include "routines/gpu/step.h"

#include "base/check.h"
#include "kernel_ir/print.h"

namespace neo::gpu {
namespace {

// Adds the features that the kernel's parameters and expressions need of a device.
void add_needs(const kernel::Kernel& k, kernel::LanguageKind language, ProgramSource& source) {
  const auto note = [&](DType dtype) {
    source.needs_float16 = source.needs_float16 || dtype == DType::Float16;
    source.needs_float64 = source.needs_float64 || dtype == DType::Float64;
  };
  for (const kernel::Parameter& p : k.parameters) {
    if (const auto* memory = std::get_if<kernel::Memory>(&p)) {
      note((*memory)->type.dtype);
      // Elsewhere it is ordinary memory.
      const bool is_image = (*memory)->space == kernel::Space::Image;
      source.needs_images = source.needs_images || (is_image && language == kernel::LanguageKind::OpenClC);
    } else {
      note(std::get<kernel::ScalarParameter>(p).variable->type.dtype);
    }
  }
}

NumberArgument number_of(const LaunchArgument& argument, DType dtype, std::string_view kernel) {
  const auto* size = std::get_if<int64_t>(&argument);
  const auto* real = std::get_if<double>(&argument);
  NEO_ASSERT(size || real, "a number of ", kernel, " must be given one");
  const auto as = [&](auto zero) {
    using T = decltype(zero);
    return NumberArgument::of(size ? static_cast<T>(*size) : static_cast<T>(*real));
  };
  switch (dtype) {
    case DType::Float32:
      return as(float{});
    case DType::Float64:
      return as(double{});
    case DType::Int32:
      return as(int32_t{});
    case DType::UInt32:
      return as(uint32_t{});
    case DType::Int64:
      return as(int64_t{});
    default:
      break;
  }
  NEO_ASSERT(false, "a number of ", kernel, " must be of 4 or 8 bytes. Got ", name(dtype));
}

class ProgramStep final : public DeviceStep {
 public:
  ProgramStep(std::unique_ptr<const Program> program, std::vector<Tensor> constants)
      : program_(std::move(program)),
        data_dependent_(dynamic_cast<const DataDependentProgram*>(program_.get())),
        constants_(std::move(constants)) {}

  int kernel_count() const override { return static_cast<int>(program_->kernels().size()); }

  KernelSource kernel(int index, const DeviceInfo& device) const override {
    const kernel::Kernel& k = program_->kernels().at(static_cast<size_t>(index));
    const Dialect dialect = dialect_of(device);
    KernelSource source;
    source.name = kernel::entry_name(k, dialect.language);
    source.program.text = kernel::print(k, dialect.language, dialect.features);
    add_needs(k, dialect.language, source.program);
    return source;
  }

  std::span<const Tensor> constants() const override { return constants_; }

  StepLaunches launches(std::span<const Arg> args) const override {
    const std::vector<Dims> shapes = shapes_of(args);
    return resolve(program_->launches(shapes), args, static_cast<int>(args.size()));
  }

  int counts() const override { return data_dependent_ ? data_dependent_->counts() : 0; }

  StepLaunches count(std::span<const Arg> inputs) const override {
    return resolve(data_dependent_->count(shapes_of(inputs)), inputs, static_cast<int>(inputs.size()));
  }

  std::vector<Dims> sizes(std::span<const Arg> inputs, std::span<const int32_t> counts) const override {
    return data_dependent_->sizes(shapes_of(inputs), counts);
  }

 private:
  static std::vector<Dims> shapes_of(std::span<const Arg> args) {
    std::vector<Dims> shapes;
    for (const Arg& a : args) {
      NEO_ASSERT(!a.present || a.is_dense(), "a device step takes dense arguments");
      shapes.push_back(a.dims);
    }
    return shapes;
  }

  // Operand `first_count` and those behind it are the counts.
  StepLaunches resolve(Launches made, std::span<const Arg> args, int first_count) const {
    StepLaunches out;
    out.temporaries = std::move(made.temporaries);
    for (const KernelLaunch& launch : made.launches) {
      const kernel::Kernel& k = program_->kernels().at(static_cast<size_t>(launch.kernel));
      NEO_ASSERT(launch.arguments.size() == k.parameters.size(), "a launch of ", k.name, " has ",
                 launch.arguments.size(), " arguments, expected ", k.parameters.size());
      std::map<std::string, int64_t, std::less<>> sizes;
      for (size_t i = 0; i < k.parameters.size(); ++i) {
        const auto* scalar = std::get_if<kernel::ScalarParameter>(&k.parameters[i]);
        const auto* size = std::get_if<int64_t>(&launch.arguments[i]);
        if (scalar && size && scalar->variable->type.dtype == DType::Int32) sizes[scalar->variable->name] = *size;
      }
      const kernel::Geometry geometry = kernel::geometry(k, sizes);
      StepLaunch step{launch.kernel, geometry.groups, geometry.locals, k.local_bytes(), {}};
      for (size_t i = 0; i < k.parameters.size(); ++i) {
        const auto* memory = std::get_if<kernel::Memory>(&k.parameters[i]);
        if (!memory) {
          const DType dtype = std::get<kernel::ScalarParameter>(k.parameters[i]).variable->type.dtype;
          step.arguments.emplace_back(number_of(launch.arguments[i], dtype, k.name));
          continue;
        }
        const int64_t bytes = geometry.elements[i] * (*memory)->bytes();
        StepOperand operand = place(launch.arguments[i], bytes, out, args, first_count, k.name);
        if ((*memory)->space == kernel::Space::Image) operand.texels = geometry.elements[i];
        step.arguments.emplace_back(operand);
      }
      out.launches.push_back(std::move(step));
    }
    return out;
  }

  // Checked: what the kernel may touch is there.
  StepOperand place(const LaunchArgument& argument, int64_t bytes, const StepLaunches& made, std::span<const Arg> args,
                    int first_count, std::string_view kernel) const {
    StepOperand operand;
    operand.bytes = bytes;
    int64_t have = 0;
    if (const auto* o = std::get_if<Operand>(&argument)) {
      operand.index = o->index;
      if (o->index >= first_count) {
        operand.place = StepOperand::Place::Counts;
        operand.index = 0;
        have = counts() * int64_t{4};
      } else {
        const Arg& arg = args[static_cast<size_t>(o->index)];
        have = element_count(arg.layout.physical_dims(arg.dims)) * item_bytes(arg.dtype);
      }
    } else if (const auto* packed = std::get_if<Packed>(&argument)) {
      operand.place = StepOperand::Place::Constant;
      operand.index = packed->index;
      have = constants_.at(static_cast<size_t>(packed->index)).bytes();
    } else {
      operand.place = StepOperand::Place::Temporary;
      operand.index = std::get<Temporary>(argument).index;
      have = made.temporaries.at(static_cast<size_t>(operand.index));
    }
    NEO_ASSERT(bytes <= have, kernel, " may touch ", bytes, " bytes of an argument that has ", have);
    return operand;
  }

  std::unique_ptr<const Program> program_;
  const DataDependentProgram* data_dependent_;
  std::vector<Tensor> constants_;
};

}  // namespace

Dialect dialect_of(const DeviceInfo& device) {
  Dialect dialect;
  dialect.language = kernel::find_language(device.language);
  // Khronos's subgroups have as many threads as the driver likes: only Intel's can be asked for a size.
  if (device.has_block_reads) dialect.features.subgroups = kernel::Features::Subgroups::Intel;
  dialect.features.matrices = device.has_matrices;
  using Dots = kernel::Features::Dots;
  dialect.features.dots = device.has_dots ? Dots::Native : device.has_arm_dots ? Dots::Arm : Dots::None;
  dialect.features.software_halves = device.platform.find("PoCL") != std::string::npos;
  return dialect;
}

std::unique_ptr<DeviceStep> make_step(std::unique_ptr<const Program> program, std::vector<Tensor> constants) {
  return std::make_unique<ProgramStep>(std::move(program), std::move(constants));
}

}  // namespace neo::gpu
