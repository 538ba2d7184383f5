#include <utility>

#include "base/check.h"
#include "routines/gpu/conv/subgroup_conv.h"
#include "routines/gpu/remember.h"

namespace neo::gpu {
namespace {

using kernel::Array;
using kernel::Builder;
using kernel::Expr;

std::string kernel_name(const DirectConv& c, const SubgroupConvSchedule& s) {
  const ConvGeometry& g = c.geometry;
  const auto last = g.window.strides.size() - 1;
  const bool plane = g.axes == 2;
  return str("conv_subgroup_",
             g.is_depthwise() ? "d"
             : c.flat         ? "f"
                              : "k",
             g.kernel[1], "x", g.kernel[2], "_s", plane ? g.window.strides[0] : 1, "x", g.window.strides[last], "_d",
             plane ? g.window.dilations[0] : 1, "x", g.window.dilations[last], "_b", c.in_block, "_", c.result.tag(),
             "_v", s.vectors, "c", s.columns, "r", s.rows, "w", s.load, "k", s.reuse, "u", s.unroll, "o", s.order);
}

class SubgroupKernel {
 public:
  SubgroupKernel(const DirectConv& conv, const SubgroupConvSchedule& schedule)
      : c_(conv),
        s_(schedule),
        b_(kernel_name(conv, schedule)),
        size_(conv.in_block),
        panel_(schedule.vectors * conv.in_block),
        is_depthwise_(conv.geometry.is_depthwise()) {
    const ConvGeometry& g = conv.geometry;
    const auto last = g.window.strides.size() - 1;
    kernel_h_ = static_cast<int>(g.kernel[1]);
    kernel_w_ = static_cast<int>(g.kernel[2]);
    stride_w_ = static_cast<int>(g.window.strides[last]);
    dilation_w_ = static_cast<int>(g.window.dilations[last]);
    if (g.axes == 2) {
      stride_h_ = static_cast<int>(g.window.strides[0]);
      dilation_h_ = static_cast<int>(g.window.dilations[0]);
    }
    span_ = (s_.columns - 1) * stride_w_ + (kernel_w_ - 1) * dilation_w_ + 1;
  }

  kernel::Kernel run() {
    declare();
    b_.when(row_ < out_h_ && column_ < out_w_ && panel_at_ < panels_ && image_ < images_ && group_ < groups_, [&] {
      sums_ = b_.registers("sum", kernel::kFloat, s_.rows * s_.columns * s_.vectors);
      b_.unroll("p", s_.rows * s_.columns, [&](Expr p) {
        b_.unroll("v", s_.vectors, [&](Expr v) {
          (*sums_)[p * s_.vectors + v] = result_->bias(panel_index() * panel_ + v * size_ + place_, 1);
        });
      });
      const int span_h = (s_.rows - 1) * stride_h_ + (kernel_h_ - 1) * dilation_h_ + 1;
      Expr inside = in_x_ >= 0 && in_x_ + span_ <= in_w_;
      if (s_.rows > 1) inside = inside && in_y_ >= 0 && in_y_ + span_h <= in_h_;
      b_.when(
          inside, [&] { accumulate(true); }, [&] { accumulate(false); });
      store();
    });
    return b_.finish();
  }

 private:
  void declare() {
    constexpr int64_t kMost = 1 << 24;
    images_ = b_.size("images", 1, 1 << 20);  // batch x groups
    groups_ = b_.size("groups", 1, 1 << 16);
    blocks_ = b_.size("in_blocks", 1, 1 << 16);
    channels_ = b_.size("out_blocks", 1, 1 << 16);
    in_h_ = b_.size("in_h", 1, kMost);
    in_w_ = b_.size("in_w", 1, kMost);
    out_h_ = b_.size("out_h", 1, kMost);
    out_w_ = b_.size("out_w", 1, kMost);
    const Expr pad_h = b_.size("pad_h", -(1 << 16), 1 << 16), pad_w = b_.size("pad_w", -(1 << 16), 1 << 16);
    panels_ = b_.size("panels", 1, 1 << 16);
    const Expr columns = b_.size("groups_x", 1, kMost / s_.columns + 1);
    const Expr rows = b_.size("groups_y", 1, kMost / s_.rows + 1);
    x_ = b_.input("x", DType::Float32, images_ * blocks_ * in_h_ * in_w_ * size_);
    const int taps = kernel_h_ * kernel_w_;
    w_ = b_.input("w", DType::Float32,
                  is_depthwise_ ? panels_ * (taps * size_) : groups_ * panels_ * blocks_ * (taps * size_ * panel_));
    const Expr results = images_ * channels_ * out_h_ * out_w_ * size_;
    y_ = b_.output("y", DType::Float32, results);
    result_.emplace(b_, c_.result, groups_ * panels_ * panel_, results);
    Expr column, row, panel;
    if (s_.order == 0) {
      column = b_.group(0, "gx", columns);
      row = b_.group(1, "gy", rows);
      const Expr z = b_.group(2, "gz", images_ * panels_);
      image_ = opaque("image", z / panels_);
      panel = z % panels_;
    } else {
      panel = b_.group(0, "gz", panels_);
      column = b_.group(1, "gx", columns);
      const Expr y = b_.group(2, "gy", images_ * rows);
      image_ = opaque("image", y / rows);
      row = y % rows;
    }
    place_ = b_.local(0, "place", size_);
    b_.subgroups(size_);
    column_ = opaque("column", column * s_.columns);
    row_ = opaque("row", row * s_.rows);
    panel_at_ = opaque("panel", panel);
    group_ = opaque("group", image_ % groups_);
    in_x_ = b_.let("in_x", column_ * stride_w_ - pad_w);
    in_y_ = b_.let("in_y", row_ * stride_h_ - pad_h);
  }

