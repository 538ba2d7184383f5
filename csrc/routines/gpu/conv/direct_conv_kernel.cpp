#include <utility>

#include "base/check.h"
#include "routines/gpu/conv/direct_conv.h"
#include "routines/gpu/remember.h"

namespace neo::gpu {
namespace {

using kernel::Array;
using kernel::Builder;
using kernel::Expr;
using kernel::ValueType;

std::string kernel_name(const DirectConv& c, const DirectConvSchedule& s) {
  const ConvGeometry& g = c.geometry;
  const auto last = g.window.strides.size() - 1;
  const bool plane = g.axes == 2;
  return str("conv_direct_", c.flat ? "f" : "k", g.kernel[1], "x", g.kernel[2], "_s", plane ? g.window.strides[0] : 1,
             "x", g.window.strides[last], "_d", plane ? g.window.dilations[0] : 1, "x", g.window.dilations[last], "_i",
             c.in_block, "o", c.out_block, "_", c.result.tag(), "_l", s.lanes, "v", s.vectors, "c", s.columns, "r",
             s.rows, "i", s.inner, "w", s.load, "k", s.reuse, "u", s.unroll, "o", s.order, "_t", s.threads_column, "x",
             s.threads_row, "x", s.threads_channel);
}

class DirectKernel {
 public:
  DirectKernel(const DirectConv& conv, const DirectConvSchedule& schedule)
      : c_(conv), s_(schedule), b_(kernel_name(conv, schedule)) {
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
    panel_ = s_.vectors * s_.lanes;
  }

