#include "routines/gpu/conv/conv_estimate.h"

#include <cmath>

#include "routines/cpu/gemm/split.h"
#include "routines/gpu/conv/subgroup_conv.h"
#include "routines/gpu/search.h"

namespace neo::gpu {
namespace {

constexpr int kAddresses = 12;  // registers beside those that hold numbers

double elements_of(const Dims& dims) {
  double count = 1;
  for (const int64_t d : dims) count *= static_cast<double>(d);
  return count;
}

double parts(double whole, int64_t part) {
  return std::ceil(whole / static_cast<double>(part));
}

double plane_of(const Dims& dims) {
  double count = 1;
  for (size_t i = 2; i < dims.size(); ++i) count *= static_cast<double>(dims[i]);
  return count;
}

int stride_w(const ConvGeometry& g) {
  return static_cast<int>(g.window.strides.back());
}

// Of the loads of so many threads beside each other, which read so many bytes apart, the part that has a line of its
// own: every row of threads has one at least.
double own_lines(int threads_column, double bytes_apart) {
  constexpr double kLine = 64;
  return std::max(1.0 / threads_column, std::min(1.0, bytes_apart / kLine));
}

}  // namespace

Profile direct_profile(const DirectConv& conv, const DirectConvSchedule& s, const Dims& x, const Dims& y) {
  const ConvGeometry& g = conv.geometry;
  const double height = conv.flat || y.size() < 4 ? 1 : static_cast<double>(y[2]);
  const double width = plane_of(y) / height;
  const int pixels = s.rows * s.columns, panel = s.vectors * s.lanes;
  const double channels = static_cast<double>(conv.in_blocks() * conv.in_block);
  const auto kernel_w = static_cast<double>(g.kernel[2]), kernel_h = static_cast<double>(g.kernel[1]);
  const double panels = parts(static_cast<double>(conv.out_blocks() * conv.out_block), panel);
  Profile p;
  p.threads = s.threads_column * s.threads_row * s.threads_channel;
  p.groups = static_cast<double>(y[0] * g.groups) * parts(parts(width, s.columns), s.threads_column) *
             parts(parts(height, s.rows), s.threads_row) * parts(panels, s.threads_channel);
  p.lanes = s.lanes;
  const double products = channels * kernel_h * kernel_w;
  p.flops = 2 * products * pixels * panel;
  const double span = (s.columns - 1) * stride_w(g) + kernel_w;
  const double pixel_loads = s.reuse == 1 ? channels * kernel_h * s.rows * span : products * pixels;
  p.loads = products * s.vectors + pixel_loads / s.load;
  p.lane_reads = s.load > 1 ? products * pixels : 0;
  p.loaded_bytes = 4 * (products * panel + pixel_loads);
  // Neighbours have other pixels, or other channels: then they read other weights.
  const bool beside = s.threads_column > 1 && (s.order == 0 || s.threads_channel == 1);
  if (beside || (s.threads_row > 1 && s.threads_channel == 1)) {
    p.apart = pixel_loads / s.load * own_lines(s.threads_column, 4.0 * s.columns * stride_w(g) * conv.in_block);
  } else if (s.threads_channel > 1) {
    p.apart = products * s.vectors;
  }
  p.other = pixels * s.vectors * 4 + products / s.inner;
  if (s.unroll == 0) p.other += products / s.inner;
  p.written =
      pixels * s.vectors * s.inner * static_cast<int>((s.unroll >= 1 ? kernel_w : 1) * (s.unroll == 2 ? kernel_h : 1));
  p.registers = pixels * panel + panel + kAddresses;
  p.registers += static_cast<int>(s.reuse == 1 ? s.rows * span : pixels) * s.load;
  p.unique_bytes = 4 * (elements_of(x) + (conv.result.has_residual ? 2 : 1) * elements_of(y)) +
                   4 * static_cast<double>(direct_weight_size(conv, s));
  return p;
}

Profile tiled_profile(const TiledConv& conv, const TiledConvSchedule& s, const Dims& x, const Dims& y) {
  const ConvGeometry& g = conv.geometry;
  const auto groups = static_cast<double>(g.groups);
  const double summed = static_cast<double>(g.ic) / groups * static_cast<double>(g.taps());
  const double steps = parts(summed, s.depth);
  Profile p;
  p.threads = s.threads_pixel * s.threads_channel;
  p.groups = static_cast<double>(y[0]) * groups * parts(plane_of(y), s.threads_pixel * s.pixels) *
             parts(static_cast<double>(g.oc) / groups, s.threads_channel * s.channels);
  (conv.by_matrices ? p.matrix_flops : p.flops) = 2 * steps * s.depth * s.pixels * s.channels;
  const double x_loads = steps * static_cast<double>(parts(s.depth, s.threads_channel)) * s.pixels;
  const double w_loads = steps * static_cast<double>(parts(s.depth, s.threads_pixel)) * s.channels;
  // Of a matrix a thread holds the 32nd part.
  const double local_loads = steps * s.depth * (s.pixels + (conv.by_matrices ? s.channels / 32.0 : s.channels));
  p.loads = x_loads + w_loads + local_loads;
  p.loaded_bytes = 4 * (x_loads + w_loads);
  p.local_loaded_bytes = 4 * local_loads;
  const int at_once = conv.by_matrices ? 8 : 1;  // products of a result
  p.other = x_loads * 12 + w_loads * 6 + (s.unroll == 1 ? 0 : steps * s.depth / at_once);
  p.barriers = 2 * steps;
  p.written = s.pixels * s.channels * (s.unroll == 1 ? s.depth : at_once) / (conv.by_matrices ? 32 : 1);
  p.registers = s.pixels * s.channels + s.pixels * (1 + g.axes) + 2 * kAddresses;
  p.registers += conv.by_matrices ? s.channels / 4 + s.pixels * 8 : s.channels;
  p.local_bytes = 4 * tiled_local_size(conv, s);
  p.unique_bytes = 4 * (elements_of(x) + (conv.result.has_residual ? 2 : 1) * elements_of(y)) +
                   4 * static_cast<double>(g.oc) * summed;
  return p;
}

Profile depthwise_profile(const DepthwiseConv& conv, const DepthwiseSchedule& s, const Dims& x, const Dims& y) {
  const ConvGeometry& g = conv.geometry;
  const double height = y.size() < 4 ? 1 : static_cast<double>(y[2]), width = static_cast<double>(y.back());
  const int pixels = s.rows * s.columns;
  const auto taps = static_cast<double>(g.taps()), kernel_h = static_cast<double>(g.kernel[1]);
  const double span = (s.columns - 1) * stride_w(g) + static_cast<double>(g.kernel[2]);
  Profile p;
  p.threads = s.threads_column * s.threads_row;
  p.groups = static_cast<double>(y[0] * conv.blocks() * conv.block / s.lanes) *
             parts(parts(width, s.columns), s.threads_column) * parts(parts(height, s.rows), s.threads_row);
  p.lanes = s.lanes;
  p.flops = 2 * taps * pixels * s.lanes;
  const double loads = s.reuse == 1 ? kernel_h * s.rows * span : taps * pixels;
  p.loads = loads + taps + pixels;
  p.loaded_bytes = 4 * s.lanes * p.loads;
  if (p.threads > 1)
    p.apart = (loads + pixels) * own_lines(s.threads_column, 4.0 * s.columns * stride_w(g) * conv.block);
  p.other = pixels * 4 + 30;
  p.written = pixels * static_cast<int>(g.taps());
  p.registers = static_cast<int>(pixels + 1 + (s.reuse == 1 ? span : pixels)) * s.lanes + kAddresses;
  p.unique_bytes = 4 * (elements_of(x) + (conv.result.has_residual ? 2 : 1) * elements_of(y));
  return p;
}

std::optional<Schedule> best_direct(const DirectConv& conv, const Dims& x, const Dims& y, const DeviceModel& model) {
  return search_by_estimate(direct_conv_space(conv, y), model, [&](std::span<const int64_t> s) {
    return direct_profile(conv, DirectConvSchedule::of(s), x, y);
  });
}

std::optional<Schedule> best_tiled(const TiledConv& conv, const Dims& x, const Dims& y, const DeviceModel& model) {
  return search_by_estimate(tiled_conv_space(conv, y), model, [&](std::span<const int64_t> s) {
    return tiled_profile(conv, TiledConvSchedule::of(s), x, y);
  });
}

std::optional<Schedule> best_depthwise(const DepthwiseConv& conv, const Dims& x, const Dims& y,
                                       const DeviceModel& model) {
  return search_by_estimate(depthwise_space(conv, y), model, [&](std::span<const int64_t> s) {
    return depthwise_profile(conv, DepthwiseSchedule::of(s), x, y);
  });
}

std::optional<Schedule> best_subgroup(const DirectConv& conv, const Dims& x, const Dims& y, const DeviceModel& model) {
  return search_by_estimate(subgroup_conv_space(conv, y), model, [&](std::span<const int64_t> s) {
    return subgroup_profile(conv, SubgroupConvSchedule::of(s), x, y);
  });
}

}  // namespace neo::gpu
