#include "routines/gpu/conv/tiled_conv.h"

#include "base/check.h"
#include "routines/cpu/gemm/split.h"
#include "routines/gpu/remember.h"
#include "routines/gpu/schedule.h"

namespace neo::gpu {
namespace {

using kernel::Array;
using kernel::Builder;
using kernel::Expr;
using kernel::kFloat;
using kernel::kInt;
using kernel::make;
using kernel::Op;

constexpr int kMatrixThreads = 32;  // of a subgroup

constexpr int64_t kMostElements = kernel::kMostBufferElements;
constexpr const char* kAxisNames[] = {"d", "h", "w"};

// Stride and dilation of the three axes.
struct Steps {
  int64_t stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1};

  explicit Steps(const ConvGeometry& g) {
    for (int axis = 0; axis < g.axes; ++axis) {
      stride[3 - g.axes + axis] = g.window.strides[static_cast<size_t>(axis)];
      dilation[3 - g.axes + axis] = g.window.dilations[static_cast<size_t>(axis)];
    }
  }
};

std::string kernel_name(const TiledConv& c, const TiledConvSchedule& s) {
  const ConvGeometry& g = c.geometry;
  const Steps steps(g);
  std::string name = str(c.by_matrices ? "conv_tiled_tf32_" : "conv_tiled_", g.transposed ? "t" : "k");
  for (int axis = 0; axis < 3; ++axis) {
    name += str(axis == 0 ? "" : "_", g.kernel[axis], "x", steps.stride[axis], "x", steps.dilation[axis]);
  }
  return name + str("_", c.result.tag(), "_t", s.threads_pixel, "x", s.threads_channel, "p", s.pixels, "c", s.channels,
                    "d", s.depth, "u", s.unroll);
}

// Columns and rows of a group's block, and from one line of a tile to the next: matrices are read without two threads
// at one bank of the local memory.
struct Tile {
  int columns, rows, column_step, row_step;

  Tile(const TiledConv& conv, const TiledConvSchedule& s)
      : columns(s.threads_pixel * s.pixels), rows(s.threads_channel * s.channels) {
    constexpr int kApart = 8;
    column_step = columns + (conv.by_matrices ? kApart : 0);
    row_step = rows + (conv.by_matrices ? kApart : 0);
  }
};

class TiledKernel {
 public:
  TiledKernel(const TiledConv& conv, const TiledConvSchedule& schedule)
      : by_matrices_(conv.by_matrices),
        g_(conv.geometry),
        steps_(conv.geometry),
        form_(conv.result),
        s_(schedule),
        tile_(conv, schedule),
        b_(kernel_name(conv, schedule)) {}

