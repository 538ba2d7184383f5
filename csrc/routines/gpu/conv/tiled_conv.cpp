#include "routines/gpu/conv/tiled_conv.h"

#include "base/check.h"
#include "base/int_math.h"
#include "routines/gpu/remember.h"
#include "routines/gpu/schedule.h"

namespace neo::gpu {
namespace {

using kernel::Array;
using kernel::Builder;
using kernel::Expr;
using kernel::kFloat;
using kernel::kInt;

constexpr int64_t kMaxTiledElements = kernel::kMaxBufferElements;
constexpr const char* kAxisNames[] = {"d", "h", "w"};

// Stride and dilation of the three axes.
struct AxisSteps {
  int64_t stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1};

  explicit AxisSteps(const ConvGeometry& g) {
    for (int axis = 0; axis < g.axes; ++axis) {
      stride[3 - g.axes + axis] = g.window.strides[static_cast<size_t>(axis)];
      dilation[3 - g.axes + axis] = g.window.dilations[static_cast<size_t>(axis)];
    }
  }
};

std::string kernel_name(const TiledConv& c, const TiledConvSchedule& s) {
  const ConvGeometry& g = c.geometry;
  const AxisSteps steps(g);
  std::string name = str(c.by_matrices ? "conv_tiled_tf32_" : "conv_tiled_", g.transposed ? "t" : "k");
  for (int axis = 0; axis < 3; ++axis) {
    name += str(axis == 0 ? "" : "_", g.kernel[axis], "x", steps.stride[axis], "x", steps.dilation[axis]);
  }
  return name + str("_", c.result.tag(), "_t", s.threads_pixel, "x", s.threads_channel, "p", s.pixels, "c", s.channels,
                    "d", s.depth, "u", s.unroll);
}

class TiledKernel {
 public:
  TiledKernel(const TiledConv& conv, const TiledConvSchedule& schedule)
      : g_(conv.geometry),
        steps_(conv.geometry),
        form_(conv.result),
        s_(schedule),
        block_(tiled_block(conv, schedule)),
        pixels_(block_, block_.all_columns(), false),
        channels_(block_, block_.all_rows(), false),
        b_(kernel_name(conv, schedule)) {}

  kernel::Kernel run() {
    declare();
    places_of_pixels();
    const Array tile_x = b_.shared("tile_x", DType::Float32, pixels_.size);
    const Array tile_w = b_.shared("tile_w", DType::Float32, channels_.size);
    product_.emplace(b_, block_, lx_, ly_);
    b_.loop("step", 0, ceildiv(summed_, s_.depth), [&](Expr step) {
      load_pixels(tile_x, step * s_.depth);
      load_weights(tile_w, step * s_.depth);
      b_.barrier();
      product_->add(tile_w, channels_, tile_x, pixels_);
      b_.barrier();
    });
    product_->each(
        [&](const Expr& row, const Expr& column, const Expr& sum) { store(channel_ + row, pixel_ + column, sum); });
    return b_.finish();
  }

 private:
  void declare() {
    const auto count = [&](const std::string& name) { return b_.size(name, 1, 1 << 24); };
    images_ = b_.size("images", 1, 1 << 20);  // batch x groups
    groups_ = b_.size("groups", 1, 1 << 20);
    ic_ = b_.size("ic", 1, 1 << 20);  // of a group
    oc_ = b_.size("oc", 1, 1 << 20);
    summed_ = b_.size("summed", 1, 1 << 26);  // products of an output
    for (int axis = 0; axis < 3; ++axis) in_[axis] = count(str("in_", kAxisNames[axis]));
    for (int axis = 0; axis < 3; ++axis) out_[axis] = count(str("out_", kAxisNames[axis]));
    for (int axis = 0; axis < 3; ++axis) pad_[axis] = b_.size(str("pad_", kAxisNames[axis]), -(1 << 16), 1 << 16);
    plane_ = count("plane");
    x_elements_ = b_.size("x_elements", 1, kMaxTiledElements);
    w_elements_ = b_.size("w_elements", 1, kMaxTiledElements);
    x_ = b_.input("x", DType::Float32, x_elements_);
    w_ = b_.input("w", DType::Float32, w_elements_);
    const Expr results = images_ * oc_ * plane_;
    y_ = b_.output("y", DType::Float32, results);
    result_.emplace(b_, form_, groups_ * oc_, results);
    pixel_ = b_.let("pixel", b_.group(0, "gx", ceildiv(plane_, block_.all_columns())) * block_.all_columns());
    channel_ = b_.let("channel", b_.group(1, "gy", ceildiv(oc_, block_.all_rows())) * block_.all_rows());
    image_ = b_.group(2, "gz", images_);
    lx_ = b_.local(0, "lx", s_.threads_pixel);
    ly_ = b_.local(1, "ly", s_.threads_channel);
    group_ = b_.let("group", image_ % groups_);
  }

  // Data, of which nothing is known but what guards tell.
  Expr data(const char* name, const Expr& value) {
    const Array held = b_.registers(name, kInt, 1);
    held[0] = value;
    return b_.let(name, held[0]);
  }

