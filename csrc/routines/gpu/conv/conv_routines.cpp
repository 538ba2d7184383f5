#include <algorithm>

#include "base/check.h"
#include "base/int_math.h"
#include "routines/gpu/channels.h"
#include "routines/gpu/conv/conv_estimate.h"
#include "routines/gpu/conv/subgroup_conv.h"
#include "routines/gpu/remember.h"
#include "routines/gpu/routine.h"
#include "routines/gpu/search.h"
#include "routines/gpu/storage.h"
#include "routines/gpu/target_model.h"
#include "routines/patterns/conv_problem.h"
#include "routines/patterns/int8_columns.h"

namespace neo::gpu {
namespace {

constexpr int64_t kVector = 4;  // channels that divide those of NHWC

// Floats of a tensor at the largest sizes that it may have, its channels filled up to whole blocks.
int64_t most_floats(const Shape& shape, int block) {
  constexpr int64_t kMax = int64_t{1} << 40;
  int64_t count = 1;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const int64_t most = std::min(shape[axis].range().hi, kMax),
                  size = axis == 1 ? ceil_div(most, int64_t{block}) * block : most;
    if (size > kMax / std::max<int64_t>(count, 1)) return kMax;
    count *= size;
  }
  return count;
}

// The facts of a problem that a profile reads.
std::string conv_key(const ConvProblem& problem) {
  const ConvGeometry& g = problem.geometry;
  std::string key = str(name(problem.x->dtype()), " ", g.transposed, " ", g.axes, " ", g.groups, " ", g.ic, " ", g.oc,
                        " ", problem.epilogue.residual != nullptr);
  for (const int64_t k : g.kernel) key += str(" ", k);
  for (const auto& all : {g.window.strides, g.window.dilations, g.window.pads}) {
    for (const int64_t value : all) key += str(" ", value);
  }
  for (const Dims& dims : {problem.x_hint(), problem.y_hint()}) {
    for (const int64_t d : dims) key += str(" ", d);
  }
  return str(key, " ", most_floats(problem.x->shape(), 1));
}

// The base of a device's convolutions: groups that begin with one and end in a residual and an activation.
class ConvRoutine : public ProgramRoutine {
 public:
  // Channels that lie together in the input, in the output and what is added.
  ConvRoutine(std::string name, int64_t in_together, int64_t out_together)
      : in_together_(in_together), out_together_(out_together), name_(std::move(name)) {}

  std::string_view name() const final { return name_; }
  std::vector<std::string_view> roots() const final {
    std::vector<std::string_view> roots = ops();
    roots.insert(roots.end(), epilogue_ops().begin(), epilogue_ops().end());
    return roots;
  }

  std::vector<Workload> matches(const Node& root, const Graph::Users& users, const Graph& graph) const final {
    return match_epilogues(root, ops(), users, graph);
  }

  std::optional<std::string> rejects(const Workload& workload, const Target& target) const final {
    if (auto reason = cannot_hold(workload)) return reason;
    std::string why;
    const auto problem = read(workload, &why);
    if (!problem) return why;
    if (has_codes_product(workload)) return "its operands are codes";
    if (const char* reason = rejects_problem(*problem, target)) return reason;
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry& ops) const final {
    const ConvProblem problem = *read(workload);
    const DeviceModel model = model_of(target);
    const auto best = remember_schedules(str(name(), " ", key_of(model), " ", conv_key(problem)),
                                         [&] { return best_schedules(problem, model); });
    NEO_ASSERT(!best.empty(), name(), " has no schedule for ", workload.text());
    std::vector<Candidate> all;
    for (const Schedule& s : best) all.push_back(candidate(workload, target, ops, s));
    return all;
  }

  Candidate candidate(const Workload& workload, const Target& target, const OpRegistry&,
                      const Schedule& schedule) const final {
    const ConvProblem problem = *read(workload);
    Candidate c;
    c.inputs.resize(workload.inputs.size());
    const auto hold = [&](const Value* v, int64_t together) {
      Schema schema = device_schema(*v, target);
      if (together != 1) schema.layout = channels_layout(problem.rank(), together);
      c.inputs[static_cast<size_t>(workload.input_index(v))] = schema;
    };
    // An operand that is not packed comes at run time.
    for (const Value* v : {problem.weight, problem.bias}) {
      if (v && !v->constant) hold(v, 1);
    }
    if (problem.epilogue.residual) hold(problem.epilogue.residual, out_together_);
    hold(problem.x, in_together_);
    Schema result = device_schema(*problem.y, target);
    result.layout = channels_layout(problem.rank(), out_together_);
    c.outputs.push_back(result);
    c.schedule = schedule;
    c.cost.time_us = estimate_of(problem, schedule, model_of(target)).time_us;
    c.cost.error = error(problem, schedule);
    c.cost.packed_bytes = packed_bytes(packed_floats(problem, schedule), weight_storage(problem));
    c.cost.rounds = rounds();
    return c;
  }