  Expr panel_index() const { return group_ * panels_ + panel_at_; }

  // A number in [0, 2^26) of which the verifier learns from guards alone: its proofs stay short.
  Expr opaque(const char* name, const Expr& value) { return b_.let(name, value & ((1 << 26) - 1)); }

  // All products of the subgroup; `whole` where no window leaves the input.
  void accumulate(bool whole) {
    const auto over_rows = [&](const Expr& block) {
      b_.loop("ky", 0, kernel_h_, [&](Expr ky) {
        if (s_.rows > 1) return taps(block, ky, whole);
        const Expr y = in_y_ + ky * dilation_h_;
        b_.when(y >= 0 && y < in_h_, [&] { taps(block, ky, whole); });
      });
    };
    if (!is_depthwise_) return b_.loop("block", 0, blocks_, over_rows);
    b_.when(panel_at_ < blocks_, [&] { over_rows(panel_at_); });
  }

  void taps(const Expr& block, const Expr& ky, bool whole) {
    const Expr row = is_depthwise_ ? panel_at_ : panel_index() * blocks_ + block;
    const Expr weights = b_.let("weights", row * (kernel_h_ * kernel_w_) + ky * kernel_w_);
    if (whole) {
      const Expr y = in_y_ + ky * dilation_h_;
      first_ = b_.let("first", (((image_ * blocks_ + block) * in_h_ + y) * in_w_ + in_x_) * size_);
    }
    const auto over_taps = [&](const std::function<void(Expr)>& body) {
      s_.unroll == 1 ? b_.unroll("kx", kernel_w_, body) : b_.loop("kx", 0, kernel_w_, body);
    };
    if (s_.reuse == 0) {
      over_taps([&](Expr kx) {
        const Array pixels = read(block, ky, kx * dilation_w_, s_.columns, stride_w_, whole);
        multiply(weights + kx, [&](const Expr& r, const Expr& p) { return Expr(pixels[r * s_.columns + p]); });
      });
      return;
    }
    const Array pixels = read(block, ky, 0, span_, 1, whole);
    b_.unroll("kx", kernel_w_, [&](Expr kx) {
      multiply(weights + kx, [&](const Expr& r, const Expr& p) {
        return Expr(pixels[r * span_ + p * stride_w_ + kx * dilation_w_]);
      });
    });
  }

  // One channel of `count` input pixels of every row for each thread, `step` columns apart from `offset` on; zero
  // outside the input.
  Array read(const Expr& block, const Expr& ky, const Expr& offset, int count, int step, bool whole) {
    const Array pixels = b_.registers("pixel", kernel::kFloat, s_.rows * count);
    b_.unroll("r", s_.rows, [&](Expr r) {
      if (!whole) {
        b_.unroll("j", count, [&](Expr j) { pixels[r * count + j] = at_edge(block, ky, r, offset + j * step); });
        return;
      }
      const Expr from = (s_.rows == 1 ? first_ : first_ + r * stride_h_ * in_w_ * size_) + offset * size_;
      int done = 0;
      for (int width = step == 1 ? s_.load : 1; done < count; width /= 2) {
        for (; done + width <= count; done += width) {
          const Expr read = b_.let("line", x_->block_read(from + done * step * size_, width));
          for (int i = 0; i < width; ++i) pixels[r * count + done + i] = width == 1 ? read : kernel::lane(read, i);
        }
      }
    });
    return pixels;
  }

