#include "routines/gpu/conv/depthwise_conv.h"

#include "base/check.h"
#include "base/int_math.h"
#include "routines/gpu/movement/axes.h"
#include "routines/gpu/remember.h"
#include "routines/gpu/schedule.h"

namespace neo::gpu {
namespace {

using kernel::Array;
using kernel::Builder;
using kernel::Expr;

constexpr int64_t kMaxBatchPixels = int64_t{1} << 28;  // of a batch, channels last

struct PlaneSteps {
  int stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;

  explicit PlaneSteps(const ConvGeometry& g) {
    const auto last = static_cast<size_t>(g.axes - 1);
    stride_w = static_cast<int>(g.window.strides[last]);
    dilation_w = static_cast<int>(g.window.dilations[last]);
    if (g.axes < 2) return;
    stride_h = static_cast<int>(g.window.strides[0]);
    dilation_h = static_cast<int>(g.window.dilations[0]);
  }
};

std::string kernel_name(const DepthwiseConv& c, const DepthwiseSchedule& s) {
  const PlaneSteps p(c.geometry);
  return str("conv_depthwise_k", c.geometry.kernel[1], "x", c.geometry.kernel[2], "_s", p.stride_h, "x", p.stride_w,
             "_d", p.dilation_h, "x", p.dilation_w, c.last ? "_last" : "", "_b", c.block, "_", c.result.tag(), "_l",
             s.lanes, "c", s.columns, "r", s.rows, "k", s.reuse, "_t", s.threads_column, "x", s.threads_row);
}

class DepthwiseKernel {
 public:
  DepthwiseKernel(const DepthwiseConv& conv, const DepthwiseSchedule& schedule)
      : c_(conv), s_(schedule), p_(conv.geometry), b_(kernel_name(conv, schedule)) {
    kernel_h_ = static_cast<int>(conv.geometry.kernel[1]);
    kernel_w_ = static_cast<int>(conv.geometry.kernel[2]);
    span_w_ = (s_.columns - 1) * p_.stride_w + (kernel_w_ - 1) * p_.dilation_w + 1;
  }

  kernel::Kernel run() {
    declare();
    b_.when(row_ < out_h_ && column_ < out_w_ && image_ < images_ && block_ < blocks_, [&] {
      sums_ = b_.registers("sum", type(), s_.rows * s_.columns);
      b_.unroll("p", s_.rows * s_.columns,
                [&](Expr p) { (*sums_)[p] = result_->bias(block_ * c_.block + within_, s_.lanes); });
      const int span_h = (s_.rows - 1) * p_.stride_h + (kernel_h_ - 1) * p_.dilation_h + 1;
      const Expr whole = in_x_ >= 0 && in_x_ + span_w_ <= in_w_ && in_y_ >= 0 && in_y_ + span_h <= in_h_;
      if (c_.last) in_pixel_ = pixel_at(in_h_, in_w_, in_y_, in_x_);
      const Expr read = c_.last ? whole && in_pixel_ + (span_h - 1) * in_w_ + span_w_ <= in_pixels_ : whole;
      b_.when(
          read, [&] { accumulate(true); }, [&] { accumulate(false); });
      store();
    });
    return b_.finish();
  }

 private:
  kernel::ValueType type() const { return {DType::Float32, s_.lanes}; }
  Expr opaque(const char* name, const Expr& value, int64_t most = 1 << 26) { return b_.let(name, value & (most - 1)); }

