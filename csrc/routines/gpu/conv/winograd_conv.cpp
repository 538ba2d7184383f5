#include "routines/gpu/conv/winograd_conv.h"

#include <algorithm>
#include <map>

#include "base/check.h"
#include "base/int_math.h"
#include "routines/gpu/schedule.h"

namespace neo::gpu {
namespace {

WinogradSizes ones(const WinogradConv& conv, int64_t tile) {
  const Dims dims(static_cast<size_t>(conv.geometry.axes + 2), 1);
  return {conv.geometry.shape(dims, dims), tile};
}

int64_t panels_of(const WinogradConv& conv, const WinogradSchedule& schedule) {
  return ceil_div(conv.out_blocks() * conv.block, schedule.panel());
}

}  // namespace

int64_t WinogradConv::in_blocks() const {
  return ceil_div(geometry.ic, static_cast<int64_t>(block));
}

int64_t WinogradConv::out_blocks() const {
  return ceil_div(geometry.oc, static_cast<int64_t>(block));
}

WinogradSchedule WinogradSchedule::of(const Schedule& schedule) {
  WinogradSchedule s;
  s.product = DirectConvSchedule::of(schedule);
  read_value(schedule, "tile", s.tile);
  read_value(schedule, "width", s.width);
  read_value(schedule, "threads", s.threads);
  read_value(schedule, "steps", s.steps);
  read_value(schedule, "workers", s.workers);
  read_value(schedule, "parts", s.parts);
  return s;
}

WinogradSizes::WinogradSizes(const ConvShape& s, int64_t tile)
    : shape(s),
      h(winograd_axis(s.kh, s.stride_h, tile, s.oh, WinogradLast::Whole)),
      w(winograd_axis(s.kw, s.stride_w, tile, s.ow, WinogradLast::Whole)) {}

const char* reject_winograd_conv(const WinogradConv& conv) {
  if (conv.geometry.transposed) return "it is transposed";
  if (conv.geometry.axes > 2) return "more than two spatial axes";
  return reject_winograd(ones(conv, 2).shape);
}

const char* reject_winograd_schedule(const WinogradConv& conv, const WinogradSchedule& s) {
  const DirectConvSchedule& p = s.product;
  if (conv.block % s.width != 0) return "a vector does not divide the block of channels";
  if (!s.is_fused()) return reject_direct_schedule(winograd_product(conv, 1), p);
  if (conv.block % p.inner != 0 || p.inner % p.load != 0) return "a part does not divide the input's block";
  if (s.panel() % conv.block != 0) return "a block of channels lies in two panels";
  if (p.columns * p.vectors * p.inner > 1536) return "too much is written out";
  if (p.columns * p.vectors * p.lanes > 1024) return "too many registers";
  if (s.block_tiles() > 1 << 10 || s.workers > kWinogradMostWorkers) return "too many tiles or threads";
  return nullptr;
}

Space winograd_space(const WinogradConv& conv, const ConvShape& shape, bool fused) {
  const std::vector<int64_t> tiles = offered_winograd_tiles(shape, WinogradLast::Whole);
  const DirectConv product = winograd_product(conv, 1);
  std::map<int64_t, int64_t> counts;  // of tiles
  for (const int64_t tile : tiles) counts[tile] = WinogradSizes(shape, tile).tiles();
  std::vector<int64_t> widths, columns;
  for (const int64_t n : {16, 8, 4, 1}) {
    if (conv.block % n == 0) widths.push_back(n);
  }
  for (const int64_t n : {1, 2, 4, 5, 6, 7, 8, 10, 14}) {
    if (n <= std::max<int64_t>(counts.begin()->second, 1)) columns.push_back(n);
  }
  const auto is_block = [&](const WinogradSchedule& s) {
    const int64_t registers = s.product.columns * s.panel();
    return registers >= 8 && registers <= 512 && (s.product.vectors == 1 || s.panel() / 2 < conv.geometry.oc);
  };
  if (fused) {
    // Transforms are of whole blocks of channels: a thread is alone.
    return Space({{"tile", tiles},
                  {"width", {conv.block}},
                  {"lanes", {4, 8, 16}},
                  {"vectors", {1, 2, 3, 4}},
                  {"columns", columns},
                  {"inner", {1, 4}},
                  {"steps", {1, 2, 3, 4, 6, 8}},
                  {"workers", {1, 2, 4, 8, 16}},
                  {"parts", {1, 2, 4, 8}}},
                 [&](std::span<const int64_t> v) {
                   WinogradSchedule s;
                   s.tile = static_cast<int>(v[0]);
                   s.width = static_cast<int>(v[1]);
                   s.product.lanes = static_cast<int>(v[2]);
                   s.product.vectors = static_cast<int>(v[3]);
                   s.product.columns = static_cast<int>(v[4]);
                   s.product.inner = static_cast<int>(v[5]);
                   s.steps = static_cast<int>(v[6]);
                   s.workers = static_cast<int>(v[7]);
                   s.parts = static_cast<int>(v[8]);
                   if (!is_block(s) || reject_winograd_schedule(conv, s) != nullptr) return false;
                   const int64_t count = counts[v[0]], blocks = ceil_div(count, s.block_tiles());
                   if (s.steps > 1 && (s.steps - 1) * s.product.columns >= count) return false;
                   return s.workers < 2 * blocks && s.parts <= panels_of(conv, s);
                 });
  }
  return Space({{"tile", tiles},
                {"width", widths},
                {"lanes", {4, 8, 16}},
                {"vectors", {1, 2, 3, 4}},
                {"columns", columns},
                {"inner", {1, 4}},
                {"load", {1, 4}},
                {"order", {0, 1}},
                {"tx", {1, 4, 16}},
                {"tz", {1, 4, 16}},
                {"threads", {1, 16, 64}}},
               [&](std::span<const int64_t> v) {
                 WinogradSchedule s;
                 s.tile = static_cast<int>(v[0]);
                 s.width = static_cast<int>(v[1]);
                 s.product.lanes = static_cast<int>(v[2]);
                 s.product.vectors = static_cast<int>(v[3]);
                 s.product.columns = static_cast<int>(v[4]);
                 s.product.inner = static_cast<int>(v[5]);
                 s.product.load = static_cast<int>(v[6]);
                 s.product.order = static_cast<int>(v[7]);
                 s.product.threads_column = static_cast<int>(v[8]);
                 s.product.threads_channel = static_cast<int>(v[9]);
                 s.threads = static_cast<int>(v[10]);
                 const int threads = s.product.threads_column;
                 return is_block(s) && reject_direct_schedule(product, s.product) == nullptr &&
                        (threads == 1 || (threads / 2) * s.product.columns < counts[v[0]]) &&
                        threads * s.product.threads_channel <= 256;
               });
}

DirectConv winograd_product(const WinogradConv& conv, int64_t points) {
  DirectConv product;
  ConvGeometry& g = product.geometry;
  g.axes = 2;
  g.groups = points;
  g.ic = points * conv.in_blocks() * conv.block;
  g.oc = points * conv.out_blocks() * conv.block;
  g.window.strides = g.window.dilations = {1, 1};
  g.window.pads = {0, 0, 0, 0};
  product.in_block = product.out_block = conv.block;
  product.flat = true;
  return product;
}

Dims winograd_product_dims(int64_t channels, const WinogradSizes& sizes) {
  return {1, sizes.points() * channels, 1, sizes.tiles()};
}

int64_t winograd_weight_size(const WinogradConv& conv, const WinogradSchedule& s) {
  return direct_weight_size(winograd_product(conv, ones(conv, s.tile).points()), s.product);
}

void pack_winograd_weight(const WinogradConv& conv, const WinogradSchedule& s, const float* from, float* to) {
  const WinogradSizes sizes = ones(conv, s.tile);
  const int64_t kh = sizes.h.kernel, kw = sizes.w.kernel, points = sizes.points();
  const int64_t ic = conv.in_blocks() * conv.block, oc = conv.out_blocks() * conv.block;
  const std::vector<double> along_h = winograd_weight_transform(sizes.h);
  const std::vector<double> along_w = winograd_weight_transform(sizes.w);
  std::vector<float> whole(static_cast<size_t>(points * oc * ic), 0.0f);
  std::vector<double> half(static_cast<size_t>(kw));
  for (int64_t pair = 0; pair < conv.geometry.oc * conv.geometry.ic; ++pair, from += kh * kw) {
    float* at = whole.data() + pair / conv.geometry.ic * ic + pair % conv.geometry.ic;
    for (int64_t i = 0; i < sizes.h.points(); ++i) {
      for (int64_t x = 0; x < kw; ++x) {
        double& sum = half[static_cast<size_t>(x)] = 0;
        for (int64_t y = 0; y < kh; ++y) sum += along_h[static_cast<size_t>(i * kh + y)] * from[y * kw + x];
      }
      for (int64_t j = 0; j < sizes.w.points(); ++j, at += oc * ic) {
        double sum = 0;
        for (int64_t x = 0; x < kw; ++x) sum += along_w[static_cast<size_t>(j * kw + x)] * half[static_cast<size_t>(x)];
        *at = static_cast<float>(sum);
      }
    }
  }
  pack_direct_weight(winograd_product(conv, points), s.product, whole.data(), to);
}

int64_t winograd_bias_size(const WinogradConv& conv) {
  return conv.out_blocks() * conv.block;
}

WinogradProgram::WinogradProgram(WinogradConv conv, const WinogradSchedule& schedule)
    : conv_(std::move(conv)), schedule_(schedule) {
  NEO_ASSERT(reject_winograd_conv(conv_) == nullptr, reject_winograd_conv(conv_));
  NEO_ASSERT(reject_winograd_schedule(conv_, schedule_) == nullptr, reject_winograd_schedule(conv_, schedule_));
  // Transformed weights and values stay float32.
  const DType storage = conv_.result.storage;
  if (schedule_.is_fused()) {
    kernels_.push_back(kernel::with_storage(winograd_fused_kernel(conv_, schedule_), storage));
    return;
  }
  kernels_.push_back(kernel::with_storage(winograd_input_kernel(conv_, schedule_), storage));
  kernels_.push_back(
      direct_conv_kernel(winograd_product(conv_, ones(conv_, schedule_.tile).points()), schedule_.product));
  kernels_.push_back(kernel::with_storage(winograd_output_kernel(conv_, schedule_), storage));
}

Launches WinogradProgram::launches(std::span<const Dims> shapes) const {
  const ConvShape shape =
      conv_.geometry.shape(shapes[static_cast<size_t>(conv_.places.x)], shapes[static_cast<size_t>(conv_.places.y)]);
  if (shape.n * shape.oh * shape.ow == 0) return {};
  const WinogradSizes sizes(shape, schedule_.tile);
  return schedule_.is_fused() ? fused_launches(sizes) : separate_launches(sizes);
}

Launches WinogradProgram::separate_launches(const WinogradSizes& sizes) const {
  const ConvShape& s = sizes.shape;
  const int64_t in = conv_.in_blocks(), out = conv_.out_blocks();
  const int64_t groups =
      ceil_div(sizes.w.tiles * (conv_.block / schedule_.width), static_cast<int64_t>(schedule_.threads));
  DirectConv product = winograd_product(conv_, sizes.points());
  const Dims dims[] = {winograd_product_dims(in * conv_.block, sizes), winograd_product_dims(out * conv_.block, sizes)};
  Launches all;
  for (const Dims& d : dims) all.temporaries.push_back(d[1] * d[3] * 4);
  all.launches.push_back({0,
                          {s.n, sizes.h.tiles, sizes.w.tiles, groups, in, s.ih, s.iw, s.pad_top, s.pad_left,
                           Operand{conv_.places.x}, Temporary{0}}});
  KernelLaunch multiply = direct_launch(product, schedule_.product, dims);
  multiply.kernel = 1;
  for (LaunchArgument& a : multiply.arguments) {
    if (const auto* operand = std::get_if<Operand>(&a)) a = Temporary{operand->index};
  }
  all.launches.push_back(std::move(multiply));
  KernelLaunch last{
      2, {s.n, sizes.h.tiles, sizes.w.tiles, groups, out, s.oh, s.ow, Temporary{1}, Operand{conv_.places.y}}};
  append_result_arguments(conv_.result, Packed{1}, Operand{conv_.places.residual}, last.arguments);
  all.launches.push_back(std::move(last));
  return all;
}

Launches WinogradProgram::fused_launches(const WinogradSizes& sizes) const {
  const ConvShape& s = sizes.shape;
  const int64_t in = conv_.in_blocks(), out = conv_.out_blocks(), panels = panels_of(conv_, schedule_);
  const int64_t tiles = schedule_.block_tiles(), blocks = ceil_div(sizes.tiles(), tiles);
  const int64_t workers = std::min<int64_t>(schedule_.workers, blocks), turns = ceil_div(blocks, workers);
  const int64_t part_panels = ceil_div(panels, int64_t{schedule_.parts}), parts = ceil_div(panels, part_panels);
  const int64_t rows = workers * parts * sizes.points() * tiles;
  Launches all;
  all.temporaries = {rows * in * conv_.block * 4, rows * schedule_.panel() * 4};
  KernelLaunch launch{0,
                      {s.n,
                       sizes.h.tiles,
                       sizes.w.tiles,
                       in,
                       s.ih,
                       s.iw,
                       s.pad_top,
                       s.pad_left,
                       out,
                       s.oh,
                       s.ow,
                       sizes.h.tiles * sizes.w.tiles,
                       sizes.tiles(),
                       turns,
                       workers,
                       parts,
                       panels,
                       part_panels,
                       Operand{conv_.places.x},
                       Packed{0},
                       Temporary{0},
                       Temporary{1},
                       Operand{conv_.places.y}}};
  append_result_arguments(conv_.result, Packed{1}, Operand{conv_.places.residual}, launch.arguments);
  all.launches.push_back(std::move(launch));
  return all;
}

}  // namespace neo::gpu