 protected:
  virtual std::vector<std::string_view> ops() const { return {"Conv"}; }
  virtual const char* rejects_problem(const ConvProblem& problem, const Target& target) const = 0;
  // One, or one for every error that there is to choose from.
  virtual std::vector<Schedule> best_schedules(const ConvProblem& problem, const DeviceModel& model) const = 0;
  virtual Estimate estimate_of(const ConvProblem& problem, const Schedule& schedule,
                               const DeviceModel& model) const = 0;
  // Cost::error, and whether operands are rounded to fewer bits than float32 has.
  virtual double error(const ConvProblem&, const Schedule&) const { return 0; }
  virtual bool rounds() const { return false; }
  virtual int64_t packed_floats(const ConvProblem& problem, const Schedule& schedule) const = 0;
  virtual DType weight_storage(const ConvProblem& problem) const { return problem.x->dtype(); }

  static std::optional<ConvProblem> read(const Workload& workload, std::string* why = nullptr) {
    return read_conv(workload, why, false, storage_of(workload));
  }

  static ResultForm result_of(const ConvProblem& problem) {
    ResultForm r;
    const Epilogue& e = problem.epilogue;
    r.storage = problem.x->dtype();
    r.has_bias = problem.bias != nullptr;
    r.has_residual = e.residual != nullptr;
    r.lo = e.lo;
    r.hi = e.hi;
    r.has_clamp = r.lo > -std::numeric_limits<float>::infinity() || r.hi < std::numeric_limits<float>::infinity();
    if (e.activation) r.activation = find_activation_step(*e.activation);
    return r;
  }

  static Places places_of(const Candidate& candidate, const ConvProblem& problem) {
    Places p;
    p.x = argument_of(candidate, problem.x);
    p.weight = argument_of(candidate, problem.weight);
    p.bias = argument_of(candidate, problem.bias);
    p.residual = argument_of(candidate, problem.epilogue.residual);
    p.y = static_cast<int>(
        std::count_if(candidate.inputs.begin(), candidate.inputs.end(), [](const auto& s) { return s.has_value(); }));
    return p;
  }

  // The channels that a kernel works on together: of NHWC, a divisor that is as large as that of any block.
  static int block_of(int64_t together, int64_t channels) {
    if (together != kAllChannels) return static_cast<int>(together);
    int block = 16;
    while (channels % block != 0) block /= 2;
    return block;
  }

  // Padding lanes of a blocked layout are zero, and stay so.
  static const char* rejects_padding(const ConvProblem& problem, int64_t together) {
    if (together == kAllChannels || problem.geometry.oc % together == 0) return nullptr;
    const Epilogue& e = problem.epilogue;
    return keeps_zero(e) && e.lo <= 0 && e.hi >= 0 ? nullptr : "the activation does not keep padding lanes zero";
  }

  static DirectConv direct_conv_of(const ConvProblem& problem, int64_t in_together, int64_t out_together) {
    DirectConv conv;
    conv.geometry = problem.geometry;
    conv.in_block = block_of(in_together, problem.geometry.ic);
    conv.out_block = block_of(out_together, problem.geometry.oc);
    conv.in_last = in_together == kAllChannels;
    conv.out_last = out_together == kAllChannels;
    conv.result = result_of(problem);
    const Window& w = problem.geometry.window;
    const auto ones = [](const std::vector<int64_t>& v) {
      return std::all_of(v.begin(), v.end(), [](int64_t n) { return n == 1; });
    };
    const bool pads = std::any_of(w.pads.begin(), w.pads.end(), [](int64_t n) { return n != 0; });
    conv.flat = problem.geometry.taps() == 1 && ones(w.strides) && !pads;
    return conv;
  }

  const int64_t in_together_, out_together_;

 private:
  std::string name_;
};

class DirectRoutine final : public ConvRoutine {
 public:
  DirectRoutine(int64_t in, int64_t out)
      : ConvRoutine(str("gpu:float32/conv_direct_", channels_tag(in), in == out ? "" : str("_", channels_tag(out))), in,
                    out) {}