  void declare() {
    constexpr int64_t kMax = 1 << 24;
    images_ = b_.size("images", 1, 1 << 20);
    blocks_ = b_.size("blocks", 1, 1 << 16);
    in_h_ = b_.size("in_h", 1, kMax);
    in_w_ = b_.size("in_w", 1, kMax);
    out_h_ = b_.size("out_h", 1, kMax);
    out_w_ = b_.size("out_w", 1, kMax);
    const Expr pad_h = b_.size("pad_h", -(1 << 16), 1 << 16), pad_w = b_.size("pad_w", -(1 << 16), 1 << 16);
    // As many as cover the widest output.
    const Expr columns = b_.size("groups_x", 1, kMax / (s_.threads_column * s_.columns) + 1);
    const Expr rows = b_.size("groups_y", 1, kMax / (s_.threads_row * s_.rows) + 1);
    if (c_.last) {
      in_pixels_ = b_.size("in_pixels", 1, kMaxBatchPixels);
      out_pixels_ = b_.size("out_pixels", 1, kMaxBatchPixels);
    }
    const Expr inputs = c_.last ? in_pixels_ * blocks_ : images_ * blocks_ * in_h_ * in_w_;
    x_ = b_.input("x", DType::Float32, inputs * c_.block);
    w_ = b_.input("w", DType::Float32, blocks_ * (kernel_h_ * kernel_w_ * c_.block));
    const Expr results = (c_.last ? out_pixels_ * blocks_ : images_ * blocks_ * out_h_ * out_w_) * c_.block;
    y_ = b_.output("y", DType::Float32, results);
    result_.emplace(b_, c_.result, blocks_ * c_.block, results);
    const int parts = c_.block / s_.lanes;
    const Expr x = b_.group(0, "gx", columns), y = b_.group(1, "gy", rows);
    const Expr z = b_.group(2, "gz", images_ * blocks_ * parts);
    const auto thread = [&](const Expr& group, int dimension, const char* name, int extent) {
      return extent == 1 ? group : group * extent + b_.local(dimension, name, extent);
    };
    column_ = opaque("column", thread(x, 0, "lx", s_.threads_column) * s_.columns);
    row_ = opaque("row", thread(y, 1, "ly", s_.threads_row) * s_.rows);
    image_ = opaque("image", z / parts / blocks_);
    block_ = opaque("block", z / parts % blocks_);
    within_ = b_.let("within", (z & (parts - 1)) * s_.lanes);
    in_x_ = b_.let("in_x", column_ * p_.stride_w - pad_w);
    in_y_ = b_.let("in_y", row_ * p_.stride_h - pad_h);
  }

  void accumulate(bool whole) {
    b_.unroll("ky", kernel_h_, [&](Expr ky) {
      b_.unroll("r", s_.rows, [&](Expr r) {
        if (s_.reuse == 0) {
          b_.unroll("kx", kernel_w_, [&](Expr kx) {
            const Expr weight = b_.let("weight", weight_at(ky, kx));
            b_.unroll("p", s_.columns,
                      [&](Expr p) { add(r, p, pixel(ky, r, p * p_.stride_w + kx * p_.dilation_w, whole), weight); });
          });
          return;
        }
        const Array pixels = b_.registers("pixel", type(), span_w_);
        b_.unroll("j", span_w_, [&](Expr j) { pixels[j] = pixel(ky, r, j, whole); });
        b_.unroll("kx", kernel_w_, [&](Expr kx) {
          const Expr weight = b_.let("weight", weight_at(ky, kx));
          b_.unroll("p", s_.columns,
                    [&](Expr p) { add(r, p, Expr(pixels[p * p_.stride_w + kx * p_.dilation_w]), weight); });
        });
      });
    });
  }

  void add(const Expr& r, const Expr& p, const Expr& value, const Expr& weight) {
    const Expr at = r * s_.columns + p;
    (*sums_)[at] = fma(value, weight, (*sums_)[at]);
  }

  Expr weight_at(const Expr& ky, const Expr& kx) const {
    return w_->at((block_ * (kernel_h_ * kernel_w_) + ky * kernel_w_ + kx) * c_.block + within_, s_.lanes);
  }

  // Counts over all planes, where channels are last; computed in 64 bits.
  Expr pixel_at(const Expr& height, const Expr& width, const Expr& y, const Expr& x) {
    const Expr at[] = {image_, y, x}, sizes[] = {images_, height, width};
    return opaque("pixel", join_index_unproven(b_, at, sizes), kMaxBatchPixels);
  }

  Expr channels_of(const Expr& pixel) const { return (pixel * blocks_ + block_) * c_.block + within_; }

