#include "routines/gpu/conv/conv_estimate.h"

#include <cmath>
#include <map>

#include "base/int_math.h"
#include "routines/gpu/conv/subgroup_conv.h"
#include "routines/gpu/device_model.h"
#include "routines/gpu/search.h"

namespace neo::gpu {
namespace {

constexpr int kAddresses = 12;  // registers beside those that hold numbers

double float_elements(const Dims& dims) {
  double count = 1;
  for (const int64_t d : dims) count *= static_cast<double>(d);
  return count;
}

double plane_of(const Dims& dims) {
  double count = 1;
  for (size_t i = 2; i < dims.size(); ++i) count *= static_cast<double>(dims[i]);
  return count;
}

// Bytes of an operand's or a packed weight's element.
double item_of(const ResultForm& form) {
  return static_cast<double>(item_bytes(form.storage));
}

int stride_w(const ConvGeometry& g) {
  return static_cast<int>(g.window.strides.back());
}

// The part of the loads of neighbouring threads, which read so many bytes apart, that has a cache line of its
// own: every row of threads has one at least.
double own_lines(int threads_column, double bytes_apart) {
  constexpr double kLine = 64;
  return std::max(1.0 / threads_column, std::min(1.0, bytes_apart / kLine));
}

// Operations of the transforms of a tile on vectors, along both axes.
double transform_operations(const WinogradSizes& sizes, bool is_input) {
  const auto along = [&](const WinogradAxis& a) {
    if (a.kernel == 1) return 0.0;
    const auto pairs = static_cast<double>(a.pairs()), tile = static_cast<double>(a.tile);
    return is_input ? 2 * pairs * (pairs + 1) : pairs * (2 + tile) + 2;
  };
  const WinogradAxis& h = sizes.h;
  return along(h) * static_cast<double>(sizes.w.points()) +
         along(sizes.w) * static_cast<double>(is_input ? h.points() : h.tile);
}

// The profile of a thread that transforms one vector of one tile.
Profile transform_profile(const WinogradConv& conv, const WinogradSchedule& s, const WinogradSizes& sizes,
                          bool is_input) {
  const ConvShape& shape = sizes.shape;
  const auto points = static_cast<double>(sizes.points());
  const double pixels = static_cast<double>(sizes.h.tile * sizes.w.tile);
  const auto blocks = static_cast<double>(is_input ? conv.in_blocks() : conv.out_blocks());
  const double residuals = !is_input && conv.result.has_residual ? 1 : 0;
  Profile p;
  p.threads = s.threads;
  p.groups = static_cast<double>(shape.n * sizes.h.tiles) * blocks *
             parts(static_cast<double>(sizes.w.tiles * (conv.block / s.width)), s.threads);
  p.lanes = s.width;
  p.flops = 2 * s.width * transform_operations(sizes, is_input);
  p.loads = points + (is_input ? points : pixels * (1 + residuals));
  // Transformed values stay float32.
  const double item = item_of(conv.result);
  p.loaded_bytes = s.width * ((is_input ? item : 4) * points + item * pixels * residuals);
  p.other = 40 + (is_input ? points : 3 * pixels);
  p.registers = static_cast<int>(points) * s.width + kAddresses;
  const double image = blocks * conv.block * static_cast<double>(shape.n) *
                       static_cast<double>(is_input ? shape.ih * shape.iw : shape.oh * shape.ow);
  p.unique_bytes =
      4 * blocks * conv.block * points * static_cast<double>(sizes.tiles()) + item * image * (1 + residuals);
  return p;
}

Profile fused_profile(const WinogradConv& conv, const WinogradSchedule& s, const WinogradSizes& sizes) {
  constexpr double kPrivateBytes = 1 << 20;  // of a cache that no other thread uses
  constexpr double kSums = 8;                // that a thread works on at once to hide the latency of each
  const DirectConvSchedule& product = s.product;
  const auto points = static_cast<double>(sizes.points()), tiles = static_cast<double>(sizes.tiles());
  const auto block_tiles = static_cast<double>(s.block_tiles()), panel = static_cast<double>(s.panel());
  const auto in = static_cast<double>(conv.in_blocks()), out = static_cast<double>(conv.out_blocks());
  const double blocks = std::ceil(tiles / block_tiles), workers = std::min<double>(s.workers, blocks);
  const double panels = std::ceil(out * conv.block / panel), part_panels = parts(panels, s.parts);
  // The turns of the thread with the most blocks; its last block may be smaller.
  const double turns = std::ceil(blocks / workers);
  const double mine = std::min(turns * block_tiles, tiles - (turns - 1) * (workers - 1) * block_tiles);
  const double registers = parts(mine, product.columns);
  const Profile before = transform_profile(conv, s, sizes, true), after = transform_profile(conv, s, sizes, false);
  const double channels = in * conv.block, products = points * registers * part_panels * channels;
  const double vectors_in = mine * in, vectors_out = mine * std::min(part_panels * panel / conv.block, out);
  Profile p;
  p.groups = workers * std::ceil(panels / part_panels);
  p.lanes = std::min(product.lanes, conv.block);
  const double waits = std::max(1.0, kSums / (product.columns * product.vectors));
  p.flops = 2 * waits * products * product.columns * panel + before.flops * vectors_in + after.flops * vectors_out;
  // Values of the transforms beyond the registers are written and read again.
  p.loads = products * (product.vectors + static_cast<double>(product.columns) / product.load) +
            (before.loads + points) * vectors_in + (after.loads + points) * vectors_out;
  p.lane_reads = product.load > 1 ? products * product.columns : 0;
  p.loaded_bytes =
      4 * products * (panel + product.columns) + before.loaded_bytes * vectors_in + after.loaded_bytes * vectors_out;
  p.other = points * registers * part_panels * (product.columns * product.vectors * 4 + 20) + products / product.inner +
            before.other * vectors_in + after.other * vectors_out;
  p.written = product.columns * product.vectors * product.inner;
  p.registers = static_cast<int>(product.columns * panel + panel + product.columns * product.load) + kAddresses;
  const ConvShape& shape = sizes.shape;
  const double pixels_in = static_cast<double>(shape.n * shape.ih * shape.iw);
  const double pixels_out = static_cast<double>(shape.n * shape.oh * shape.ow) * (conv.result.has_residual ? 2 : 1);
  p.unique_bytes = item_of(conv.result) * conv.block * (in * pixels_in + out * pixels_out) +
                   4 * static_cast<double>(winograd_weight_size(conv, s));
  if (4 * points * block_tiles * (channels + panel) > kPrivateBytes) {
    p.unique_bytes += 4 * points * p.groups * (vectors_in * (1 + part_panels) + 2 * vectors_out) * conv.block;
  }
  return p;
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
  const double from_x = s.input_is_image() ? 0 : pixel_loads, from_w = s.weight_is_image() ? 0 : products * panel;
  p.loads = from_w / s.lanes + from_x / s.load;
  p.lane_reads = s.load > 1 ? products * pixels : 0;
  const double item = item_of(conv.result);
  p.loaded_bytes = item * (from_w + from_x);
  p.texels = (products * panel - from_w + pixel_loads - from_x) / kernel::kTexel.lanes;
  // Neighbours have other pixels, or other channels: then they read other weights.
  const double pixel = conv.in_last ? channels : conv.in_block;  // floats from one to the next
  const bool beside = s.threads_column > 1 && (s.order == 0 || s.threads_channel == 1);
  if (beside || (s.threads_row > 1 && s.threads_channel == 1)) {
    p.apart = from_x / s.load * own_lines(s.threads_column, item * s.columns * stride_w(g) * pixel);
  } else if (s.threads_channel > 1) {
    p.apart = from_w / s.lanes;
  }
  p.other = pixels * s.vectors * 4 + products / s.inner;
  if (s.unroll == 0) p.other += products / s.inner;
  p.written =
      pixels * s.vectors * s.inner * static_cast<int>((s.unroll >= 1 ? kernel_w : 1) * (s.unroll == 2 ? kernel_h : 1));
  p.registers = pixels * panel + panel + kAddresses;
  p.registers += static_cast<int>(s.reuse == 1 ? s.rows * span : pixels) * s.load;
  p.unique_bytes = item * (float_elements(x) + (conv.result.has_residual ? 2 : 1) * float_elements(y) +
                           static_cast<double>(direct_weight_size(conv, s)));
  return p;
}

Profile tiled_profile(const TiledConv& conv, const TiledConvSchedule& s, const Dims& x, const Dims& y) {
  const ConvGeometry& g = conv.geometry;
  const auto groups = static_cast<double>(g.groups);
  const double summed = static_cast<double>(g.ic) / groups * static_cast<double>(g.taps());
  const double steps = parts(summed, s.depth);
  Profile p = block_profile(tiled_block(conv, s), steps, tiled_local_size(conv, s));
  p.groups = static_cast<double>(y[0]) * groups * parts(plane_of(y), s.threads_pixel * s.pixels) *
             parts(static_cast<double>(g.oc) / groups, s.threads_channel * s.channels);
  const double x_loads = steps * static_cast<double>(parts(s.depth, s.threads_channel)) * s.pixels;
  const double w_loads = steps * static_cast<double>(parts(s.depth, s.threads_pixel)) * s.channels;
  p.loads += x_loads + w_loads;
  const double item = item_of(conv.result);
  p.loaded_bytes = item * (x_loads + w_loads);
  p.other += x_loads * 12 + w_loads * 6;
  p.registers += s.pixels * g.axes + 2 * kAddresses;
  p.unique_bytes = item * (float_elements(x) + (conv.result.has_residual ? 2 : 1) * float_elements(y) +
                           static_cast<double>(g.oc) * summed);
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
  const double item = item_of(conv.result);
  p.loaded_bytes = item * s.lanes * p.loads;
  const double pixel = static_cast<double>(conv.last ? g.oc : conv.block);  // floats from one to the next
  if (p.threads > 1) {
    p.apart = (loads + pixels) * own_lines(s.threads_column, item * s.columns * stride_w(g) * pixel);
  }
  p.other = pixels * 4 + 30;
  p.written = pixels * static_cast<int>(g.taps());
  p.registers = static_cast<int>(pixels + 1 + (s.reuse == 1 ? span : pixels)) * s.lanes + kAddresses;
  p.unique_bytes = item * (float_elements(x) + (conv.result.has_residual ? 2 : 1) * float_elements(y));
  return p;
}

std::vector<Schedule> best_direct(const DirectConv& conv, const Dims& x, const Dims& y, const DeviceModel& model) {
  // Images do not thin out the points that are tried: each is tried with and without.
  constexpr int kImages = 4;
  DirectConv plain = conv;
  plain.image_texels = 0;
  const Space space = direct_conv_space(plain, y);
  LeastEstimate least;
  each_point(space, [&](int64_t point) {
    DirectConvSchedule s = DirectConvSchedule::of(space.values(point));
    for (; s.image < (conv.image_texels > 0 ? kImages : 1); ++s.image) {
      if (reject_direct_schedule(conv, s) != nullptr || reject_direct_images(conv, s) != nullptr) continue;
      least.add(point * kImages + s.image, estimate(direct_profile(conv, s, x, y), model));
    }
  });
  if (!least.point()) return {};
  Schedule best = space.at(*least.point() / kImages);
  if (const int64_t image = *least.point() % kImages; image > 0) best["image"] = image;
  return {best};
}

std::vector<Schedule> best_tiled(const TiledConv& conv, const Dims& x, const Dims& y, const DeviceModel& model) {
  return search_by_estimate(tiled_conv_space(conv, y), model, [&](std::span<const int64_t> s) {
    return tiled_profile(conv, TiledConvSchedule::of(s), x, y);
  });
}

std::vector<Schedule> best_depthwise(const DepthwiseConv& conv, const Dims& x, const Dims& y,
                                     const DeviceModel& model) {
  return search_by_estimate(depthwise_space(conv, y), model, [&](std::span<const int64_t> s) {
    return depthwise_profile(conv, DepthwiseSchedule::of(s), x, y);
  });
}

std::vector<Schedule> best_subgroup(const DirectConv& conv, const Dims& x, const Dims& y, const DeviceModel& model) {
  return search_by_estimate(subgroup_conv_space(conv, y), model, [&](std::span<const int64_t> s) {
    return subgroup_profile(conv, SubgroupConvSchedule::of(s), x, y);
  });
}

Estimate estimate_winograd(const WinogradConv& conv, const WinogradSchedule& schedule, const ConvShape& shape,
                           const DeviceModel& model) {
  const WinogradSizes sizes(shape, schedule.tile);
  if (schedule.is_fused()) {
    // A thread that computes waits for a part of what it streams.
    constexpr double kExposed = 0.15;
    Profile p = fused_profile(conv, schedule, sizes);
    const double streamed_us = p.unique_bytes / (model.gbps * 1e3);
    p.unique_bytes = 0;
    Estimate e = estimate(p, model);
    e.time_us = std::max(e.time_us, streamed_us) + kExposed * std::min(e.time_us, streamed_us);
    return e;
  }
  const DirectConv product = winograd_product(conv, sizes.points());
  const Dims v = winograd_product_dims(conv.in_blocks() * conv.block, sizes);
  const Dims m = winograd_product_dims(conv.out_blocks() * conv.block, sizes);
  Estimate sum;
  for (const Profile& p :
       {transform_profile(conv, schedule, sizes, true), direct_profile(product, schedule.product, v, m),
        transform_profile(conv, schedule, sizes, false)}) {
    const Estimate e = estimate(p, model);
    sum.time_us += e.time_us;
    sum.occupancy = std::min(sum.occupancy, e.occupancy);
    if (e.reject) sum.reject = e.reject;
  }
  return sum;
}

std::vector<Schedule> best_winograd(const WinogradConv& conv, const ConvShape& shape, bool fused,
                                    const DeviceModel& model) {
  const Space space = winograd_space(conv, shape, fused);
  std::map<int64_t, LeastEstimate> by_tile;
  each_point(space, [&](int64_t point) {
    const WinogradSchedule schedule = WinogradSchedule::of(space.at(point));
    by_tile[schedule.tile].add(point, estimate_winograd(conv, schedule, shape, model));
  });
  std::vector<Schedule> all;
  for (const auto& [tile, least] : by_tile) {
    if (least.point()) all.push_back(space.at(*least.point()));
  }
  return all;
}

}  // namespace neo::gpu