  Space space(const Workload& workload, const Target& target) const override {
    const ConvProblem problem = *read(workload);
    return direct_conv_space(conv_of(problem, model_of(target)), problem.y_hint());
  }

  std::unique_ptr<const Program> program(const Candidate& candidate, const Target&,
                                         PackedStore& packed) const override {
    const ConvProblem problem = *read(*candidate.workload);
    DirectConv conv = conv_of(problem);
    conv.places = places_of(candidate, problem);
    const DirectConvSchedule schedule = DirectConvSchedule::of(candidate.schedule);
    pack_stored(packed, conv.result.storage, direct_weight_size(conv, schedule), {problem.weight},
                [&](float* to) { pack_direct_weight(conv, schedule, ConstantFloats(problem.weight).data(), to); });
    if (problem.bias) {
      pack_stored(packed, conv.result.storage, direct_bias_size(conv, schedule), {problem.bias},
                  [&](float* to) { pack_direct_bias(conv, schedule, ConstantFloats(problem.bias).data(), to); });
    }
    return std::make_unique<DirectConvProgram>(std::move(conv), schedule);
  }

 protected:
  const char* rejects_problem(const ConvProblem& problem, const Target& target) const override {
    if (!model_of(target).likes_together(out_together_)) return "another block of channels suits the device";
    if (const char* why = reject_run_time_weights(problem)) return why;
    const ConvGeometry& g = problem.geometry;
    if (out_together_ != 1 && g.is_depthwise()) return "one input channel per group";
    if (out_together_ == kAllChannels && g.oc % kVector != 0) return "a vector does not divide the channels";
    // A block that is filled up for the most part is the plain layout's.
    const int64_t least = out_together_ == kAllChannels ? kVector : out_together_;
    if (in_together_ != 1 && g.ic / g.groups < least) return "fewer channels than a block";
    if (in_together_ != out_together_ && g.ic / g.groups >= least) return "enough channels for a block";
    if (const char* why = rejects_padding(problem, out_together_)) return why;
    return reject_direct(conv_of(problem));
  }

  std::vector<Schedule> best_schedules(const ConvProblem& problem, const DeviceModel& model) const override {
    return best_direct(conv_of(problem, model), problem.x_hint(), problem.y_hint(), model);
  }
  Estimate estimate_of(const ConvProblem& problem, const Schedule& schedule, const DeviceModel& model) const override {
    const DirectConvSchedule s = DirectConvSchedule::of(schedule);
    return estimate(direct_profile(conv_of(problem), s, problem.x_hint(), problem.y_hint()), model);
  }
  int64_t packed_floats(const ConvProblem& problem, const Schedule& schedule) const override {
    const DirectConv conv = conv_of(problem);
    const DirectConvSchedule s = DirectConvSchedule::of(schedule);
    return direct_weight_size(conv, s) + (problem.bias ? direct_bias_size(conv, s) : 0);
  }

 private:
  DirectConv conv_of(const ConvProblem& problem) const { return direct_conv_of(problem, in_together_, out_together_); }
  DirectConv conv_of(const ConvProblem& problem, const DeviceModel& model) const {
    DirectConv conv = conv_of(problem);
    conv.image_texels = is_half(conv.result.storage) ? 0 : model.image_texels;  // texels are float32
    conv.input_texels = most_floats(problem.x->shape(), conv.in_block) / kernel::kTexel.lanes;
    return conv;
  }
};

// Subgroups of kSize threads on NCHW[kSize]c, depthwise or not.
class SubgroupRoutine final : public ConvRoutine {
 public:
  explicit SubgroupRoutine(int size)
      : ConvRoutine(str("gpu:float32/conv_subgroup_", channels_tag(size)), size, size), size_(size) {}

  Space space(const Workload& workload, const Target&) const override {
    const ConvProblem problem = *read(workload);
    return subgroup_conv_space(conv_of(problem), problem.y_hint());
  }