  Expr at_edge(const Expr& block, const Expr& ky, const Expr& r, const Expr& j) const {
    const Expr y = in_y_ + r * stride_h_ + ky * dilation_h_, x = in_x_ + j;
    const auto at = [&](const Expr& py, const Expr& px) {
      return x_->block_read((((image_ * blocks_ + block) * in_h_ + py) * in_w_ + px) * size_);
    };
    const Expr near_x = min(max(x, 0), in_w_ - 1);
    const Expr valid = x >= 0 && x < in_w_;
    if (s_.rows == 1) return select(valid, at(y, near_x), 0.0f);
    return select(valid && y >= 0 && y < in_h_, at(min(max(y, 0), in_h_ - 1), near_x), 0.0f);
  }

  // The products of one tap.
  void multiply(const Expr& tap, const std::function<Expr(const Expr&, const Expr&)>& pixel_of) {
    const auto each_pixel = [&](const std::function<void(Expr, Expr)>& body) {
      b_.unroll("r", s_.rows, [&](Expr r) { b_.unroll("p", s_.columns, [&](Expr p) { body(r, p); }); });
    };
    if (is_depthwise_) {
      const Expr weight = b_.let("weight", w_->block_read(tap * size_));
      each_pixel([&](const Expr& r, const Expr& p) { add(r, p, 0, pixel_of(r, p), weight); });
      return;
    }
    const int channels = std::max(1, s_.load / s_.vectors);  // whose weights are read together
    b_.unroll("c", size_ / channels, [&](Expr c) {
      std::vector<Expr> weights;
      for (int i = 0; i < channels * s_.vectors; i += s_.load) {
        const Expr at = tap * (size_ * panel_) + c * (channels * panel_) + i * size_;
        const Expr read = b_.let("weight", w_->block_read(at, s_.load));
        for (int k = 0; k < s_.load; ++k) weights.push_back(s_.load == 1 ? read : kernel::lane(read, k));
      }
      each_pixel([&](const Expr& r, const Expr& p) {
        const Expr mine = b_.let("mine", pixel_of(r, p));
        for (int i = 0; i < channels; ++i) {
          const Expr value = b_.shuffle(mine, c * channels + i);
          for (int v = 0; v < s_.vectors; ++v) {
            add(r, p, v, value, weights[static_cast<size_t>(i * s_.vectors + v)]);
          }
        }
      });
    });
  }

  void add(const Expr& r, const Expr& p, int v, const Expr& value, const Expr& weight) {
    const Expr at = (r * s_.columns + p) * s_.vectors + v;
    (*sums_)[at] = fma(value, weight, (*sums_)[at]);
  }

  void store() {
    for (int v = 0; v < s_.vectors; ++v) {
      const Expr block = b_.let("out_block", panel_at_ * s_.vectors + v);
      b_.when(block < channels_, [&] {
        const Expr to = b_.let("to", (((image_ * channels_ + block) * out_h_ + row_) * out_w_ + column_) * size_);
        b_.unroll("r", s_.rows, [&](Expr r) {
          b_.unroll("p", s_.columns, [&](Expr p) {
            b_.when(row_ + r < out_h_ && column_ + p < out_w_, [&] {
              const Expr at = to + (s_.rows == 1 ? p : r * out_w_ + p) * size_;
              y_->block_write(at, result_->finish((*sums_)[(r * s_.columns + p) * s_.vectors + v], at + place_));
            });
          });
        });
      });
    }
  }

  const DirectConv& c_;
  const SubgroupConvSchedule& s_;
  Builder b_;
  int size_, panel_;
  bool is_depthwise_;
  int kernel_h_ = 1, kernel_w_ = 1, stride_h_ = 1, stride_w_ = 1, dilation_h_ = 1, dilation_w_ = 1, span_ = 1;
  Expr images_, groups_, blocks_, channels_, in_h_, in_w_, out_h_, out_w_, panels_;
  Expr image_, group_, panel_at_, row_, column_, in_x_, in_y_, first_, place_;
  std::optional<Array> x_, w_, y_, sums_;
  std::optional<ResultParameters> result_;
};

}  // namespace

kernel::Kernel subgroup_conv_kernel(const DirectConv& conv, const SubgroupConvSchedule& schedule) {
  return remember_kernel(kernel_name(conv, schedule), [&] { return SubgroupKernel(conv, schedule).run(); });
}

}  // namespace neo::gpu