  // Sets the begins of the windows of the pixels that this thread loads; a pixel after the last has none.
  void places_of_pixels() {
    for (int axis = 0; axis < 3; ++axis) {
      if (used(axis)) begin_[axis] = b_.registers(str("begin_", kAxisNames[axis]), kInt, s_.pixels);
    }
    b_.unroll("j", s_.pixels, [&](Expr j) {
      const Expr at = min(pixel_ + lx_ + j * s_.threads_pixel, plane_ - 1);
      const Expr place[3] = {at / (out_[2] * out_[1]), at / out_[2] % out_[1], at % out_[2]};
      for (int axis = 0; axis < 3; ++axis) {
        if (!used(axis)) continue;
        const Expr by = g_.transposed ? Expr(1) : integer64(steps_.stride[axis]);
        const Expr shift = g_.transposed ? pad_[axis] : Expr(0) - pad_[axis];
        (*begin_[axis])[j] = place[axis] * by + shift;
      }
    });
  }

  static Expr integer64(int64_t value) { return Expr(value); }
  bool used(int axis) const { return axis >= 3 - g_.axes; }

  void load_pixels(const Array& tile, const Expr& first) {
    const int rounds = (s_.depth + s_.threads_channel - 1) / s_.threads_channel;
    const int64_t taps = g_.taps();
    b_.unroll("i", rounds, [&](Expr i) {
      const Expr d = i * s_.threads_channel + ly_;
      const Expr at = b_.let("at", first + d);
      const Expr tap = at % taps, channel = at / taps;
      const Expr taps_at[3] = {tap / (g_.kernel[1] * g_.kernel[2]), tap / g_.kernel[2] % g_.kernel[1],
                               tap % g_.kernel[2]};
      b_.unroll("j", s_.pixels, [&](Expr j) {
        Expr valid = at < summed_, index = image_ * ic_ + channel;
        for (int axis = 0; axis < 3; ++axis) {
          if (!used(axis)) continue;
          const Expr step = taps_at[axis] * integer64(steps_.dilation[axis]), begin = (*begin_[axis])[j];
          Expr place = data("place", g_.transposed ? begin - step : begin + step);
          if (g_.transposed && steps_.stride[axis] > 1) {
            valid = valid && place >= 0 && place % integer64(steps_.stride[axis]) == 0;
            place = place / integer64(steps_.stride[axis]);
          }
          valid = valid && place >= 0 && place < in_[axis];
          index = index * in_[axis] + place;
        }
        const Expr from = data("from", index);
        const Array value = b_.registers("value", kFloat, 1);
        value[0] = 0.0f;
        b_.when(valid && from >= 0 && from < x_elements_, [&] { value[0] = (*x_)[from]; });
        b_.when(d < s_.depth,
                [&] { tile[d * pixels_.depth_step + lx_ + j * s_.threads_pixel] = product_->operand(value[0]); });
      });
    });
  }

  void load_weights(const Array& tile, const Expr& first) {
    const int rounds = (s_.depth + s_.threads_pixel - 1) / s_.threads_pixel;
    const int64_t taps = g_.taps();
    b_.unroll("i", rounds, [&](Expr i) {
      const Expr d = i * s_.threads_pixel + lx_;
      const Expr at = b_.let("at", first + d);
      b_.unroll("j", s_.channels, [&](Expr j) {
        const Expr row = ly_ + j * s_.threads_channel, channel = channel_ + row;
        const Expr from =
            data("from", g_.transposed ? ((group_ * ic_ + at / taps) * oc_ + channel) * integer64(taps) + at % taps
                                       : (group_ * oc_ + channel) * summed_ + at);
        const Array value = b_.registers("value", kFloat, 1);
        value[0] = 0.0f;
        b_.when(at < summed_ && channel < oc_ && from >= 0 && from < w_elements_, [&] { value[0] = (*w_)[from]; });
        b_.when(d < s_.depth, [&] { tile[d * channels_.depth_step + row] = product_->operand(value[0]); });
      });
    });
  }

  void store(const Expr& channel, const Expr& pixel, const Expr& sum) {
    b_.when(channel < oc_ && pixel < plane_, [&] {
      const Expr at = (image_ * oc_ + channel) * plane_ + pixel;
      (*y_)[at] = result_->finish(sum + result_->bias(group_ * oc_ + channel, 1), at);
    });
  }

  const ConvGeometry& g_;
  AxisSteps steps_;
  const ResultForm& form_;
  const TiledConvSchedule& s_;
  BlockShape block_;
  BlockTile pixels_, channels_;
  Builder b_;
  Expr images_, groups_, ic_, oc_, summed_, in_[3], out_[3], pad_[3], plane_, x_elements_, w_elements_;
  Expr pixel_, channel_, image_, group_, lx_, ly_;
  std::optional<Array> x_, w_, y_, begin_[3];
  std::optional<ResultParameters> result_;
  std::optional<BlockProduct> product_;
};

// As in its space.
constexpr Parameter<TiledConvSchedule> kTiledConvParameters[] = {
    {"tp", &TiledConvSchedule::threads_pixel}, {"tc", &TiledConvSchedule::threads_channel},
    {"pixels", &TiledConvSchedule::pixels},    {"channels", &TiledConvSchedule::channels},
    {"depth", &TiledConvSchedule::depth},      {"unroll", &TiledConvSchedule::unroll}};

}  // namespace

