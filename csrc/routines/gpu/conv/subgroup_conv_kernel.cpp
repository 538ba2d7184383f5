#include <utility>

#include "base/check.h"
#include "base/function_ref.h"
#include "routines/gpu/conv/subgroup_conv.h"
#include "routines/gpu/conv/window_kernel.h"
#include "routines/gpu/remember.h"

namespace neo::gpu {
namespace {

using kernel::Array;
using kernel::Expr;

std::string kernel_name(const DirectConv& c, const SubgroupConvSchedule& s) {
  return str("conv_subgroup_", c.geometry.is_depthwise() ? "d" : "", window_tag(c), "_b", c.in_block, "_",
             c.result.tag(), "_v", s.vectors, "c", s.columns, "r", s.rows, "w", s.load, "k", s.reuse, "u", s.unroll,
             "o", s.order);
}

class SubgroupKernel : WindowKernel {
 public:
  SubgroupKernel(const DirectConv& conv, const SubgroupConvSchedule& schedule)
      : WindowKernel(conv, kernel_name(conv, schedule), schedule.rows, schedule.columns,
                     schedule.vectors * conv.in_block),
        s_(schedule),
        size_(conv.in_block),
        is_depthwise_(conv.geometry.is_depthwise()) {}

  kernel::Kernel run() {
    declare();
    b_.when(is_some(), [&] {
      sums_ = b_.registers("sum", kernel::kFloat, s_.rows * s_.columns * s_.vectors);
      b_.unroll("p", s_.rows * s_.columns, [&](Expr p) {
        b_.unroll("v", s_.vectors, [&](Expr v) {
          (*sums_)[p * s_.vectors + v] = result_->bias(panel_index() * panel_ + v * size_ + place_, 1);
        });
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
    const Expr columns = b_.size("groups_x", 1, kMax / s_.columns + 1);
    const Expr rows = b_.size("groups_y", 1, kMax / s_.rows + 1);
    const int taps = kernel_h_ * kernel_w_;
    declare_memory(is_depthwise_ ? panels_ * (taps * size_) : groups_ * panels_ * blocks_ * (taps * size_ * panel_));
    const Groups at = declare_groups(s_.order, columns, rows, panels_);
    place_ = b_.local(0, "place", size_);
    b_.subgroups(size_);
    place(at.column * s_.columns, at.row * s_.rows, at.panel);
  }

  // All products of the subgroup; `whole` where no window leaves the input.
  void accumulate(bool whole) {
    const auto over_rows = [&](const Expr& block) {
      b_.loop("ky", 0, kernel_h_, [&](Expr ky) { when_row(ky, [&] { taps(block, ky, whole); }); });
    };
    if (!is_depthwise_) return b_.loop("block", 0, blocks_, over_rows);
    b_.when(panel_at_ < blocks_, [&] { over_rows(panel_at_); });
  }

  void taps(const Expr& block, const Expr& ky, bool whole) {
    const Expr row = is_depthwise_ ? panel_at_ : panel_index() * blocks_ + block;
    const Expr weights = b_.let("weights", row * (kernel_h_ * kernel_w_) + ky * kernel_w_);
    if (!whole) return taps(block, ky, weights, false);
    from_first(block, ky, [&] { taps(block, ky, weights, true); });
  }

  void taps(const Expr& block, const Expr& ky, const Expr& weights, bool whole) {
    const auto over_taps = [&](FunctionRef<void(const Expr&)> body) {
      s_.unroll == 1 ? b_.unroll("kx", kernel_w_, body) : b_.loop("kx", 0, kernel_w_, body);
    };
    if (s_.reuse == 0) {
      over_taps([&](Expr kx) {
        const Array pixels = read(block, ky, kx * dilation_w_, s_.columns, stride_w_, whole);
        multiply(weights + kx, [&](const Expr& r, const Expr& p) { return Expr(pixels[r * s_.columns + p]); });
      });
      return;
    }
    const int span = span_w();
    const Array pixels = read(block, ky, 0, span, 1, whole);
    b_.unroll("kx", kernel_w_, [&](Expr kx) {
      multiply(weights + kx,
               [&](const Expr& r, const Expr& p) { return Expr(pixels[r * span + p * stride_w_ + kx * dilation_w_]); });
    });
  }

  // One channel of `count` input pixels of every row for each thread, `step` columns apart from `offset` on; zero
  // outside the input.
  Array read(const Expr& block, const Expr& ky, const Expr& offset, int count, int step, bool whole) {
    const Array pixels = b_.registers("pixel", kernel::kFloat, s_.rows * count);
    b_.unroll("r", s_.rows, [&](Expr r) {
      if (!whole) {
        b_.unroll("j", count, [&](Expr j) {
          pixels[r * count + j] = read_edge(block, ky, r, offset + j * step, kernel::real(0),
                                            [&](const Expr& at) { return x_->block_read(at); });
        });
        return;
      }
      const Expr from = first_of_row(r) + offset * size_;
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

  // The products of one tap.
  void multiply(const Expr& tap, FunctionRef<Expr(const Expr&, const Expr&)> pixel_of) {
    const auto each_pixel = [&](FunctionRef<void(const Expr&, const Expr&)> body) {
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
    find_result();
    for (int v = 0; v < s_.vectors; ++v) {
      const Expr block = b_.let("out_block", panel_at_ * s_.vectors + v);
      b_.when(block < channels_, [&] {
        const Expr to = b_.let("to", first_result(block));
        b_.unroll("r", s_.rows, [&](Expr r) {
          b_.unroll("p", s_.columns, [&](Expr p) {
            b_.when(has_results(r + 1, p + 1), [&] {
              const Expr at = result_at(to, r, p);
              y_->block_write(at, result_->finish((*sums_)[(r * s_.columns + p) * s_.vectors + v], at + place_));
            });
          });
        });
      });
    }
  }

  const SubgroupConvSchedule& s_;
  const int size_;
  const bool is_depthwise_;
  Expr place_;
};

}  // namespace

kernel::Kernel subgroup_conv_kernel(const DirectConv& conv, const SubgroupConvSchedule& schedule) {
  return remember_kernel(kernel_name(conv, schedule), [&] { return SubgroupKernel(conv, schedule).run(); });
}

}  // namespace neo::gpu