  Expr pixel(const Expr& ky, const Expr& r, const Expr& j, bool whole) {
    const Expr down = r * p_.stride_h + ky * p_.dilation_h, y = in_y_ + down, x = in_x_ + j;
    if (whole && c_.last) return Expr(x_->at(channels_of(in_pixel_ + down * in_w_ + j), s_.lanes));
    const auto at = [&](const Expr& py, const Expr& px) {
      if (c_.last) return Expr(x_->at(channels_of(min(pixel_at(in_h_, in_w_, py, px), in_pixels_ - 1)), s_.lanes));
      return Expr(x_->at((((image_ * blocks_ + block_) * in_h_ + py) * in_w_ + px) * c_.block + within_, s_.lanes));
    };
    if (whole) return at(y, x);
    const Expr value = at(min(max(y, 0), in_h_ - 1), min(max(x, 0), in_w_ - 1));
    const Expr zero = s_.lanes == 1 ? kernel::real(0) : kernel::broadcast(kernel::real(0), s_.lanes);
    return select(x >= 0 && x < in_w_ && y >= 0 && y < in_h_, value, zero);
  }

  void store() {
    const Expr first = c_.last ? pixel_at(out_h_, out_w_, row_, column_) : Expr();
    b_.unroll("r", s_.rows, [&](Expr r) {
      b_.unroll("p", s_.columns, [&](Expr p) {
        const Expr inside = row_ + r < out_h_ && column_ + p < out_w_;
        const Expr pixel = c_.last ? first + r * out_w_ + p : Expr();
        b_.when(c_.last ? inside && pixel < out_pixels_ : inside, [&] {
          const Expr row = (image_ * blocks_ + block_) * out_h_ + row_ + r;
          const Expr at = c_.last ? channels_of(pixel) : (row * out_w_ + column_ + p) * c_.block + within_;
          y_->at(at, s_.lanes) = result_->finish((*sums_)[r * s_.columns + p], at);
        });
      });
    });
  }

