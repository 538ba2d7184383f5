#include "routines/gpu/conv/subgroup_conv.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/int_math.h"
#include "routines/gpu/conv/depthwise_conv.h"
#include "routines/gpu/schedule.h"

namespace neo::gpu {
namespace {

// Weights and bias are packed as those of a direct convolution with a vector for each block.
DirectConvSchedule packing_of(const DirectConv& conv, const SubgroupConvSchedule& s) {
  DirectConvSchedule packing;
  packing.lanes = conv.out_block;
  packing.vectors = s.vectors;
  return packing;
}

DepthwiseConv depthwise_of(const DirectConv& conv) {
  DepthwiseConv depthwise;
  depthwise.geometry = conv.geometry;
  depthwise.block = conv.out_block;
  return depthwise;
}

// Blocks of one group; a depthwise convolution counts as one group.
int64_t channel_blocks(const DirectConv& conv, int64_t channels_of_group) {
  const bool depthwise = conv.geometry.is_depthwise();
  return ceil_div(depthwise ? conv.geometry.oc : channels_of_group, static_cast<int64_t>(conv.out_block));
}

int64_t panels_of(const DirectConv& conv, const SubgroupConvSchedule& s) {
  return ceil_div(channel_blocks(conv, conv.out_channels()), static_cast<int64_t>(s.vectors));
}

int64_t groups_of(const DirectConv& conv) {
  return conv.geometry.is_depthwise() ? 1 : conv.geometry.groups;
}

// Pixels of an input row that are in registers at once.
int read_columns(const DirectConv& conv, const SubgroupConvSchedule& s) {
  const Window& w = conv.geometry.window;
  if (s.reuse == 0) return s.columns;
  return static_cast<int>((s.columns - 1) * w.strides.back() + (conv.geometry.kernel[2] - 1) * w.dilations.back()) + 1;
}

// As in its space.
constexpr Parameter<SubgroupConvSchedule> kSubgroupConvParameters[] = {
    {"vectors", &SubgroupConvSchedule::vectors}, {"columns", &SubgroupConvSchedule::columns},
    {"rows", &SubgroupConvSchedule::rows},       {"load", &SubgroupConvSchedule::load},
    {"reuse", &SubgroupConvSchedule::reuse},     {"unroll", &SubgroupConvSchedule::unroll},
    {"order", &SubgroupConvSchedule::order}};

}  // namespace

SubgroupConvSchedule SubgroupConvSchedule::of(const Schedule& schedule) {
  return read_schedule(kSubgroupConvParameters, schedule);
}

SubgroupConvSchedule SubgroupConvSchedule::of(std::span<const int64_t> values) {
  return read_point(kSubgroupConvParameters, values);
}

const char* reject_subgroup(const DirectConv& conv) {
  NEO_ASSERT(conv.in_block == conv.out_block && (conv.in_block == 8 || conv.in_block == 16 || conv.in_block == 32),
             "a subgroup has 8, 16 or 32 threads. Got ", conv.in_block);
  return conv.geometry.is_depthwise() ? reject_depthwise(depthwise_of(conv)) : reject_direct(conv);
}

const char* reject_subgroup_schedule(const DirectConv& conv, const SubgroupConvSchedule& s) {
  constexpr int kMaxProducts = 1536;  // written out
  const ConvGeometry& g = conv.geometry;
  const auto kernel_w = static_cast<int>(g.kernel[2]);
  const int pixels = s.rows * s.columns;
  if (s.load != 1 && s.load != 2 && s.load != 4 && s.load != 8) return "a block read has 1, 2, 4 or 8 elements";
  if (g.is_depthwise() && s.vectors > 1) return "a thread has one channel";
  if (!g.is_depthwise() && s.load % s.vectors != 0 && s.vectors % s.load != 0) return "a block read ends in a channel";
  if (s.reuse == 1 && (s.unroll == 0 || kernel_w == 1)) return "nothing is used again";
  if (s.unroll == 1 && kernel_w == 1) return "there is one tap in a row";
  const int products = pixels * s.vectors * (g.is_depthwise() ? 1 : conv.in_block) * (s.unroll == 1 ? kernel_w : 1);
  if (products > kMaxProducts || s.rows * read_columns(conv, s) > 256) return "too much is written out";
  if (pixels * s.vectors > 128) return "too many registers";
  if (conv.flat && s.rows > 1) return "there is one row";
  return nullptr;
}

Space subgroup_conv_space(const DirectConv& conv, const Dims& out) {
  const int64_t width = conv.flat ? out[out.size() - 1] * (out.size() > 3 ? out[2] : 1) : out.back();
  const int64_t height = conv.flat || out.size() < 4 ? 1 : out[2];
  std::vector<int64_t> columns, rows;
  for (const int64_t n : {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 28}) {
    if (n <= std::max<int64_t>(width, 1)) columns.push_back(n);
  }
  for (const int64_t n : {1, 2, 4}) {
    if (n <= std::max<int64_t>(height, 1)) rows.push_back(n);
  }
  std::vector<int64_t> vectors = {1};
  for (const int64_t n : {2, 4}) {
    if (!conv.geometry.is_depthwise() && n / 2 < channel_blocks(conv, conv.out_channels())) vectors.push_back(n);
  }
  const auto allows = [&](std::span<const int64_t> v) {
    const SubgroupConvSchedule s = SubgroupConvSchedule::of(v);
    return reject_subgroup_schedule(conv, s) == nullptr;
  };
  return Space({{"vectors", vectors},
                {"columns", columns},
                {"rows", rows},
                {"load", {1, 2, 4, 8}},
                {"reuse", {0, 1}},
                {"unroll", {0, 1}},
                {"order", {0, 1}}},
               allows);
}

int64_t subgroup_weight_size(const DirectConv& conv, const SubgroupConvSchedule& s) {
  if (conv.geometry.is_depthwise()) return depthwise_weight_size(depthwise_of(conv));
  return direct_weight_size(conv, packing_of(conv, s));
}

int64_t subgroup_bias_size(const DirectConv& conv, const SubgroupConvSchedule& s) {
  return groups_of(conv) * panels_of(conv, s) * s.vectors * conv.out_block;
}

void pack_subgroup_weight(const DirectConv& conv, const SubgroupConvSchedule& s, const float* from, float* to) {
  if (conv.geometry.is_depthwise()) return pack_depthwise_weight(depthwise_of(conv), from, to);
  pack_direct_weight(conv, packing_of(conv, s), from, to);
}

void pack_subgroup_bias(const DirectConv& conv, const SubgroupConvSchedule& s, const float* from, float* to) {
  const int64_t groups = groups_of(conv), channels = conv.geometry.oc / groups;
  const int64_t wide = subgroup_bias_size(conv, s) / groups;
  for (int64_t group = 0; group < groups; ++group) {
    std::copy_n(from + group * channels, channels, to + group * wide);
    std::fill_n(to + group * wide + channels, wide - channels, 0.0f);
  }
}

SubgroupConvProgram::SubgroupConvProgram(DirectConv conv, const SubgroupConvSchedule& schedule)
    : conv_(std::move(conv)), schedule_(schedule) {
  NEO_ASSERT(reject_subgroup(conv_) == nullptr, reject_subgroup(conv_));
  NEO_ASSERT(reject_subgroup_schedule(conv_, schedule_) == nullptr, reject_subgroup_schedule(conv_, schedule_));
  kernels_.push_back(kernel::with_storage(subgroup_conv_kernel(conv_, schedule_), conv_.result.storage));
}

Launches SubgroupConvProgram::launches(std::span<const Dims> shapes) const {
  const ConvShape s =
      conv_.geometry.shape(shapes[static_cast<size_t>(conv_.places.x)], shapes[static_cast<size_t>(conv_.places.y)]);
  Launches out;
  if (s.n * s.oh * s.ow == 0) return out;
  const int64_t out_h = conv_.flat ? 1 : s.oh, out_w = conv_.flat ? s.oh * s.ow : s.ow, groups = groups_of(conv_);
  KernelLaunch launch;
  launch.arguments = {s.n * groups,
                      groups,
                      channel_blocks(conv_, conv_.in_channels()),
                      channel_blocks(conv_, conv_.out_channels()),
                      conv_.flat ? int64_t{1} : s.ih,
                      conv_.flat ? s.ih * s.iw : s.iw,
                      out_h,
                      out_w,
                      s.pad_top,
                      s.pad_left,
                      panels_of(conv_, schedule_),
                      ceil_div(out_w, static_cast<int64_t>(schedule_.columns)),
                      ceil_div(out_h, static_cast<int64_t>(schedule_.rows)),
                      Operand{conv_.places.x},
                      Packed{0},
                      Operand{conv_.places.y}};
  append_result_arguments(conv_.result, Packed{1}, Operand{conv_.places.residual}, launch.arguments);
  out.launches.push_back(std::move(launch));
  return out;
}

Profile subgroup_profile(const DirectConv& conv, const SubgroupConvSchedule& s, const Dims& x, const Dims& y) {
  constexpr int kAddresses = 12;  // registers beside those that hold numbers
  const ConvGeometry& g = conv.geometry;
  const auto product = [](const Dims& dims, size_t from) {
    double count = 1;
    for (size_t i = from; i < dims.size(); ++i) count *= static_cast<double>(dims[i]);
    return count;
  };
  const auto parts = [](double whole, int part) { return std::ceil(whole / part); };
  const double height = conv.flat || y.size() < 4 ? 1 : static_cast<double>(y[2]);
  const double width = product(y, 2) / height;
  const int pixels = s.rows * s.columns;
  const auto kernel_w = static_cast<double>(g.kernel[2]), kernel_h = static_cast<double>(g.kernel[1]);
  const bool depthwise = g.is_depthwise();
  const double blocks = depthwise ? 1 : static_cast<double>(conv.in_blocks());
  const double products = blocks * (depthwise ? 1 : conv.in_block) * kernel_h * kernel_w;  // of a result
  Profile p;
  p.threads = p.subgroup = conv.out_block;
  p.groups = static_cast<double>(y[0] * groups_of(conv) * panels_of(conv, s)) * parts(width, s.columns) *
             parts(height, s.rows);
  p.flops = 2 * products * pixels * s.vectors;
  const int held = s.rows * read_columns(conv, s);  // pixels
  const double pixel_reads = blocks * kernel_h * held * (s.reuse == 1 ? 1 : kernel_w);
  const int wide = s.reuse == 1 || g.window.strides.back() == 1 ? s.load : 1;
  p.loads = products * s.vectors / (depthwise ? 1 : s.load) + pixel_reads / wide + pixels * s.vectors;
  const auto item = static_cast<double>(item_bytes(conv.result.storage));
  p.block_bytes = item * (products * s.vectors + pixel_reads + pixels * s.vectors);
  p.other = pixels * s.vectors * 4 + blocks * kernel_h * 4 + (s.unroll == 1 ? 0 : blocks * kernel_h * kernel_w * 2);
  p.written = pixels * s.vectors * (depthwise ? 1 : conv.in_block) * static_cast<int>(s.unroll == 1 ? kernel_w : 1);
  p.registers = pixels * s.vectors + held + std::max(s.load, s.vectors) + kAddresses;
  p.unique_bytes = item * (product(x, 0) + (conv.result.has_residual ? 2 : 1) * product(y, 0) +
                           static_cast<double>(subgroup_weight_size(conv, s)));
  return p;
}

}  // namespace neo::gpu