  std::unique_ptr<const Program> program(const Candidate& candidate, const Target&,
                                         PackedStore& packed) const override {
    const ConvProblem problem = *read(*candidate.workload);
    DirectConv conv = conv_of(problem);
    conv.places = places_of(candidate, problem);
    const SubgroupConvSchedule schedule = SubgroupConvSchedule::of(candidate.schedule);
    pack_stored(packed, conv.result.storage, subgroup_weight_size(conv, schedule), {problem.weight},
                [&](float* to) { pack_subgroup_weight(conv, schedule, ConstantFloats(problem.weight).data(), to); });
    if (problem.bias) {
      pack_stored(packed, conv.result.storage, subgroup_bias_size(conv, schedule), {problem.bias},
                  [&](float* to) { pack_subgroup_bias(conv, schedule, ConstantFloats(problem.bias).data(), to); });
    }
    return std::make_unique<SubgroupConvProgram>(std::move(conv), schedule);
  }

 protected:
  const char* rejects_problem(const ConvProblem& problem, const Target& target) const override {
    const DeviceModel model = model_of(target);
    if (!model.reads_blocks(size_)) return "no subgroup of the device reads blocks of so many threads";
    if (!model.likes_together(size_)) return "another block of channels suits the device";
    if (const char* why = reject_run_time_weights(problem)) return why;
    const ConvGeometry& g = problem.geometry;
    if (!g.is_depthwise() && g.ic / g.groups < size_) return "fewer channels than a block";
    if (const char* why = rejects_padding(problem, size_)) return why;
    return reject_subgroup(conv_of(problem));
  }

  std::vector<Schedule> best_schedules(const ConvProblem& problem, const DeviceModel& model) const override {
    return best_subgroup(conv_of(problem), problem.x_hint(), problem.y_hint(), model);
  }
  Estimate estimate_of(const ConvProblem& problem, const Schedule& schedule, const DeviceModel& model) const override {
    const SubgroupConvSchedule s = SubgroupConvSchedule::of(schedule);
    return estimate(subgroup_profile(conv_of(problem), s, problem.x_hint(), problem.y_hint()), model);
  }
  int64_t packed_floats(const ConvProblem& problem, const Schedule& schedule) const override {
    const DirectConv conv = conv_of(problem);
    const SubgroupConvSchedule s = SubgroupConvSchedule::of(schedule);
    return subgroup_weight_size(conv, s) + (problem.bias ? subgroup_bias_size(conv, s) : 0);
  }

 private:
  DirectConv conv_of(const ConvProblem& problem) const { return direct_conv_of(problem, size_, size_); }

  const int size_;
};

class DepthwiseRoutine final : public ConvRoutine {
 public:
  explicit DepthwiseRoutine(int64_t together)
      : ConvRoutine(str("gpu:float32/conv_depthwise_", channels_tag(together)), together, together) {}

  Space space(const Workload& workload, const Target&) const override {
    const ConvProblem problem = *read(workload);
    return depthwise_space(conv_of(problem), problem.y_hint());
  }

  std::unique_ptr<const Program> program(const Candidate& candidate, const Target&,
                                         PackedStore& packed) const override {
    const ConvProblem problem = *read(*candidate.workload);
    DepthwiseConv conv = conv_of(problem);
    conv.places = places_of(candidate, problem);
    pack_stored(packed, conv.result.storage, depthwise_weight_size(conv), {problem.weight},
                [&](float* to) { pack_depthwise_weight(conv, ConstantFloats(problem.weight).data(), to); });
    if (problem.bias) {
      const int64_t channels = problem.geometry.oc, padded = conv.blocks() * conv.block;
      pack_stored(packed, conv.result.storage, padded, {problem.bias}, [&](float* to) {
        std::copy_n(ConstantFloats(problem.bias).data(), channels, to);
        std::fill_n(to + channels, padded - channels, 0.0f);
      });
    }
    return std::make_unique<DepthwiseProgram>(std::move(conv), DepthwiseSchedule::of(candidate.schedule));
  }

 protected:
  const char* rejects_problem(const ConvProblem& problem, const Target& target) const override {
    if (!model_of(target).likes_together(out_together_)) return "another block of channels suits the device";
    if (const char* why = reject_run_time_weights(problem)) return why;
    if (const char* why = rejects_padding(problem, out_together_)) return why;
    if (out_together_ == kAllChannels && problem.geometry.oc % kVector != 0)
      return "a vector does not divide the channels";
    return reject_depthwise(conv_of(problem));
  }