  kernel::Kernel run() {
    declare();
    places_of_pixels();
    const Array tile_x = b_.shared("tile_x", DType::Float32, s_.depth * tile_.column_step);
    const Array tile_w = b_.shared("tile_w", DType::Float32, s_.depth * tile_.row_step);
    const int lanes = by_matrices_ ? 4 : 1, count = s_.channels * s_.pixels / lanes;
    const Array sums = b_.registers("sum", kFloat.with_lanes(lanes), count);
    b_.unroll("i", count, [&](Expr i) { sums[i] = 0.0f; });
    b_.loop("step", 0, ceildiv(summed_, s_.depth), [&](Expr step) {
      load_pixels(tile_x, step * s_.depth);
      load_weights(tile_w, step * s_.depth);
      b_.barrier();
      const auto over_depth = [&](int steps, const std::function<void(Expr)>& products) {
        s_.unroll == 1 ? b_.unroll("d", steps, products) : b_.loop("d", 0, steps, products);
      };
      if (by_matrices_) {
        over_depth(s_.depth / 8, [&](Expr d) { multiply_matrices(tile_x, tile_w, sums, d * 8); });
        return b_.barrier();
      }
      over_depth(s_.depth, [&](const Expr& d) {
        const Array left = b_.registers("left", kFloat, s_.channels), right = b_.registers("right", kFloat, s_.pixels);
        b_.unroll("i", s_.channels,
                  [&](Expr i) { left[i] = tile_w[d * tile_.row_step + ly_ + i * s_.threads_channel]; });
        b_.unroll("j", s_.pixels,
                  [&](Expr j) { right[j] = tile_x[d * tile_.column_step + lx_ + j * s_.threads_pixel]; });
        b_.unroll("i", s_.channels, [&](Expr i) {
          b_.unroll("j", s_.pixels,
                    [&](Expr j) { sums[i * s_.pixels + j] = fma(left[i], right[j], sums[i * s_.pixels + j]); });
        });
      });
      b_.barrier();
    });
    by_matrices_ ? store_matrices(sums) : store(sums);
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
    x_elements_ = b_.size("x_elements", 1, kMostElements);
    w_elements_ = b_.size("w_elements", 1, kMostElements);
    x_ = b_.input("x", DType::Float32, x_elements_);
    w_ = b_.input("w", DType::Float32, w_elements_);
    const Expr results = images_ * oc_ * plane_;
    y_ = b_.output("y", DType::Float32, results);
    result_.emplace(b_, form_, groups_ * oc_, results);
    pixel_ = b_.let("pixel", b_.group(0, "gx", ceildiv(plane_, tile_.columns)) * tile_.columns);
    channel_ = b_.let("channel", b_.group(1, "gy", ceildiv(oc_, tile_.rows)) * tile_.rows);
    image_ = b_.group(2, "gz", images_);
    lx_ = b_.local(0, "lx", s_.threads_pixel);
    ly_ = b_.local(1, "ly", s_.threads_channel);
    group_ = b_.let("group", image_ % groups_);
    if (!by_matrices_) return;
    b_.subgroups(kMatrixThreads);
    eighth_ = b_.let("eighth", lx_ / 4);
    quarter_ = b_.let("quarter", lx_ % 4);
  }

  // Data, of which nothing is known but what guards tell.
  Expr data(const char* name, const Expr& value) {
    const Array held = b_.registers(name, kInt, 1);
    held[0] = value;
    return b_.let(name, held[0]);
  }

