#include "routines/gpu/conv/window_kernel.h"

#include <utility>

#include "base/check.h"
#include "routines/gpu/movement/axes.h"

namespace neo::gpu {

using kernel::Expr;

namespace {

constexpr int64_t kMaxPixels = int64_t{1} << 28;  // of a batch, channels last

}  // namespace

std::string window_tag(const DirectConv& c) {
  const ConvGeometry& g = c.geometry;
  const auto last = g.window.strides.size() - 1;
  const bool plane = g.axes == 2;
  return str(c.in_last ? "in_last_" : "", c.out_last ? "out_last_" : "", c.flat ? "f" : "k", g.kernel[1], "x",
             g.kernel[2], "_s", plane ? g.window.strides[0] : 1, "x", g.window.strides[last], "_d",
             plane ? g.window.dilations[0] : 1, "x", g.window.dilations[last]);
}

WindowKernel::WindowKernel(const DirectConv& conv, std::string name, int rows, int columns, int panel)
    : c_(conv), b_(std::move(name)), rows_(rows), columns_(columns), panel_(panel), pixel_(conv.in_block) {
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
}

void WindowKernel::declare_sizes() {
  constexpr int64_t kMax = 1 << 24;
  images_ = b_.size("images", 1, 1 << 20);  // batch x groups
  groups_ = b_.size("groups", 1, 1 << 16);
  blocks_ = b_.size("in_blocks", 1, 1 << 16);
  channels_ = b_.size("out_blocks", 1, 1 << 16);
  in_h_ = b_.size("in_h", 1, kMax);
  in_w_ = b_.size("in_w", 1, kMax);
  out_h_ = b_.size("out_h", 1, kMax);
  out_w_ = b_.size("out_w", 1, kMax);
  pad_h_ = b_.size("pad_h", -(1 << 16), 1 << 16);
  pad_w_ = b_.size("pad_w", -(1 << 16), 1 << 16);
  panels_ = b_.size("panels", 1, 1 << 16);
  if (c_.in_last) in_pixels_ = b_.size("in_pixels", 1, kMaxPixels);
  if (c_.out_last) out_pixels_ = b_.size("out_pixels", 1, kMaxPixels);
}

void WindowKernel::declare_memory(const Expr& weights, bool input_is_image, bool weight_is_image) {
  if (input_is_image) pixel_ = c_.in_block / kernel::kTexel.lanes;
  const Expr inputs = (c_.in_last ? in_pixels_ * blocks_ : images_ * blocks_ * in_h_ * in_w_) * pixel_;
  x_ = input_is_image ? b_.image("x", inputs) : b_.input("x", DType::Float32, inputs);
  w_ = weight_is_image ? b_.image("w", weights) : b_.input("w", DType::Float32, weights);
  const Expr outputs = c_.out_last ? out_pixels_ * channels_ : images_ * channels_ * out_h_ * out_w_;
  const Expr results = outputs * c_.out_block;
  y_ = b_.output("y", DType::Float32, results);
  result_.emplace(b_, c_.result, groups_ * panels_ * panel_, results);
}

WindowKernel::Groups WindowKernel::declare_groups(int order, const Expr& columns, const Expr& rows,
                                                  const Expr& panels) {
  Groups at;
  at.column = b_.group(order == 0 ? 0 : 1, "gx", columns);
  if (order == 0) {
    at.row = b_.group(1, "gy", rows);
    const Expr z = b_.group(2, "gz", images_ * panels);
    image_ = opaque("image", z / panels);
    at.panel = z % panels;
  } else {
    at.panel = b_.group(0, "gz", panels);
    const Expr y = b_.group(2, "gy", images_ * rows);
    image_ = opaque("image", y / rows);
    at.row = y % rows;
  }
  return at;
}

void WindowKernel::place(const Expr& column, const Expr& row, const Expr& panel) {
  column_ = opaque("column", column);
  row_ = opaque("row", row);
  panel_at_ = opaque("panel", panel);
  group_ = opaque("group", image_ % groups_);
  in_x_ = b_.let("in_x", column_ * stride_w_ - pad_w_);
  in_y_ = b_.let("in_y", row_ * stride_h_ - pad_h_);
}

Expr WindowKernel::is_some() const {
  return row_ < out_h_ && column_ < out_w_ && panel_at_ < panels_ && image_ < images_ && group_ < groups_;
}

Expr WindowKernel::is_whole() const {
  const Expr inside = in_x_ >= 0 && in_x_ + span_w() <= in_w_;
  if (rows_ == 1) return inside;
  const int span_h = (rows_ - 1) * stride_h_ + (kernel_h_ - 1) * dilation_h_ + 1;
  return inside && in_y_ >= 0 && in_y_ + span_h <= in_h_;
}

void WindowKernel::when_row(const Expr& ky, FunctionRef<void()> body) {
  if (rows_ > 1) return body();
  const Expr y = in_y_ + ky * dilation_h_;
  b_.when(y >= 0 && y < in_h_, body);
}

Expr WindowKernel::pixel_at(const Expr& height, const Expr& width, const Expr& y, const Expr& x) {
  const Expr at[] = {image_, y, x}, sizes[] = {images_, height, width};
  return opaque("pixel", join_index_unproven(b_, at, sizes), kMaxPixels);
}

void WindowKernel::from_first(const Expr& block, const Expr& ky, FunctionRef<void()> body) {
  const Expr y = in_y_ + ky * dilation_h_;
  if (!c_.in_last) {
    first_ = b_.let("first", (((image_ * blocks_ + block) * in_h_ + y) * in_w_ + in_x_) * pixel_);
    return body();
  }
  const Expr pixel = pixel_at(in_h_, in_w_, y, in_x_);
  b_.when(pixel + (rows_ - 1) * stride_h_ * in_w_ + span_w() <= in_pixels_, [&] {
    first_ = b_.let("first", (pixel * blocks_ + block) * pixel_);
    body();
  });
}

Expr WindowKernel::next_input() const {
  return c_.in_last ? blocks_ * pixel_ : Expr(pixel_);
}

Expr WindowKernel::first_of_row(const Expr& r) const {
  return rows_ == 1 ? first_ : first_ + r * stride_h_ * in_w_ * next_input();
}

Expr WindowKernel::read_edge(const Expr& block, const Expr& ky, const Expr& r, const Expr& j, const Expr& zero,
                             FunctionRef<Expr(const Expr&)> read) {
  const Expr y = in_y_ + r * stride_h_ + ky * dilation_h_, x = in_x_ + j;
  const auto at = [&](const Expr& py, const Expr& px) {
    if (!c_.in_last) return read((((image_ * blocks_ + block) * in_h_ + py) * in_w_ + px) * pixel_);
    const Expr pixel = pixel_at(in_h_, in_w_, py, px);
    return read((min(pixel, in_pixels_ - 1) * blocks_ + block) * pixel_);
  };
  const Expr near_x = min(max(x, 0), in_w_ - 1);
  const Expr valid = x >= 0 && x < in_w_;
  if (rows_ == 1) return select(valid, at(y, near_x), zero);
  return select(valid && y >= 0 && y < in_h_, at(min(max(y, 0), in_h_ - 1), near_x), zero);
}

void WindowKernel::find_result() {
  if (c_.out_last) out_pixel_ = pixel_at(out_h_, out_w_, row_, column_);
}

Expr WindowKernel::first_result(const Expr& block) const {
  if (c_.out_last) return (out_pixel_ * channels_ + block) * c_.out_block;
  return (((image_ * channels_ + block) * out_h_ + row_) * out_w_ + column_) * c_.out_block;
}

Expr WindowKernel::has_results(const Expr& rows, const Expr& columns) const {
  const Expr inside = row_ + rows <= out_h_ && column_ + columns <= out_w_;
  return c_.out_last ? inside && out_pixel_ + (rows - 1) * out_w_ + columns <= out_pixels_ : inside;
}

Expr WindowKernel::result_at(const Expr& first, const Expr& r, const Expr& p) const {
  const Expr next = c_.out_last ? channels_ * c_.out_block : Expr(c_.out_block);
  return first + (rows_ == 1 ? p : r * out_w_ + p) * next;
}

}  // namespace neo::gpu