  std::vector<Schedule> best_schedules(const ConvProblem& problem, const DeviceModel& model) const override {
    return best_depthwise(conv_of(problem), problem.x_hint(), problem.y_hint(), model);
  }
  Estimate estimate_of(const ConvProblem& problem, const Schedule& schedule, const DeviceModel& model) const override {
    const DepthwiseSchedule s = DepthwiseSchedule::of(schedule);
    return estimate(depthwise_profile(conv_of(problem), s, problem.x_hint(), problem.y_hint()), model);
  }
  int64_t packed_floats(const ConvProblem& problem, const Schedule&) const override {
    const DepthwiseConv conv = conv_of(problem);
    return depthwise_weight_size(conv) + (problem.bias ? conv.blocks() * conv.block : 0);
  }

 private:
  DepthwiseConv conv_of(const ConvProblem& problem) const {
    DepthwiseConv conv;
    conv.geometry = problem.geometry;
    conv.block = block_of(out_together_, problem.geometry.oc);
    conv.last = out_together_ == kAllChannels;
    conv.result = result_of(problem);
    return conv;
  }
};

class WinogradRoutine final : public ConvRoutine {
 public:
  WinogradRoutine(int block, bool fused)
      : ConvRoutine(str("gpu:float32/conv_winograd_", fused ? "fused_" : "", channels_tag(block)), block, block),
        block_(block),
        fused_(fused) {}

  Space space(const Workload& workload, const Target&) const override {
    const ConvProblem problem = *read(workload);
    return winograd_space(conv_of(problem), problem.hint_shape(), fused_);
  }

  std::unique_ptr<const Program> program(const Candidate& candidate, const Target&,
                                         PackedStore& packed) const override {
    const ConvProblem problem = *read(*candidate.workload);
    WinogradConv conv = conv_of(problem);
    conv.places = places_of(candidate, problem);
    const WinogradSchedule schedule = WinogradSchedule::of(candidate.schedule);
    packed.floats(winograd_weight_size(conv, schedule), {problem.weight},
                  [&](float* to) { pack_winograd_weight(conv, schedule, ConstantFloats(problem.weight).data(), to); });
    if (problem.bias) {
      const int64_t channels = problem.geometry.oc, padded = winograd_bias_size(conv);
      pack_stored(packed, conv.result.storage, padded, {problem.bias}, [&](float* to) {
        std::copy_n(ConstantFloats(problem.bias).data(), channels, to);
        std::fill_n(to + channels, padded - channels, 0.0f);
      });
    }
    return std::make_unique<WinogradProgram>(std::move(conv), schedule);
  }

 protected:
  const char* rejects_problem(const ConvProblem& problem, const Target& target) const override {
    const DeviceModel model = model_of(target);
    if (!model.likes_together(block_)) return "another block of channels suits the device";
    if (fused_ && model.wave > 1) return "threads of the device step together";
    if (const char* why = reject_run_time_weights(problem)) return why;
    if (const char* why = reject_winograd_conv(conv_of(problem))) return why;
    if (std::min(problem.geometry.ic, problem.geometry.oc) < block_) return "fewer channels than a block";
    return rejects_padding(problem, block_);
  }

  std::vector<Schedule> best_schedules(const ConvProblem& problem, const DeviceModel& model) const override {
    return best_winograd(conv_of(problem), problem.hint_shape(), fused_, model);
  }
  Estimate estimate_of(const ConvProblem& problem, const Schedule& schedule, const DeviceModel& model) const override {
    return estimate_winograd(conv_of(problem), WinogradSchedule::of(schedule), problem.hint_shape(), model);
  }
  DType weight_storage(const ConvProblem&) const override { return DType::Float32; }
  double error(const ConvProblem& problem, const Schedule& schedule) const override {
    return winograd_error(problem.hint_shape(), value_of(schedule, "tile"));
  }
  int64_t packed_floats(const ConvProblem& problem, const Schedule& schedule) const override {
    const WinogradConv conv = conv_of(problem);
    return winograd_weight_size(conv, WinogradSchedule::of(schedule)) + (problem.bias ? winograd_bias_size(conv) : 0);
  }

 private:
  WinogradConv conv_of(const ConvProblem& problem) const {
    WinogradConv conv;
    conv.geometry = problem.geometry;
    conv.block = block_;
    conv.result = result_of(problem);
    return conv;
  }

  const int block_;
  const bool fused_;
};

// Whatever else there is, transposed convolutions among it; kByMatrices: of operands rounded to tf32.
class TiledRoutine final : public ConvRoutine {
 public:
  explicit TiledRoutine(bool by_matrices)
      : ConvRoutine(by_matrices ? "gpu:tf32/conv_tiled" : "gpu:float32/conv_tiled", 1, 1), by_matrices_(by_matrices) {}