  // Where the windows of the pixels that this thread loads begin; a pixel after the last has none.
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
        b_.when(d < s_.depth, [&] { tile[d * tile_.column_step + lx_ + j * s_.threads_pixel] = operand(value[0]); });
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
        b_.when(d < s_.depth, [&] { tile[d * tile_.row_step + row] = operand(value[0]); });
      });
    });
  }

  Expr operand(const Expr& value) const { return by_matrices_ ? make(Op::ToTf32, {value}) : value; }

  // Eight products of every result of the subgroup, from `d` on: see kernel::MatrixMultiply.
  void multiply_matrices(const Array& tile_x, const Array& tile_w, const Array& sums, const Expr& d) {
    const int rows = s_.channels / 16, columns = tile_.columns / 8;  // matrices
    const Array a = b_.registers("a", kFloat.with_lanes(4), rows), b = b_.registers("b", kFloat.with_lanes(2), columns);
    b_.unroll("m", rows, [&](Expr m) {
      const auto at = [&](int row, int k) {
        return Expr(tile_w[(d + quarter_ + k) * tile_.row_step + ly_ * s_.channels + m * 16 + eighth_ + row]);
      };
      a[m] = kernel::vector({at(0, 0), at(8, 0), at(0, 4), at(8, 4)});
    });
    b_.unroll("n", columns, [&](Expr n) {
      const auto at = [&](int k) { return Expr(tile_x[(d + quarter_ + k) * tile_.column_step + n * 8 + eighth_]); };
      b[n] = kernel::vector({at(0), at(4)});
    });
    b_.unroll("m", rows, [&](Expr m) {
      b_.unroll("n", columns, [&](Expr n) {
        const Expr at = m * columns + n;
        sums[at] = b_.multiply_matrices(a[m], b[n], sums[at]);
      });
    });
  }

  void store_matrices(const Array& sums) {
    const int columns = tile_.columns / 8;
    b_.unroll("m", s_.channels / 16, [&](Expr m) {
      b_.unroll("n", columns, [&](Expr n) {
        for (int lane = 0; lane < 4; ++lane) {
          const Expr channel = channel_ + ly_ * s_.channels + m * 16 + eighth_ + lane / 2 * 8;
          store(channel, pixel_ + n * 8 + quarter_ * 2 + lane % 2, kernel::lane(sums[m * columns + n], lane));
        }
      });
    });
  }

  void store(const Array& sums) {
    b_.unroll("i", s_.channels, [&](Expr i) {
      b_.unroll("j", s_.pixels, [&](Expr j) {
        store(channel_ + ly_ + i * s_.threads_channel, pixel_ + lx_ + j * s_.threads_pixel, sums[i * s_.pixels + j]);
      });
    });
  }

  void store(const Expr& channel, const Expr& pixel, const Expr& sum) {
    b_.when(channel < oc_ && pixel < plane_, [&] {
      const Expr at = (image_ * oc_ + channel) * plane_ + pixel;
      (*y_)[at] = result_->finish(sum + result_->bias(group_ * oc_ + channel, 1), at);
    });
  }

  bool by_matrices_;
  const ConvGeometry& g_;
  Steps steps_;
  const ResultForm& form_;
  const TiledConvSchedule& s_;
  Tile tile_;
  Builder b_;
  Expr images_, groups_, ic_, oc_, summed_, in_[3], out_[3], pad_[3], plane_, x_elements_, w_elements_;
  Expr pixel_, channel_, image_, group_, lx_, ly_, eighth_, quarter_;
  std::optional<Array> x_, w_, y_, begin_[3];
  std::optional<ResultParameters> result_;
};

// As in its space.
constexpr Parameter<TiledConvSchedule> kParameters[] = {
    {"tp", &TiledConvSchedule::threads_pixel}, {"tc", &TiledConvSchedule::threads_channel},
    {"pixels", &TiledConvSchedule::pixels},    {"channels", &TiledConvSchedule::channels},
    {"depth", &TiledConvSchedule::depth},      {"unroll", &TiledConvSchedule::unroll}};

}  // namespace

TiledConvSchedule TiledConvSchedule::of(const Schedule& schedule) {
  return read_schedule(kParameters, schedule);
}

TiledConvSchedule TiledConvSchedule::of(std::span<const int64_t> values) {
  return read_point(kParameters, values);
}

int64_t tiled_local_size(const TiledConv& conv, const TiledConvSchedule& s) {
  const Tile tile(conv, s);
  return int64_t{s.depth} * (tile.column_step + tile.row_step);
}

const char* reject_tiled_schedule(const TiledConv& conv, const TiledConvSchedule& s) {
  if (s.threads_pixel * s.threads_channel > 256) return "too many threads";
  if (conv.by_matrices) {
    if (s.threads_pixel != kMatrixThreads) return "a subgroup has 32 threads";
    if (s.channels % 16 != 0 || s.depth % 8 != 0) return "a matrix has 16 x 8 elements";
    if (s.pixels * s.channels > 128) return "too many registers";
    return tiled_local_size(conv, s) > 8192 ? "too much local memory" : nullptr;
  }
  if (s.pixels * s.channels > 64) return "too many registers";
  if (tiled_local_size(conv, s) > 8192) return "too much local memory";
  if (s.unroll == 1 && s.pixels * s.channels * s.depth > 512) return "too much is written out";
  return nullptr;
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
  kernels_.push_back(tiled_conv_kernel(conv_, schedule_));
}

Launches TiledConvProgram::launches(std::span<const Dims> shapes) const {
  const ConvGeometry& g = conv_.geometry;
  const PanelConvShape s =
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