  kernel::Kernel run() {
    declare();
    b_.when(row_ < out_h_ && column_ < out_w_ && panel_at_ < panels_ && image_ < images_ && group_ < groups_, [&] {
      sums_ = b_.registers("sum", {DType::Float32, s_.lanes}, s_.rows * s_.columns * s_.vectors);
      const Expr first = panel_index() * panel_;
      b_.unroll("p", s_.rows * s_.columns, [&](Expr p) {
        b_.unroll("v", s_.vectors,
                  [&](Expr v) { (*sums_)[p * s_.vectors + v] = result_->bias(first + v * s_.lanes, s_.lanes); });
      });
      const int span_w = (s_.columns - 1) * stride_w_ + (kernel_w_ - 1) * dilation_w_ + 1;
      Expr inside = in_x_ >= 0 && in_x_ + span_w <= in_w_;
      if (s_.rows > 1) {
        const int span_h = (s_.rows - 1) * stride_h_ + (kernel_h_ - 1) * dilation_h_ + 1;
        inside = inside && in_y_ >= 0 && in_y_ + span_h <= in_h_;
      }
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
    // As many as cover the widest output.
    const Expr columns = b_.size("groups_x", 1, kMost / (s_.threads_column * s_.columns) + 1);
    const Expr rows = b_.size("groups_y", 1, kMost / (s_.threads_row * s_.rows) + 1);
    const Expr panels = b_.size("groups_z", 1, 1 << 16);
    x_ = b_.input("x", DType::Float32, images_ * blocks_ * in_h_ * in_w_ * c_.in_block);
    w_ = b_.input("w", DType::Float32, groups_ * panels_ * blocks_ * (kernel_h_ * kernel_w_ * c_.in_block * panel_));
    const Expr results = images_ * channels_ * out_h_ * out_w_ * c_.out_block;
    y_ = b_.output("y", DType::Float32, results);
    result_.emplace(b_, c_.result, groups_ * panels_ * panel_, results);
    Expr column, row, panel;
    const int at[3] = {s_.order == 0 ? 0 : 1, s_.order == 0 ? 1 : 2, s_.order == 0 ? 2 : 0};
    column = b_.group(at[0], "gx", columns);
    if (s_.order == 0) {
      row = b_.group(1, "gy", rows);
      const Expr z = b_.group(2, "gz", images_ * panels);
      image_ = opaque("image", z / panels);
      panel = z % panels;
    } else {
      panel = b_.group(0, "gz", panels);
      const Expr y = b_.group(2, "gy", images_ * rows);
      image_ = opaque("image", y / rows);
      row = y % rows;
    }
    const auto thread = [&](const Expr& group, int dimension, const char* name, int extent) {
      return extent == 1 ? group : group * extent + b_.local(dimension, name, extent);
    };
    column_ = opaque("column", thread(column, at[0], "lx", s_.threads_column) * s_.columns);
    row_ = opaque("row", thread(row, at[1], "ly", s_.threads_row) * s_.rows);
    panel_at_ = opaque("panel", thread(panel, at[2], "lz", s_.threads_channel));
    group_ = opaque("group", image_ % groups_);
    in_x_ = b_.let("in_x", column_ * stride_w_ - pad_w);
    in_y_ = b_.let("in_y", row_ * stride_h_ - pad_h);
  }

  Expr panel_index() const { return group_ * panels_ + panel_at_; }

  // A number in [0, 2^26) of which the verifier learns from guards alone: its proofs stay short.
  Expr opaque(const char* name, const Expr& value) { return b_.let(name, value & ((1 << 26) - 1)); }

  // All products of the thread; `whole` where no window leaves the input.
  void accumulate(bool whole) {
    b_.loop("block", 0, blocks_, [&](Expr block) {
      const auto row_of_taps = [&](const Expr& ky) {
        if (s_.rows > 1) return taps(block, ky, whole);
        const Expr y = in_y_ + ky * dilation_h_;
        b_.when(y >= 0 && y < in_h_, [&] { taps(block, ky, whole); });
      };
      if (s_.unroll == 2) {
        b_.unroll("ky", kernel_h_, row_of_taps);
      } else {
        b_.loop("ky", 0, kernel_h_, row_of_taps);
      }
    });
  }

  void taps(const Expr& block, const Expr& ky, bool whole) {
    const Expr weights =
        b_.let("weights", (panel_index() * blocks_ + block) * (kernel_h_ * kernel_w_) + ky * kernel_w_);
    if (whole) {
      const Expr y = in_y_ + ky * dilation_h_;
      first_ = b_.let("first", (((image_ * blocks_ + block) * in_h_ + y) * in_w_ + in_x_) * c_.in_block);
    }
    const auto over_taps = [&](const std::function<void(Expr)>& body) {
      if (s_.unroll >= 1) return b_.unroll("kx", kernel_w_, body);
      b_.loop("kx", 0, kernel_w_, body);
    };
    const auto over_channels = [&](const std::function<void(Expr)>& body) {
      b_.loop("c", 0, c_.in_block / s_.inner,
              [&](Expr c) { b_.unroll("u", s_.inner / s_.load, [&](Expr u) { body(c * s_.inner + u * s_.load); }); });
    };
    if (s_.reuse == 0) {
      if (c_.in_block > 1) {
        over_taps(
            [&](Expr kx) { over_channels([&](Expr channel) { products(block, ky, kx, channel, weights, whole); }); });
      } else {
        over_taps([&](Expr kx) { products(block, ky, kx, 0, weights, whole); });
      }
      return;
    }
    const int span = (s_.columns - 1) * stride_w_ + (kernel_w_ - 1) * dilation_w_ + 1;
    over_channels([&](Expr channel) {
      const Array pixels = b_.registers("pixel", {DType::Float32, s_.load}, s_.rows * span);
      b_.unroll("r", s_.rows, [&](Expr r) {
        b_.unroll("j", span, [&](Expr j) { pixels[r * span + j] = pixel(block, ky, r, j, channel, whole); });
      });
      b_.unroll("kx", kernel_w_, [&](Expr kx) {
        multiply(weights + kx, channel, [&](const Expr& r, const Expr& p) {
          return Expr(pixels[r * span + p * stride_w_ + kx * dilation_w_]);
        });
      });
    });
  }

  void products(const Expr& block, const Expr& ky, const Expr& kx, const Expr& channel, const Expr& weights,
                bool whole) {
    const Array pixels = b_.registers("pixel", {DType::Float32, s_.load}, s_.rows * s_.columns);
    b_.unroll("r", s_.rows, [&](Expr r) {
      b_.unroll("p", s_.columns, [&](Expr p) {
        pixels[r * s_.columns + p] = pixel(block, ky, r, p * stride_w_ + kx * dilation_w_, channel, whole);
      });
    });
    multiply(weights + kx, channel, [&](const Expr& r, const Expr& p) { return Expr(pixels[r * s_.columns + p]); });
  }

  // Channels of one input pixel, `j` columns after the thread's first; zero outside the input.
  Expr pixel(const Expr& block, const Expr& ky, const Expr& r, const Expr& j, const Expr& channel, bool whole) {
    const Expr y = in_y_ + r * stride_h_ + ky * dilation_h_, x = in_x_ + j;
    if (whole) {
      const Expr from = s_.rows == 1 ? first_ : first_ + r * stride_h_ * in_w_ * c_.in_block;
      return x_->at(from + channel + j * c_.in_block, s_.load);
    }
    const auto at = [&](const Expr& py, const Expr& px) {
      return Expr(x_->at((((image_ * blocks_ + block) * in_h_ + py) * in_w_ + px) * c_.in_block + channel, s_.load));
    };
    const Expr near_x = min(max(x, 0), in_w_ - 1);
    Expr valid = x >= 0 && x < in_w_;
    if (s_.rows == 1) return choose(valid, at(y, near_x));
    valid = valid && y >= 0 && y < in_h_;
    return choose(valid, at(min(max(y, 0), in_h_ - 1), near_x));
  }

  Expr choose(const Expr& valid, const Expr& value) const {
    if (s_.load == 1) return select(valid, value, 0.0f);
    return select(valid, value, kernel::broadcast(kernel::real(0), s_.load));
  }

  void multiply(const Expr& tap, const Expr& channel, const std::function<Expr(const Expr&, const Expr&)>& pixel_of) {
    add_direct_products(b_, s_, *w_, tap * (c_.in_block * panel_) + channel * panel_, *sums_, pixel_of);
  }

  void store() {
    const Expr whole = row_ + s_.rows <= out_h_ && column_ + s_.columns <= out_w_ &&
                       panel_at_ * panel_ + panel_ <= channels_ * c_.out_block;
    b_.when(
        whole, [&] { store(true); }, [&] { store(false); });
  }

  void store(bool whole) {
    const auto when = [&](const Expr& condition, const std::function<void()>& body) {
      if (whole) return body();
      b_.when(condition, body);
    };
    const int width = std::min(s_.lanes, c_.out_block);
    for (int v = 0; v < s_.vectors; ++v) {
      for (int part = 0; part < s_.lanes; part += width) {
        const auto [in, within] = block_of(v * s_.lanes + part);
        const Expr block = b_.let("out_block", in);
        const auto store_block = [&] {
          const Expr to =
              b_.let("to", (((image_ * channels_ + block) * out_h_ + row_) * out_w_ + column_) * c_.out_block + within);
          b_.unroll("r", s_.rows, [&](Expr r) {
            b_.unroll("p", s_.columns, [&](Expr p) {
              when(row_ + r < out_h_ && column_ + p < out_w_, [&] {
                const Expr value = (*sums_)[(r * s_.columns + p) * s_.vectors + v];
                std::vector<Expr> lanes;
                for (int i = 0; i < width && width < s_.lanes; ++i) lanes.push_back(kernel::lane(value, part + i));
                const Expr piece = width == s_.lanes ? value : width == 1 ? lanes[0] : kernel::vector(lanes);
                const Expr at = to + (s_.rows == 1 ? p : r * out_w_ + p) * c_.out_block;
                y_->at(at, width) = result_->finish(piece, at);
              });
            });
          });
        };
        if (whole && panel_ % c_.out_block == 0) {
          store_block();
        } else {
          b_.when(block < channels_, store_block);
        }
      }
    }
  }

  // The block of output channels that a channel of the panel lies in, and where in it.
  std::pair<Expr, Expr> block_of(int channel) const {
    const int size = c_.out_block;
    if (panel_ % size == 0) return {panel_at_ * (panel_ / size) + channel / size, channel % size};
    const int parts = size / panel_;
    if (size % panel_ == 0 && (parts & (parts - 1)) == 0) {
      return {panel_at_ / parts, (panel_at_ & (parts - 1)) * panel_ + channel};
    }
    // Counted in what one store writes, which never crosses the end of a block.
    const int width = std::min(s_.lanes, size);
    const Expr stores = panel_at_ * (panel_ / width) + channel / width;
    return {stores / (size / width), stores % (size / width) * width};
  }

  const DirectConv& c_;
  const DirectConvSchedule& s_;
  Builder b_;
  int kernel_h_ = 1, kernel_w_ = 1, stride_h_ = 1, stride_w_ = 1, dilation_h_ = 1, dilation_w_ = 1, panel_ = 1;
  Expr images_, groups_, blocks_, channels_, in_h_, in_w_, out_h_, out_w_, panels_;
  Expr image_, group_, panel_at_, row_, column_, in_x_, in_y_, first_;
  std::optional<Array> x_, w_, y_, sums_;
  std::optional<ResultParameters> result_;
};

}  // namespace

void add_direct_products(Builder& b, const DirectConvSchedule& s, const Array& weights, const Expr& first,
                         const Array& sums, const std::function<Expr(const Expr&, const Expr&)>& pixel) {
  for (int i = 0; i < s.load; ++i) {
    const Array wide = b.registers("w", {DType::Float32, s.lanes}, s.vectors);
    b.unroll("v", s.vectors,
             [&](Expr v) { wide[v] = weights.at(first + i * (s.vectors * s.lanes) + v * s.lanes, s.lanes); });
    b.unroll("r", s.rows, [&](Expr r) {
      b.unroll("p", s.columns, [&](Expr p) {
        const Expr value = s.load == 1 ? pixel(r, p) : kernel::lane(pixel(r, p), i);
        b.unroll("v", s.vectors, [&](Expr v) {
          const Expr at = (r * s.columns + p) * s.vectors + v;
          sums[at] = fma(value, wide[v], sums[at]);
        });
      });
    });
  }
}

kernel::Kernel direct_conv_kernel(const DirectConv& conv, const DirectConvSchedule& schedule) {
  return remember_kernel(kernel_name(conv, schedule), [&] { return DirectKernel(conv, schedule).run(); });
}

}  // namespace neo::gpu