  std::unique_ptr<const Program> program(const Candidate& candidate, const Target&,
                                         PackedStore& packed) const override {
    const ConvProblem problem = *read(*candidate.workload);
    for (const Value* v : {problem.weight, problem.bias}) {
      if (v && v->constant) packed.constant(*v);
    }
    TiledConv conv = conv_of(problem);
    conv.places = places_of(candidate, problem);
    return std::make_unique<TiledConvProgram>(std::move(conv), TiledConvSchedule::of(candidate.schedule));
  }

 protected:
  std::vector<std::string_view> ops() const override { return {"Conv", "ConvTranspose"}; }

  const char* rejects_problem(const ConvProblem& problem, const Target& target) const override {
    if (by_matrices_ && model_of(target).matrix_gflops == 0) return "the device multiplies no matrices";
    for (const int64_t stride : problem.geometry.window.strides) {
      if (stride > 4096) return "a stride beyond 4096";
    }
    return problem.geometry.taps() > 1 << 12 ? "more than 4096 taps" : nullptr;
  }

  std::vector<Schedule> best_schedules(const ConvProblem& problem, const DeviceModel& model) const override {
    return best_tiled(conv_of(problem), problem.x_hint(), problem.y_hint(), model);
  }
  Estimate estimate_of(const ConvProblem& problem, const Schedule& schedule, const DeviceModel& model) const override {
    const TiledConvSchedule s = TiledConvSchedule::of(schedule);
    return estimate(tiled_profile(conv_of(problem), s, problem.x_hint(), problem.y_hint()), model);
  }
  int64_t packed_floats(const ConvProblem& problem, const Schedule&) const override {
    int64_t count = 0;
    for (const Value* v : {problem.weight, problem.bias}) count += v && v->constant ? v->constant->size() : 0;
    return count;
  }
  double error(const ConvProblem& problem, const Schedule&) const override {
    const ConvGeometry& g = problem.geometry;
    return by_matrices_ ? tf32_error(static_cast<double>(g.ic / g.groups * g.taps())) : 0;
  }
  bool rounds() const override { return by_matrices_; }

 private:
  TiledConv conv_of(const ConvProblem& problem) const {
    return {problem.geometry, result_of(problem), {}, by_matrices_};
  }

  const bool by_matrices_;
};

}  // namespace
}  // namespace neo::gpu

namespace neo {

NEO_DEFINE_PROGRAM_ROUTINE(gpu_conv_direct_nchw, gpu::DirectRoutine, 1, 1)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_conv_direct_nchw4c, gpu::DirectRoutine, 4, 4)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_conv_direct_nchw8c, gpu::DirectRoutine, 8, 8)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_conv_direct_nchw16c, gpu::DirectRoutine, 16, 16)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_conv_direct_nhwc, gpu::DirectRoutine, gpu::kAllChannels, gpu::kAllChannels)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_conv_direct_first4c, gpu::DirectRoutine, 1, 4)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_conv_direct_first8c, gpu::DirectRoutine, 1, 8)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_conv_direct_first16c, gpu::DirectRoutine, 1, 16)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_conv_direct_first_nhwc, gpu::DirectRoutine, 1, gpu::kAllChannels)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_conv_depthwise_nchw, gpu::DepthwiseRoutine, 1)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_conv_depthwise_nchw4c, gpu::DepthwiseRoutine, 4)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_conv_depthwise_nchw8c, gpu::DepthwiseRoutine, 8)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_conv_depthwise_nchw16c, gpu::DepthwiseRoutine, 16)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_conv_depthwise_nhwc, gpu::DepthwiseRoutine, gpu::kAllChannels)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_conv_winograd_nchw4c, gpu::WinogradRoutine, 4, false)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_conv_winograd_nchw8c, gpu::WinogradRoutine, 8, false)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_conv_winograd_nchw16c, gpu::WinogradRoutine, 16, false)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_conv_winograd_fused_nchw8c, gpu::WinogradRoutine, 8, true)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_conv_winograd_fused_nchw16c, gpu::WinogradRoutine, 16, true)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_conv_subgroup_nchw8c, gpu::SubgroupRoutine, 8)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_conv_subgroup_nchw16c, gpu::SubgroupRoutine, 16)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_conv_tiled, gpu::TiledRoutine, false)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_conv_tiled_tf32, gpu::TiledRoutine, true)

}  // namespace neo
