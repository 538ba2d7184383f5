#include <algorithm>
#include <utility>

#include "base/check.h"
#include "routines/gpu/basic/read_family.h"
#include "routines/gpu/eltwise/families.h"
#include "routines/gpu/index/families.h"
#include "routines/gpu/movement/families.h"
#include "routines/gpu/norm/families.h"
#include "routines/gpu/pool/families.h"
#include "routines/gpu/reduce/families.h"
#include "routines/gpu/resize/families.h"
#include "routines/gpu/routine.h"
#include "routines/gpu/sample/families.h"
#include "routines/gpu/storage.h"
#include "routines/gpu/target_model.h"
#include "routines/patterns/eltwise_groups.h"
#include "routines/space.h"

namespace neo::gpu {
namespace {

constexpr double kEfficiency = 0.3;  // of arithmetic beside loads and stores

BasicOptions options_of(const Target& target, const Schedule& schedule, int64_t together) {
  BasicOptions o;
  o.together = together;
  o.lanes = static_cast<int>(value_of(schedule, "lanes"));
  o.threads = static_cast<int>(value_of(schedule, "threads"));
  if (o.lanes == 0) o.lanes = target.device == DeviceKind::Cuda ? 4 : 8;
  if (o.threads == 0) o.threads = 64;
  return o;
}

// Whether every operand of floats has this dtype.
bool holds_floats_in(const Workload& workload, const std::vector<int>& inputs, DType dtype) {
  const auto fits = [&](const Value* v) { return !is_float(v->dtype()) || v->dtype() == dtype; };
  return std::all_of(inputs.begin(), inputs.end(),
                     [&](int i) { return fits(workload.inputs[static_cast<size_t>(i)]); }) &&
         std::all_of(workload.outputs.begin(), workload.outputs.end(), fits);
}

// A family as a routine, for one layout of the channels.
class BasicRoutine final : public ProgramRoutine {
 public:
  explicit BasicRoutine(const Family& family, int64_t together = 1)
      : family_(family),
        together_(together),
        name_(together == 1 ? std::string(family.name) : str(family.name, "_", channels_tag(together))) {}

  std::string_view name() const override { return name_; }
  std::vector<std::string_view> roots() const override { return family_.roots(); }

  std::vector<Workload> matches(const Node& root, const Graph::Users& users, const Graph& graph) const override {
    return family_.matches ? family_.matches(root, users, graph) : Routine::matches(root, users, graph);
  }

  std::optional<std::string> rejects(const Workload& workload, const Target& target) const override {
    if (auto reason = cannot_hold(workload)) return reason;
    if (!model_of(target).likes_together(together_)) return "another block of channels suits the device";
    std::string why;
    if (!read(workload, target, {}, &why)) return why;
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target,
                                    const OpRegistry& ops) const override {
    return {candidate(workload, target, ops, {})};
  }

  Candidate candidate(const Workload& workload, const Target& target, const OpRegistry& ops,
                      const Schedule& schedule) const override {
    const Made made = *read(workload, target, schedule);
    Candidate c = plain_candidate(workload, target);
    c.schedule = schedule;
    if (together_ != 1) {
      for (size_t i = 0; i < made.inputs.size(); ++i) {
        c.inputs[static_cast<size_t>(made.inputs[i])]->layout = made.layouts[i];
      }
      for (size_t i = 0; i < c.outputs.size(); ++i) c.outputs[i].layout = made.layouts[made.inputs.size() + i];
    }
    for (size_t i = 0; i < c.inputs.size(); ++i) {
      if (std::find(made.inputs.begin(), made.inputs.end(), static_cast<int>(i)) == made.inputs.end()) {
        c.inputs[i] = std::nullopt;
      }
    }
    Work work = workload.work(ops);
    work.flops = std::max<int64_t>(work.flops.hint(), static_cast<int64_t>(made.flops));
    c.cost.time_us = device_us(work, target, kEfficiency);
    return c;
  }

  Space space(const Workload& workload, const Target& target) const override {
    const std::vector<Space::Parameter> parameters{{"lanes", {0, 1, 2, 4, 8, 16}}, {"threads", {0, 16, 32, 128, 256}}};
    return Space(parameters, [&](std::span<const int64_t> values) {
      Schedule schedule;
      for (size_t i = 0; i < values.size(); ++i) {
        if (values[i] != 0) schedule[parameters[i].name] = values[i];
      }
      return read(workload, target, schedule).has_value();
    });
  }

  std::unique_ptr<const Program> program(const Candidate& candidate, const Target& target,
                                         PackedStore& packed) const override {
    const Made made = *read(*candidate.workload, target, candidate.schedule);
    for (const std::vector<float>& table : made.tables) {
      packed.floats(static_cast<int64_t>(table.size()), {},
                    [&](float* to) { std::copy(table.begin(), table.end(), to); });
    }
    return made.program();
  }