  const DepthwiseConv& c_;
  const DepthwiseSchedule& s_;
  PlaneSteps p_;
  Builder b_;
  int kernel_h_ = 1, kernel_w_ = 1, span_w_ = 1;
  Expr in_pixels_, out_pixels_, in_pixel_;  // of all images, where channels are last
  Expr images_, blocks_, in_h_, in_w_, out_h_, out_w_, image_, block_, within_, row_, column_, in_x_, in_y_;
  std::optional<Array> x_, w_, y_, sums_;
  std::optional<ResultParameters> result_;
};

// As in its space.
constexpr Parameter<DepthwiseSchedule> kDepthwiseParameters[] = {
    {"lanes", &DepthwiseSchedule::lanes},       {"columns", &DepthwiseSchedule::columns},
    {"rows", &DepthwiseSchedule::rows},         {"reuse", &DepthwiseSchedule::reuse},
    {"tx", &DepthwiseSchedule::threads_column}, {"ty", &DepthwiseSchedule::threads_row}};

}  // namespace

DepthwiseSchedule DepthwiseSchedule::of(const Schedule& schedule) {
  return read_schedule(kDepthwiseParameters, schedule);
}

DepthwiseSchedule DepthwiseSchedule::of(std::span<const int64_t> values) {
  return read_point(kDepthwiseParameters, values);
}

int64_t DepthwiseConv::blocks() const {
  return ceil_div(geometry.oc, static_cast<int64_t>(block));
}

const char* reject_depthwise(const DepthwiseConv& conv) {
  const ConvGeometry& g = conv.geometry;
  if (!g.is_depthwise()) return "not depthwise";
  if (g.axes > 2) return "more than two spatial axes";
  if (conv.last && g.oc % conv.block != 0) return "a block is no divisor of the channels";
  for (int i = 0; i < g.axes; ++i) {
    if (g.window.strides[static_cast<size_t>(i)] > 16) return "a stride beyond 16";
  }
  return g.taps() > 64 ? "more than 64 taps" : nullptr;
}

const char* reject_depthwise_schedule(const DepthwiseConv& conv, const DepthwiseSchedule& s) {
  const ConvGeometry& g = conv.geometry;
  if (conv.block % s.lanes != 0) return "a vector does not divide the block";
  if (s.reuse == 1 && g.kernel[2] == 1) return "nothing is used again";
  if (g.taps() * s.rows * s.columns > 768) return "too much is written out";
  if (s.rows * s.columns * s.lanes > 512) return "too many registers";
  return s.threads_column * s.threads_row > 256 ? "too many threads" : nullptr;
}

Space depthwise_space(const DepthwiseConv& conv, const Dims& out) {
  const int64_t width = out.back(), height = out.size() > 3 ? out[2] : 1;
  std::vector<int64_t> lanes;
  for (int64_t n = 1; n <= conv.block; n *= 2) {
    if (n != 2 && (n > 1 || conv.block == 1)) lanes.push_back(n);
  }
  const auto allows = [&](std::span<const int64_t> v) {
    const DepthwiseSchedule s = DepthwiseSchedule::of(v);
    if (reject_depthwise_schedule(conv, s) != nullptr) return false;
    return (s.columns == 1 || s.columns <= width) && (s.rows == 1 || s.rows <= height) &&
           (s.threads_column == 1 || s.threads_column * s.columns / 2 < width) &&
           (s.threads_row == 1 || s.threads_row * s.rows / 2 < height);
  };
  return Space({{"lanes", lanes},
                {"columns", {1, 2, 3, 4, 5, 6, 7, 8, 14}},
                {"rows", {1, 2, 4}},
                {"reuse", {0, 1}},
                {"tx", {1, 2, 4, 8, 16, 32}},
                {"ty", {1, 2, 4, 8}}},
               allows);
}

int64_t depthwise_weight_size(const DepthwiseConv& conv) {
  return conv.blocks() * conv.block * conv.geometry.taps();
}

void pack_depthwise_weight(const DepthwiseConv& conv, const float* from, float* to) {
  const int64_t taps = conv.geometry.taps();
  for (int64_t block = 0; block < conv.blocks(); ++block) {
    for (int64_t tap = 0; tap < taps; ++tap) {
      for (int64_t lane = 0; lane < conv.block; ++lane) {
        const int64_t channel = block * conv.block + lane;
        *to++ = channel < conv.geometry.oc ? from[channel * taps + tap] : 0.0f;
      }
    }
  }
}

DepthwiseProgram::DepthwiseProgram(DepthwiseConv conv, const DepthwiseSchedule& schedule)
    : conv_(std::move(conv)), schedule_(schedule) {
  NEO_ASSERT(reject_depthwise(conv_) == nullptr, reject_depthwise(conv_));
  const char* why = reject_depthwise_schedule(conv_, schedule_);
  NEO_ASSERT(why == nullptr, why);
  kernels_.push_back(kernel::with_storage(depthwise_kernel(conv_, schedule_), conv_.result.storage));
}

Launches DepthwiseProgram::launches(std::span<const Dims> shapes) const {
  const ConvShape s =
      conv_.geometry.shape(shapes[static_cast<size_t>(conv_.places.x)], shapes[static_cast<size_t>(conv_.places.y)]);
  Launches out;
  if (s.n * s.oh * s.ow == 0) return out;
  KernelLaunch launch;
  launch.arguments = {s.n,
                      conv_.blocks(),
                      s.ih,
                      s.iw,
                      s.oh,
                      s.ow,
                      s.pad_top,
                      s.pad_left,
                      ceil_div(s.ow, static_cast<int64_t>(schedule_.columns) * schedule_.threads_column),
                      ceil_div(s.oh, static_cast<int64_t>(schedule_.rows) * schedule_.threads_row)};
  if (conv_.last) {
    launch.arguments.emplace_back(s.n * s.ih * s.iw);
    launch.arguments.emplace_back(s.n * s.oh * s.ow);
  }
  launch.arguments.emplace_back(Operand{conv_.places.x});
  launch.arguments.emplace_back(Packed{0});
  launch.arguments.emplace_back(Operand{conv_.places.y});
  append_result_arguments(conv_.result, Packed{1}, Operand{conv_.places.residual}, launch.arguments);
  out.launches.push_back(std::move(launch));
  return out;
}

kernel::Kernel depthwise_kernel(const DepthwiseConv& conv, const DepthwiseSchedule& schedule) {
  return remember_kernel(kernel_name(conv, schedule), [&] { return DepthwiseKernel(conv, schedule).run(); });
}

}  // namespace neo::gpu
