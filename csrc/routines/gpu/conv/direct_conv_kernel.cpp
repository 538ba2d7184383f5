#include <utility>

#include "base/check.h"
#include "base/function_ref.h"
#include "routines/gpu/conv/window_kernel.h"
#include "routines/gpu/remember.h"

namespace neo::gpu {
namespace {

using kernel::Array;
using kernel::Builder;
using kernel::Expr;
using kernel::ValueType;

std::string kernel_name(const DirectConv& c, const DirectConvSchedule& s) {
  return str("conv_direct_", window_tag(c), "_i", c.in_block, "o", c.out_block, "_", c.result.tag(), "_l", s.lanes, "v",
             s.vectors, "c", s.columns, "r", s.rows, "i", s.inner, "w", s.load, "k", s.reuse, "u", s.unroll, "o",
             s.order, "_t", s.threads_column, "x", s.threads_row, "x", s.threads_channel,
             s.image > 0 ? str("_image", s.image) : "");
}

class DirectKernel : WindowKernel {
 public:
  DirectKernel(const DirectConv& conv, const DirectConvSchedule& schedule)
      : WindowKernel(conv, kernel_name(conv, schedule), schedule.rows, schedule.columns,
                     schedule.vectors * schedule.lanes),
        s_(schedule) {}

  kernel::Kernel run() {
    declare();
    b_.when(is_some(), [&] {
      sums_ = b_.registers("sum", {DType::Float32, s_.lanes}, s_.rows * s_.columns * s_.vectors);
      const Expr first = panel_index() * panel_;
      b_.unroll("p", s_.rows * s_.columns, [&](Expr p) {
        b_.unroll("v", s_.vectors,
                  [&](Expr v) { (*sums_)[p * s_.vectors + v] = result_->bias(first + v * s_.lanes, s_.lanes); });
      });
      b_.when(
          is_whole(), [&] { accumulate(true); }, [&] { accumulate(false); });
      store();
    });
    return b_.finish();
  }

 private:
  void declare() {
    constexpr int64_t kMax = 1 << 24;
    declare_sizes();
    // As many as cover the widest output.
    const Expr columns = b_.size("groups_x", 1, kMax / (s_.threads_column * s_.columns) + 1);
    const Expr rows = b_.size("groups_y", 1, kMax / (s_.threads_row * s_.rows) + 1);
    const Expr panels = b_.size("groups_z", 1, 1 << 16);
    declare_memory(groups_ * panels_ * blocks_ * (kernel_h_ * kernel_w_ * c_.in_block * panel_ / s_.weight_floats()),
                   s_.input_is_image(), s_.weight_is_image());
    const Groups at = declare_groups(s_.order, columns, rows, panels);
    const auto thread = [&](const Expr& group, int dimension, const char* name, int extent) {
      return extent == 1 ? group : group * extent + b_.local(dimension, name, extent);
    };
    // The local axes lie as those of the groups do.
    const int first = s_.order == 0 ? 0 : 1;
    const Expr column = thread(at.column, first, "lx", s_.threads_column) * s_.columns;
    const Expr row = thread(at.row, first + 1, "ly", s_.threads_row) * s_.rows;
    place(column, row, thread(at.panel, (first + 2) % 3, "lz", s_.threads_channel));
  }

  // All products of the thread; `whole` where no window leaves the input.
  void accumulate(bool whole) {
    b_.loop("block", 0, blocks_, [&](Expr block) {
      const auto row_of_taps = [&](const Expr& ky) { when_row(ky, [&] { taps(block, ky, whole); }); };
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
    if (!whole) return taps(block, ky, weights, false);
    from_first(block, ky, [&] { taps(block, ky, weights, true); });
  }

  void taps(const Expr& block, const Expr& ky, const Expr& weights, bool whole) {
    const auto over_taps = [&](FunctionRef<void(const Expr&)> body) {
      if (s_.unroll >= 1) return b_.unroll("kx", kernel_w_, body);
      b_.loop("kx", 0, kernel_w_, body);
    };
    const auto over_channels = [&](FunctionRef<void(const Expr&)> body) {
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
    const int span = span_w();
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
    const Expr within = s_.input_is_image() ? channel / s_.load : channel;
    const int lanes = s_.input_is_image() ? 1 : s_.load;
    if (whole) return x_->at(first_of_row(r) + within + j * next_input(), lanes);
    const Expr zero = kernel::real(0);
    return read_edge(block, ky, r, j, s_.load == 1 ? zero : kernel::broadcast(zero, s_.load),
                     [&](const Expr& at) { return Expr(x_->at(at + within, lanes)); });
  }

  void multiply(const Expr& tap, const Expr& channel, FunctionRef<Expr(const Expr&, const Expr&)> pixel_of) {
    const int panel = panel_ / s_.weight_floats();
    add_direct_products(b_, s_, *w_, tap * (c_.in_block * panel) + channel * panel, *sums_, pixel_of);
  }

  void store() {
    find_result();
    const Expr whole = has_results(s_.rows, s_.columns) && panel_at_ * panel_ + panel_ <= channels_ * c_.out_block;
    b_.when(
        whole, [&] { store(true); }, [&] { store(false); });
  }

  void store(bool whole) {
    const auto when = [&](const Expr& condition, FunctionRef<void()> body) {
      if (whole) return body();
      b_.when(condition, body);
    };
    const int width = std::min(s_.lanes, c_.out_block);
    for (int v = 0; v < s_.vectors; ++v) {
      for (int part = 0; part < s_.lanes; part += width) {
        const auto [in, within] = block_of(v * s_.lanes + part);
        const Expr block = b_.let("out_block", in);
        const auto store_block = [&] {
          const Expr to = b_.let("to", first_result(block) + within);
          b_.unroll("r", s_.rows, [&](Expr r) {
            b_.unroll("p", s_.columns, [&](Expr p) {
              when(has_results(r + 1, p + 1), [&] {
                const Expr value = (*sums_)[(r * s_.columns + p) * s_.vectors + v];
                std::vector<Expr> lanes;
                for (int i = 0; i < width && width < s_.lanes; ++i) lanes.push_back(kernel::lane(value, part + i));
                const Expr piece = width == s_.lanes ? value : width == 1 ? lanes[0] : kernel::vector(lanes);
                const Expr at = result_at(to, r, p);
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

  const DirectConvSchedule& s_;
};

// One vector of several texels.
Expr read_texels(Builder& b, const Array& image, const Expr& first, int count) {
  if (count == 1) return image[first];
  std::vector<Expr> lanes;
  for (int i = 0; i < count; ++i) {
    const Expr texel = b.let("texel", image[first + i]);
    for (int l = 0; l < texel->type.lanes; ++l) lanes.push_back(kernel::lane(texel, l));
  }
  return kernel::vector(std::move(lanes));
}

}  // namespace

void add_direct_products(Builder& b, const DirectConvSchedule& s, const Array& weights, const Expr& first,
                         const Array& sums, FunctionRef<Expr(const Expr&, const Expr&)> pixel) {
  for (int i = 0; i < s.load; ++i) {
    const Array wide = b.registers("w", {DType::Float32, s.lanes}, s.vectors);
    b.unroll("v", s.vectors, [&](Expr v) {
      const int width = s.lanes / s.weight_floats();
      const Expr at = first + i * (s.vectors * width) + v * width;
      wide[v] = s.weight_is_image() ? read_texels(b, weights, at, width) : Expr(weights.at(at, width));
    });
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
