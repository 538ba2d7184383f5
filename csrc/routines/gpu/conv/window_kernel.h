#pragma once

#include <optional>
#include <string>

#include "base/function_ref.h"
#include "routines/gpu/conv/direct_conv.h"

namespace neo::gpu {

// The layouts and the window of a convolution's kernel, for names: "k3x3_s1x1_d1x1", "f..." where the plane
// is one row, "in_last_..." where the input's channels are.
std::string window_tag(const DirectConv& conv);

// The base of kernels that sum windows into rows x columns pixels of a panel of output channels: parameters, the places
// of a thread's pixels, and reads at the edge of the input.
class WindowKernel {
 protected:
  using Array = kernel::Array;
  using Expr = kernel::Expr;

  // Groups of a launch along the columns, the rows and the panels of the output.
  struct Groups {
    Expr column, row, panel;
  };

  // rows x columns pixels, and `panel` output channels.
  WindowKernel(const DirectConv& conv, std::string name, int rows, int columns, int panel);
  ~WindowKernel() = default;

  void declare_sizes();
  // `weights` elements: floats, of an image texels.
  void declare_memory(const Expr& weights, bool input_is_image = false, bool weight_is_image = false);
  // order 0: the panels vary the slowest; 1: the fastest. Sets the image.
  Groups declare_groups(int order, const Expr& columns, const Expr& rows, const Expr& panels);
  // The place of the first pixel: its column, its row, both in the output, and its panel.
  void place(const Expr& column, const Expr& row, const Expr& panel);

  // The pixels begin inside the output.
  Expr is_some() const;
  // No window of the pixels leaves the input.
  Expr is_whole() const;
  // Output columns of pixels whose windows are side by side, in input columns.
  int span_w() const { return (columns_ - 1) * stride_w_ + (kernel_w_ - 1) * dilation_w_ + 1; }
  Expr panel_index() const { return group_ * panels_ + panel_at_; }
  // A number in [0, most), a power of two, of which the verifier learns from guards alone: its proofs stay short.
  Expr opaque(const char* name, const Expr& value, int64_t most = 1 << 26) { return b_.let(name, value & (most - 1)); }

  // The body where the row of taps lies in the input; several rows are tested pixel by pixel.
  void when_row(const Expr& ky, FunctionRef<void()> body);
  // Counts over all planes of this size, where channels are last; computed in 64 bits.
  Expr pixel_at(const Expr& height, const Expr& width, const Expr& y, const Expr& x);
  // The body where the element of the first pixel's row of taps is known, in `first_`.
  void from_first(const Expr& block, const Expr& ky, FunctionRef<void()> body);
  // Elements from one pixel of a row to the next.
  Expr next_input() const;
  Expr first_of_row(const Expr& r) const;
  // The element of one input pixel by `read`, j columns after the first; `zero` outside the input.
  Expr read_edge(const Expr& block, const Expr& ky, const Expr& r, const Expr& j, const Expr& zero,
                 FunctionRef<Expr(const Expr&)> read);
  // Comes before the others that say where results are.
  void find_result();
  // Whether so many rows and columns of pixels lie in the output.
  Expr has_results(const Expr& rows, const Expr& columns) const;
  Expr first_result(const Expr& block) const;
  // The element of a pixel of a block of output channels, the first one's given.
  Expr result_at(const Expr& first, const Expr& r, const Expr& p) const;

  const DirectConv& c_;
  kernel::Builder b_;
  const int rows_, columns_, panel_;
  int pixel_;  // elements of x that a pixel of a block has
  int kernel_h_ = 1, kernel_w_ = 1, stride_h_ = 1, stride_w_ = 1, dilation_h_ = 1, dilation_w_ = 1;
  Expr images_, groups_, blocks_, channels_, in_h_, in_w_, out_h_, out_w_, pad_h_, pad_w_, panels_;
  Expr in_pixels_, out_pixels_;  // of all images, where channels are last
  Expr image_, group_, panel_at_, row_, column_, in_x_, in_y_, first_, out_pixel_;
  std::optional<Array> x_, w_, y_, sums_;
  std::optional<ResultParameters> result_;
};

}  // namespace neo::gpu
