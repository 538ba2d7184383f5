#include "routines/gpu/conv/direct_conv.h"

#include <algorithm>

#include "base/check.h"
#include "base/int_math.h"
#include "routines/gpu/schedule.h"

namespace neo::gpu {
namespace {

constexpr int kTexel = kernel::kTexel.lanes;

int64_t panels_of(const DirectConv& conv, const DirectConvSchedule& s) {
  return ceil_div(conv.out_blocks() * conv.out_block, static_cast<int64_t>(s.vectors) * s.lanes);
}

// As in its space.
constexpr Parameter<DirectConvSchedule> kDirectConvParameters[] = {
    {"lanes", &DirectConvSchedule::lanes},     {"vectors", &DirectConvSchedule::vectors},
    {"columns", &DirectConvSchedule::columns}, {"rows", &DirectConvSchedule::rows},
    {"inner", &DirectConvSchedule::inner},     {"load", &DirectConvSchedule::load},
    {"reuse", &DirectConvSchedule::reuse},     {"unroll", &DirectConvSchedule::unroll},
    {"order", &DirectConvSchedule::order},     {"tx", &DirectConvSchedule::threads_column},
    {"ty", &DirectConvSchedule::threads_row},  {"tz", &DirectConvSchedule::threads_channel},
    {"image", &DirectConvSchedule::image}};

}  // namespace

DirectConvSchedule DirectConvSchedule::of(const Schedule& schedule) {
  return read_schedule(kDirectConvParameters, schedule);
}

DirectConvSchedule DirectConvSchedule::of(std::span<const int64_t> values) {
  return read_point(kDirectConvParameters, values);
}

int64_t DirectConv::in_blocks() const {
  return ceil_div(in_channels(), static_cast<int64_t>(in_block));
}

int64_t DirectConv::out_blocks() const {
  return ceil_div(out_channels(), static_cast<int64_t>(out_block));
}

const char* reject_direct(const DirectConv& conv) {
  const ConvGeometry& g = conv.geometry;
  if (g.transposed) return "it is transposed";
  if (g.axes > 2) return "more than two spatial axes";
  for (int i = 0; i < g.axes; ++i) {
    const auto axis = static_cast<size_t>(i);
    if (g.window.strides[axis] > 16) return "a stride beyond 16";
    if (g.window.dilations[axis] * g.kernel[3 - g.axes + i] > 1 << 12) return "a window beyond 4096 pixels";
  }
  if (g.groups > 1 && (conv.in_last || conv.out_last)) return "the channels of a group do not lie together";
  if (conv.in_last && conv.in_channels() % conv.in_block != 0) return "a block is no divisor of the channels";
  if (conv.out_last && conv.out_channels() % conv.out_block != 0) return "a block is no divisor of the channels";
  if (g.groups > 1 && conv.in_channels() % conv.in_block != 0) return "a block of channels lies in two groups";
  if (g.groups > 1 && conv.out_channels() % conv.out_block != 0) return "a block of channels lies in two groups";
  return nullptr;
}

const char* reject_direct_schedule(const DirectConv& conv, const DirectConvSchedule& s) {
  constexpr int kMaxProducts = 1536;  // written out
  const ConvGeometry& g = conv.geometry;
  const auto kernel_w = static_cast<int>(g.kernel[2]), kernel_h = static_cast<int>(g.kernel[1]);
  if (conv.in_block % s.inner != 0 || s.inner % s.load != 0) return "a part does not divide the input's block";
  if (s.reuse == 1 && (s.unroll == 0 || kernel_w == 1)) return "nothing is used again";
  if (s.unroll == 2 && kernel_h == 1) return "there is one row of taps";
  if (s.unroll == 1 && kernel_w == 1) return "there is one tap in a row";
  const int taps = (s.unroll >= 1 ? kernel_w : 1) * (s.unroll == 2 ? kernel_h : 1);
  if (s.rows * s.columns * s.vectors * s.inner * taps > kMaxProducts) return "too much is written out";
  if (s.rows * s.columns * s.vectors * s.lanes > 1024) return "too many registers";
  if (s.threads_column * s.threads_row * s.threads_channel > 1024) return "too many threads";
  if (conv.flat && (s.rows > 1 || s.threads_row > 1)) return "there is one row";
  if (s.input_is_image() && (conv.in_block % kTexel != 0 || s.load != kTexel)) return "pixels are not read in texels";
  if (s.weight_is_image() && s.lanes % kTexel != 0) return "weights are not read in texels";
  return nullptr;
}

const char* reject_direct_images(const DirectConv& conv, const DirectConvSchedule& s) {
  if (s.image != 0 && conv.image_texels == 0) return "the device has no images";
  if (s.input_is_image() && conv.input_texels > conv.image_texels) return "the input has too many texels";
  if (s.weight_is_image() && direct_weight_size(conv, s) / kTexel > conv.image_texels) {
    return "the weights have too many texels";
  }
  return nullptr;
}

Space direct_conv_space(const DirectConv& conv, const Dims& out) {
  std::vector<int64_t> inner = {1}, load = {1};
  if (conv.in_block >= 4) {
    inner.push_back(4);
    load.push_back(4);
  }
  if (conv.in_block > 4) inner.push_back(conv.in_block);
  const int64_t width = conv.flat ? out[out.size() - 1] * (out.size() > 3 ? out[2] : 1) : out.back();
  const int64_t height = conv.flat || out.size() < 4 ? 1 : out[2];
  std::vector<int64_t> columns;
  for (const int64_t n : {1, 2, 3, 4, 5, 6, 7, 8, 10, 14, 16}) {
    if (n <= std::max<int64_t>(width, 1)) columns.push_back(n);
  }
  std::vector<int64_t> rows = {1};
  if (height >= 2) rows.push_back(2);
  const auto allows = [&](std::span<const int64_t> v) {
    const DirectConvSchedule s = DirectConvSchedule::of(v);
    if (reject_direct_schedule(conv, s) != nullptr || reject_direct_images(conv, s) != nullptr) return false;
    if (s.threads_column > 1 && (s.threads_column / 2) * s.columns >= width) return false;
    if (s.threads_row > 1 && (s.threads_row / 2) * s.rows >= height) return false;
    if (s.vectors > 1 && (s.vectors / 2) * s.lanes >= conv.out_channels()) return false;
    const int64_t registers = static_cast<int64_t>(s.rows) * s.columns * s.vectors * s.lanes;
    return registers >= 8 && registers <= 512 && s.threads_column * s.threads_row * s.threads_channel <= 256;
  };
  return Space({{"lanes", {4, 8, 16}},
                {"vectors", {1, 2, 3, 4}},
                {"columns", columns},
                {"rows", rows},
                {"inner", inner},
                {"load", load},
                {"reuse", {0, 1}},
                {"unroll", {0, 1, 2}},
                {"order", {0, 1}},
                {"tx", {1, 4, 16}},
                {"ty", {1, 4}},
                {"tz", {1, 4, 16}},
                {"image", conv.image_texels > 0 ? std::vector<int64_t>{0, 1, 2, 3} : std::vector<int64_t>{0}}},
               allows);
}

int64_t direct_weight_size(const DirectConv& conv, const DirectConvSchedule& s) {
  return conv.geometry.groups * panels_of(conv, s) * conv.in_blocks() * conv.geometry.taps() * conv.in_block *
         s.vectors * s.lanes;
}

int64_t direct_bias_size(const DirectConv& conv, const DirectConvSchedule& s) {
  return conv.geometry.groups * panels_of(conv, s) * s.vectors * s.lanes;
}

void pack_direct_weight(const DirectConv& conv, const DirectConvSchedule& s, const float* from, float* to) {
  const int64_t panels = panels_of(conv, s), wide = static_cast<int64_t>(s.vectors) * s.lanes;
  const int64_t ic = conv.in_channels(), oc = conv.out_channels(), taps = conv.geometry.taps();
  for (int64_t row = 0; row < conv.geometry.groups * panels; ++row) {
    const int64_t group = row / panels, panel = row % panels;
    for (int64_t block = 0; block < conv.in_blocks(); ++block) {
      for (int64_t tap = 0; tap < taps; ++tap) {
        for (int64_t i = 0; i < conv.in_block; ++i) {
          const int64_t channel = block * conv.in_block + i;
          for (int64_t lane = 0; lane < wide; ++lane) {
            const int64_t output = panel * wide + lane;
            const bool is_padding = channel >= ic || output >= oc;
            *to++ = is_padding ? 0.0f : from[((group * oc + output) * ic + channel) * taps + tap];
          }
        }
      }
    }
  }
}

void pack_direct_bias(const DirectConv& conv, const DirectConvSchedule& s, const float* from, float* to) {
  const int64_t wide = panels_of(conv, s) * s.vectors * s.lanes, oc = conv.out_channels();
  for (int64_t group = 0; group < conv.geometry.groups; ++group) {
    for (int64_t lane = 0; lane < wide; ++lane) *to++ = lane < oc ? from[group * oc + lane] : 0.0f;
  }
}

DirectConvProgram::DirectConvProgram(DirectConv conv, const DirectConvSchedule& schedule)
    : conv_(std::move(conv)), schedule_(schedule) {
  NEO_ASSERT(reject_direct(conv_) == nullptr, reject_direct(conv_));
  NEO_ASSERT(reject_direct_schedule(conv_, schedule_) == nullptr, reject_direct_schedule(conv_, schedule_));
  kernels_.push_back(kernel::with_storage(direct_conv_kernel(conv_, schedule_), conv_.result.storage));
}

Launches DirectConvProgram::launches(std::span<const Dims> shapes) const {
  const ConvShape s =
      conv_.geometry.shape(shapes[static_cast<size_t>(conv_.places.x)], shapes[static_cast<size_t>(conv_.places.y)]);
  Launches out;
  if (s.n * s.oh * s.ow != 0) out.launches.push_back(direct_launch(conv_, schedule_, shapes));
  return out;
}

KernelLaunch direct_launch(const DirectConv& conv, const DirectConvSchedule& schedule, std::span<const Dims> shapes) {
  const ConvShape s =
      conv.geometry.shape(shapes[static_cast<size_t>(conv.places.x)], shapes[static_cast<size_t>(conv.places.y)]);
  const bool flat = conv.flat;
  const int64_t out_h = flat ? 1 : s.oh, out_w = flat ? s.oh * s.ow : s.ow, panels = panels_of(conv, schedule);
  KernelLaunch launch;
  launch.arguments = {s.n * s.groups,
                      s.groups,
                      conv.in_blocks(),
                      conv.out_blocks(),
                      flat ? int64_t{1} : s.ih,
                      flat ? s.ih * s.iw : s.iw,
                      out_h,
                      out_w,
                      s.pad_top,
                      s.pad_left,
                      panels};
  if (conv.in_last) launch.arguments.emplace_back(s.n * s.ih * s.iw);
  if (conv.out_last) launch.arguments.emplace_back(s.n * s.oh * s.ow);
  const int64_t groups[] = {ceil_div(out_w, static_cast<int64_t>(schedule.columns) * schedule.threads_column),
                            ceil_div(out_h, static_cast<int64_t>(schedule.rows) * schedule.threads_row),
                            ceil_div(panels, static_cast<int64_t>(schedule.threads_channel))};
  for (const int64_t count : groups) launch.arguments.emplace_back(count);
  launch.arguments.emplace_back(Operand{conv.places.x});
  launch.arguments.emplace_back(Packed{0});
  launch.arguments.emplace_back(Operand{conv.places.y});
  append_result_arguments(conv.result, Packed{1}, Operand{conv.places.residual}, launch.arguments);
  return launch;
}

}  // namespace neo::gpu