 private:
  std::optional<Made> read(const Workload& workload, const Target& target, const Schedule& schedule,
                           std::string* why = nullptr) const {
    return read_family(family_, workload, options_of(target, schedule, together_), why);
  }

  const Family& family_;
  int64_t together_;
  std::string name_;
};

constexpr Family kEltwise{"gpu/eltwise", eltwise_roots, read_eltwise, match_eltwise};
constexpr Family kCopy{"gpu/copy", copy_roots, read_copy};
constexpr Family kPool{"gpu:float32/pool", pool_roots, read_pool, nullptr, true};
constexpr Family kReduce{"gpu/reduce", reduce_roots, read_reduce, nullptr, true};
constexpr Family kSoftmax{"gpu:float32/softmax", softmax_roots, read_softmax, nullptr, true};
constexpr Family kNorm{"gpu:float32/norm", norm_roots, read_norm, nullptr, true};
constexpr Family kChannelNorm{"gpu:float32/channel_norm", channel_norm_roots, read_channel_norm, nullptr, true};
constexpr Family kResize{"gpu:float32/resize", resize_roots, read_resize, nullptr, true};
constexpr Family kGridSample{"gpu:float32/grid_sample", grid_sample_roots, read_grid_sample, nullptr, true};
constexpr Family kIndex{"gpu/index", index_roots, read_index};

}  // namespace

std::optional<Made> read_family(const Family& family, const Workload& workload, const BasicOptions& options,
                                std::string* why) {
  const DType storage = storage_of(workload);
  if (storage == DType::Float32 || !family.reads_twin) return family.read(workload, options, why);
  const auto twin = std::make_shared<const WideTwin>(workload);
  std::optional<Made> made = family.read(twin->workload(), options, why);
  if (!made) return std::nullopt;
  if (!holds_floats_in(workload, made->inputs, storage)) return not_made(why, "floats of two dtypes");
  made->program = [twin, storage, program = std::move(made->program)] { return stored_program(program(), storage); };
  return made;
}

const std::vector<Family>& basic_families() {
  static const std::vector<Family> families = {kEltwise, kCopy,        kPool,  kReduce, kSoftmax,
                                               kNorm,    kChannelNorm, kIndex, kResize, kGridSample};
  return families;
}

}  // namespace neo::gpu

namespace neo {

NEO_DEFINE_PROGRAM_ROUTINE(gpu_eltwise, gpu::BasicRoutine, gpu::kEltwise)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_copy, gpu::BasicRoutine, gpu::kCopy)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_pool, gpu::BasicRoutine, gpu::kPool)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_reduce, gpu::BasicRoutine, gpu::kReduce)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_eltwise_nchw4c, gpu::BasicRoutine, gpu::kEltwise, 4)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_eltwise_nchw8c, gpu::BasicRoutine, gpu::kEltwise, 8)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_eltwise_nchw16c, gpu::BasicRoutine, gpu::kEltwise, 16)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_eltwise_nhwc, gpu::BasicRoutine, gpu::kEltwise, gpu::kAllChannels)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_copy_nchw4c, gpu::BasicRoutine, gpu::kCopy, 4)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_copy_nchw8c, gpu::BasicRoutine, gpu::kCopy, 8)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_copy_nchw16c, gpu::BasicRoutine, gpu::kCopy, 16)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_copy_nhwc, gpu::BasicRoutine, gpu::kCopy, gpu::kAllChannels)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_pool_nchw4c, gpu::BasicRoutine, gpu::kPool, 4)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_pool_nchw8c, gpu::BasicRoutine, gpu::kPool, 8)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_pool_nchw16c, gpu::BasicRoutine, gpu::kPool, 16)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_pool_nhwc, gpu::BasicRoutine, gpu::kPool, gpu::kAllChannels)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_reduce_nchw4c, gpu::BasicRoutine, gpu::kReduce, 4)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_reduce_nchw8c, gpu::BasicRoutine, gpu::kReduce, 8)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_reduce_nchw16c, gpu::BasicRoutine, gpu::kReduce, 16)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_reduce_nhwc, gpu::BasicRoutine, gpu::kReduce, gpu::kAllChannels)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_softmax, gpu::BasicRoutine, gpu::kSoftmax)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_norm, gpu::BasicRoutine, gpu::kNorm)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_channel_norm, gpu::BasicRoutine, gpu::kChannelNorm)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_resize, gpu::BasicRoutine, gpu::kResize)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_grid_sample, gpu::BasicRoutine, gpu::kGridSample)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_index, gpu::BasicRoutine, gpu::kIndex)

}  // namespace neo