TiledConvSchedule TiledConvSchedule::of(const Schedule& schedule) {
  return read_schedule(kTiledConvParameters, schedule);
}

TiledConvSchedule TiledConvSchedule::of(std::span<const int64_t> values) {
  return read_point(kTiledConvParameters, values);
}

BlockShape tiled_block(const TiledConv& c, const TiledConvSchedule& s) {
  return {c.by_matrices, s.threads_channel, s.threads_pixel, s.channels, s.pixels, s.depth, s.unroll == 1};
}

int64_t tiled_local_size(const TiledConv& conv, const TiledConvSchedule& s) {
  const BlockShape block = tiled_block(conv, s);
  return BlockTile(block, block.all_columns(), false).size + BlockTile(block, block.all_rows(), false).size;
}

const char* reject_tiled_schedule(const TiledConv& conv, const TiledConvSchedule& s) {
  return reject_block(tiled_block(conv, s), tiled_local_size(conv, s));
}

Space tiled_conv_space(const TiledConv& conv, const Dims& out) {
  int64_t plane = 1;
  for (size_t i = 2; i < out.size(); ++i) plane *= out[i];
  const int64_t channels = conv.geometry.oc / conv.geometry.groups;
  const int least = conv.by_matrices ? 16 : 1;
  const auto allows = [&](std::span<const int64_t> v) {
    const TiledConvSchedule s = TiledConvSchedule::of(v);
    if (reject_tiled_schedule(conv, s) != nullptr) return false;
    return (s.pixels == 1 || s.threads_pixel * s.pixels / 2 < plane) &&
           (s.channels == least || s.threads_channel * s.channels / 2 < channels);
  };
  if (conv.by_matrices) {
    return Space({{"tp", {kMatrixThreads}},
                  {"tc", {1, 2, 4, 8}},
                  {"pixels", {1, 2, 4}},
                  {"channels", {16, 32, 64}},
                  {"depth", {8, 16, 32}},
                  {"unroll", {0, 1}}},
                 allows);
  }
  return Space({{"tp", {8, 16, 32, 64}},
                {"tc", {2, 4, 8, 16}},
                {"pixels", {1, 2, 4, 8}},
                {"channels", {1, 2, 4, 8}},
                {"depth", {4, 8, 16, 32}},
                {"unroll", {0, 1}}},
               allows);
}

TiledConvProgram::TiledConvProgram(TiledConv conv, const TiledConvSchedule& schedule)
    : conv_(std::move(conv)), schedule_(schedule) {
  const char* why = reject_tiled_schedule(conv_, schedule_);
  NEO_ASSERT(why == nullptr, why);
  kernels_.push_back(kernel::with_storage(tiled_conv_kernel(conv_, schedule_), conv_.result.storage));
}

Launches TiledConvProgram::launches(std::span<const Dims> shapes) const {
  const ConvGeometry& g = conv_.geometry;
  const Im2colConvShape s =
      g.panel_shape(shapes[static_cast<size_t>(conv_.places.x)], shapes[static_cast<size_t>(conv_.places.y)]);
  Launches out;
  const int64_t plane = s.out[0] * s.out[1] * s.out[2], ic = s.ic / s.groups, oc = s.oc / s.groups;
  if (s.n * plane == 0) return out;
  KernelLaunch launch;
  std::vector<LaunchArgument>& all = launch.arguments;
  all = {s.n * s.groups, s.groups, ic, oc, ic * g.taps()};
  for (const auto& sizes : {s.in, s.out, s.pad}) {
    for (int axis = 0; axis < 3; ++axis) all.emplace_back(sizes[axis]);
  }
  const auto place = [](int operand, int packed) {
    return operand >= 0 ? LaunchArgument(Operand{operand}) : LaunchArgument(Packed{packed});
  };
  all.insert(all.end(), {plane, s.n * s.ic * s.in[0] * s.in[1] * s.in[2], s.oc * ic * g.taps(), Operand{conv_.places.x},
                         place(conv_.places.weight, 0), Operand{conv_.places.y}});
  append_result_arguments(conv_.result, place(conv_.places.bias, conv_.places.weight >= 0 ? 0 : 1),
                          Operand{conv_.places.residual}, all);
  out.launches.push_back(std::move(launch));
  return out;
}

kernel::Kernel tiled_conv_kernel(const TiledConv& conv, const TiledConvSchedule& schedule) {
  return remember_kernel(kernel_name(conv, schedule), [&] { return TiledKernel(conv, schedule).run(); });
}

}  // namespace neo::gpu
