#include <utility>

#include "base/check.h"
#include "base/function_ref.h"
#include "routines/gpu/conv/winograd_conv.h"
#include "routines/gpu/conv/winograd_transform.h"
#include "routines/gpu/remember.h"

namespace neo::gpu {
namespace {

using kernel::Array;
using kernel::Builder;
using kernel::Expr;

constexpr int64_t kMax = 1 << 24;

// One tile of one block of channels, and the first channel of the vector in it.
struct TilePlace {
  Expr image, block, row, column, lane;
};

std::string kernel_name(const char* part, const WinogradConv& c, const WinogradSchedule& s) {
  const ConvGeometry& g = c.geometry;
  const auto last = g.window.strides.size() - 1;
  std::string name =
      str("conv_winograd_", part, "_k", g.kernel[1], "x", g.kernel[2], "_s", g.axes == 2 ? g.window.strides[0] : 1, "x",
          g.window.strides[last], "_b", c.block, "_m", s.tile, "w", s.width, "_", c.result.tag());
  if (!s.is_fused()) return name + str("_t", s.threads);
  const DirectConvSchedule& p = s.product;
  return name + str("_l", p.lanes, "v", p.vectors, "c", p.columns, "i", p.inner, "w", p.load, "_n", s.steps);
}

// The base of the kernels of one convolution: parameters of the tensors, and the transforms of one tile.
class WinogradKernel {
 public:
  WinogradKernel(const char* part, const WinogradConv& conv, const WinogradSchedule& schedule)
      : c_(conv), s_(schedule), b_(kernel_name(part, conv, schedule)) {
    const ConvGeometry& g = conv.geometry;
    const auto last = g.window.strides.size() - 1;
    h_ = winograd_axis(g.kernel[1], g.axes == 2 ? g.window.strides[0] : 1, schedule.tile, 0, WinogradLast::Whole);
    w_ = winograd_axis(g.kernel[2], g.window.strides[last], schedule.tile, 0, WinogradLast::Whole);
    points_ = static_cast<int>(h_.points() * w_.points());
  }

  // Parameters: the input, a point after the other [point][block][tile][channel].
  kernel::Kernel input() {
    images_ = b_.size("images", 1, 1 << 20);
    declare_tiles();
    groups_ = b_.size("groups", 1, kMax / s_.threads);
    declare_input();
    const Expr elements = blocks_ * images_ * tiles_h_ * tiles_w_ * (points_ * c_.block);
    const Array x = b_.input("x", DType::Float32, input_elements()),
                v = b_.output("v", DType::Float32, elements, DType::Float32);
    each_tile(blocks_, [&](const TilePlace& at) {
      transform_input(x, at,
                      [&](int point, const Expr& value) { v.at(transformed(point, blocks_, at), s_.width) = value; });
    });
    return b_.finish();
  }

  kernel::Kernel output() {
    images_ = b_.size("images", 1, 1 << 20);
    declare_tiles();
    groups_ = b_.size("groups", 1, kMax / s_.threads);
    declare_output();
    const Expr elements = out_blocks_ * images_ * tiles_h_ * tiles_w_ * (points_ * c_.block);
    const Array m = b_.input("m", DType::Float32, elements, DType::Float32),
                y = b_.output("y", DType::Float32, output_elements());
    result_.emplace(b_, c_.result, out_blocks_ * c_.block, output_elements());
    each_tile(out_blocks_, [&](const TilePlace& at) {
      transform_output(y, at, [&](int point) { return Expr(m.at(transformed(point, out_blocks_, at), s_.width)); });
    });
    return b_.finish();
  }

  kernel::Kernel fused() {
    const int64_t tiles = s_.block_tiles(), panel = s_.panel();
    images_ = b_.size("images", 1, 1 << 20);
    declare_tiles();
    declare_input();
    declare_output();
    plane_ = b_.size("plane", 1, kMax);  // tiles of an image
    const Expr all_tiles = b_.size("tiles", 1, 1 << 26), turns = b_.size("turns", 1, (1 << 26) / tiles);
    const Expr workers = b_.size("workers", 1, kWinogradMostWorkers), parts = b_.size("parts", 1, 1 << 10);
    panels_ = b_.size("panels", 1, 1 << 16);
    const Expr part_panels = b_.size("part_panels", 1, 1 << 16);
    const Array x = b_.input("x", DType::Float32, input_elements());
    const Array u = b_.input("u", DType::Float32, panels_ * blocks_ * (points_ * c_.block * panel), DType::Float32);
    const Array v =
        b_.inout("v", DType::Float32, workers * parts * blocks_ * (points_ * tiles * c_.block), DType::Float32);
    const Array m = b_.inout("m", DType::Float32, workers * parts * (points_ * tiles * panel), DType::Float32);
    const Array y = b_.output("y", DType::Float32, output_elements());
    result_.emplace(b_, c_.result, out_blocks_ * c_.block, output_elements());
    const Expr worker = b_.group(0, "worker", workers), part = b_.group(1, "part", parts);
    const Expr slice = b_.let("slice", worker * parts + part);
    b_.loop("turn", 0, turns, [&](Expr turn) {
      const Expr first = b_.let("first", (turn * workers + worker) * tiles);
      b_.loop("i", 0, min(tiles, all_tiles - first), [&](Expr i) {
        each_vector(first + i, blocks_, [&](const TilePlace& at) {
          transform_input(x, at, [&](int point, const Expr& value) {
            v.at((((slice * points_ + point) * blocks_ + at.block) * tiles + i) * c_.block + at.lane, s_.width) = value;
          });
        });
      });
      b_.loop("p", 0, part_panels, [&](Expr p) {
        const Expr at_panel = opaque("panel", part * part_panels + p);
        b_.when(at_panel < panels_ && first < all_tiles, [&] {
          b_.loop("point", 0, points_, [&](Expr point) {
            b_.loop("step", 0, min(s_.steps, ceildiv(all_tiles - first, s_.product.columns)),
                    [&](Expr step) { multiply(slice * points_ + point, step, point * panels_ + at_panel, v, u, m); });
          });
          b_.loop("i", 0, min(tiles, all_tiles - first), [&](Expr i) {
            b_.loop("k", 0, panel / c_.block, [&](Expr k) {
              const Expr block = opaque("block", at_panel * (panel / c_.block) + k);
              b_.when(block < out_blocks_, [&] {
                tile_of(first + i, [&](TilePlace at) {
                  at.block = block;
                  each_lane(at, [&](const TilePlace& place) {
                    transform_output(y, place, [&](int point) {
                      const Expr row = (slice * points_ + point) * tiles + i;
                      return Expr(m.at(row * panel + k * c_.block + place.lane, s_.width));
                    });
                  });
                });
              });
            });
          });
        });
      });
    });
    return b_.finish();
  }

 private:
  void declare_tiles() {
    tiles_h_ = b_.size("tiles_h", 1, kMax);
    tiles_w_ = b_.size("tiles_w", 1, kMax);
  }

  void declare_input() {
    blocks_ = b_.size("in_blocks", 1, 1 << 16);
    in_h_ = b_.size("in_h", 1, kMax);
    in_w_ = b_.size("in_w", 1, kMax);
    pad_h_ = b_.size("pad_h", -(1 << 16), 1 << 16);
    pad_w_ = b_.size("pad_w", -(1 << 16), 1 << 16);
  }

  void declare_output() {
    out_blocks_ = b_.size("out_blocks", 1, 1 << 16);
    out_h_ = b_.size("out_h", 1, kMax);
    out_w_ = b_.size("out_w", 1, kMax);
  }

  Expr input_elements() const { return images_ * blocks_ * in_h_ * in_w_ * c_.block; }
  Expr output_elements() const { return images_ * out_blocks_ * out_h_ * out_w_ * c_.block; }

  // A number in [0, 2^26) of which the verifier learns from guards alone: its proofs stay short.
  Expr opaque(const char* name, const Expr& value) { return b_.let(name, value & ((1 << 26) - 1)); }

  // A thread for every vector of channels of every tile.
  void each_tile(const Expr& blocks, FunctionRef<void(const TilePlace&)> body) {
    const int vectors = c_.block / s_.width;
    const Expr item = opaque("item", b_.group(0, "gx", groups_) * s_.threads + b_.local(0, "lx", s_.threads));
    const Expr z = b_.group(2, "gz", images_ * blocks);
    TilePlace at;
    at.row = opaque("tile_y", b_.group(1, "gy", tiles_h_));
    at.column = opaque("tile_x", item / vectors);
    at.lane = b_.let("lane", item % vectors * s_.width);
    at.image = opaque("image", z / blocks);
    at.block = opaque("block", z % blocks);
    b_.when(at.row < tiles_h_ && at.column < tiles_w_ && at.image < images_ && at.block < blocks, [&] { body(at); });
  }

  // Calls `body` with the place of tile `number`, if there is one.
  void tile_of(const Expr& number, FunctionRef<void(const TilePlace&)> body) {
    TilePlace at;
    at.image = opaque("image", number / plane_);
    at.row = opaque("tile_y", number % plane_ / tiles_w_);
    at.column = b_.let("tile_x", number % plane_ % tiles_w_);
    b_.when(at.image < images_ && at.row < tiles_h_, [&] { body(at); });
  }

  void each_lane(TilePlace at, FunctionRef<void(const TilePlace&)> body) {
    b_.loop("l", 0, c_.block / s_.width, [&](Expr l) {
      at.lane = l * s_.width;
      body(at);
    });
  }

  void each_vector(const Expr& number, const Expr& blocks, FunctionRef<void(const TilePlace&)> body) {
    tile_of(number, [&](TilePlace at) {
      b_.loop("block", 0, blocks, [&](Expr block) {
        at.block = block;
        each_lane(at, body);
      });
    });
  }

  Expr transformed(int point, const Expr& blocks, const TilePlace& at) const {
    const Expr plane = ((point * blocks + at.block) * images_ + at.image) * tiles_h_ + at.row;
    return (plane * tiles_w_ + at.column) * c_.block + at.lane;
  }

  void transform_input(const Array& x, const TilePlace& at, FunctionRef<void(int, const Expr&)> store) {
    const int rows = static_cast<int>(h_.points()), columns = static_cast<int>(w_.points());
    const Expr top = b_.let("top", at.row * h_.step() - pad_h_), left = b_.let("left", at.column * w_.step() - pad_w_);
    const Expr inside = top >= 0 && top + rows <= in_h_ && left >= 0 && left + columns <= in_w_;
    const Expr plane = at.image * blocks_ + at.block;
    const auto transform = [&](FunctionRef<Expr(int, int)> sample) {
      std::vector<std::vector<Expr>> half(static_cast<size_t>(rows));
      for (int j = 0; j < columns; ++j) {
        std::vector<Expr> samples;
        for (int i = 0; i < rows; ++i) samples.push_back(b_.let("d", sample(i, j)));
        const std::vector<Expr> column = transform_winograd_input(b_, h_, samples);
        for (size_t i = 0; i < half.size(); ++i) half[i].push_back(column[i]);
      }
      for (int i = 0; i < rows; ++i) {
        const std::vector<Expr> row = transform_winograd_input(b_, w_, half[static_cast<size_t>(i)]);
        for (int j = 0; j < columns; ++j) store(i * columns + j, row[static_cast<size_t>(j)]);
      }
    };
    b_.when(
        inside,
        [&] {
          const Expr first = b_.let("first", ((plane * in_h_ + top) * in_w_ + left) * c_.block + at.lane);
          transform([&](int i, int j) { return Expr(x.at(first + (i * in_w_ + j) * c_.block, s_.width)); });
        },
        [&] {
          const Expr zeros = s_.width == 1 ? kernel::real(0) : kernel::broadcast(kernel::real(0), s_.width);
          transform([&](int i, int j) {
            const Expr row = top + i, column = left + j;
            const Expr from = (plane * in_h_ + min(max(row, 0), in_h_ - 1)) * in_w_ + min(max(column, 0), in_w_ - 1);
            return select(row >= 0 && row < in_h_ && column >= 0 && column < in_w_,
                          Expr(x.at(from * c_.block + at.lane, s_.width)), zeros);
          });
        });
  }

  void transform_output(const Array& y, const TilePlace& at, FunctionRef<Expr(int)> product) {
    const int rows = static_cast<int>(h_.tile), columns = static_cast<int>(w_.tile);
    const int points_w = static_cast<int>(w_.points());
    std::vector<std::vector<Expr>> half(static_cast<size_t>(rows));
    for (int j = 0; j < points_w; ++j) {
      std::vector<Expr> products;
      for (int i = 0; i < h_.points(); ++i) products.push_back(b_.let("m", product(i * points_w + j)));
      const std::vector<Expr> column = transform_winograd_output(b_, h_, products);
      for (size_t i = 0; i < half.size(); ++i) half[i].push_back(column[i]);
    }
    const Expr top = b_.let("top", at.row * rows), left = b_.let("left", at.column * columns);
    const Expr plane = at.image * out_blocks_ + at.block;
    const Expr first = b_.let("first", ((plane * out_h_ + top) * out_w_ + left) * c_.block + at.lane);
    const Expr bias = b_.let("bias", result_->bias(at.block * c_.block + at.lane, s_.width));
    for (int r = 0; r < rows; ++r) {
      b_.when(top + r < out_h_, [&] {
        const std::vector<Expr> row = transform_winograd_output(b_, w_, half[static_cast<size_t>(r)]);
        for (int i = 0; i < columns; ++i) {
          b_.when(left + i < out_w_, [&] {
            const Expr to = first + (r * out_w_ + i) * c_.block;
            y.at(to, s_.width) = result_->finish(row[static_cast<size_t>(i)] + bias, to);
          });
        }
      });
    }
  }

  // The products of one register block of tiles with the weights of one point and panel.
  void multiply(const Expr& point, const Expr& step, const Expr& weights, const Array& v, const Array& u,
                const Array& m) {
    const DirectConvSchedule& p = s_.product;
    const int64_t tiles = s_.block_tiles(), panel = s_.panel();
    const Array sums = b_.registers("sum", {DType::Float32, p.lanes}, p.columns * p.vectors);
    b_.unroll("i", p.columns * p.vectors, [&](Expr i) { sums[i] = 0.0f; });
    b_.loop("block", 0, blocks_, [&](Expr block) {
      const Expr from = b_.let("from", ((point * blocks_ + block) * tiles + step * p.columns) * c_.block);
      const Expr tap = b_.let("weights", (weights * blocks_ + block) * (c_.block * panel));
      b_.loop("c", 0, c_.block / p.inner, [&](Expr c) {
        b_.unroll("n", p.inner / p.load, [&](Expr n) {
          const Expr channel = c * p.inner + n * p.load;
          const Array pixels = b_.registers("pixel", {DType::Float32, p.load}, p.columns);
          b_.unroll("i", p.columns, [&](Expr i) { pixels[i] = v.at(from + i * c_.block + channel, p.load); });
          add_direct_products(b_, p, u, tap + channel * panel, sums,
                              [&](const Expr&, const Expr& i) { return Expr(pixels[i]); });
        });
      });
    });
    b_.unroll("i", p.columns, [&](Expr i) {
      b_.unroll("n", p.vectors, [&](Expr n) {
        m.at((point * tiles + step * p.columns + i) * panel + n * p.lanes, p.lanes) = sums[i * p.vectors + n];
      });
    });
  }

  const WinogradConv& c_;
  const WinogradSchedule& s_;
  Builder b_;
  WinogradAxis h_, w_;
  int points_ = 0;
  Expr images_, blocks_, out_blocks_, in_h_, in_w_, out_h_, out_w_, pad_h_, pad_w_, tiles_h_, tiles_w_, groups_, plane_,
      panels_;
  std::optional<ResultParameters> result_;
};

}  // namespace

kernel::Kernel winograd_input_kernel(const WinogradConv& conv, const WinogradSchedule& schedule) {
  return remember_kernel(kernel_name("input", conv, schedule),
                         [&] { return WinogradKernel("input", conv, schedule).input(); });
}

kernel::Kernel winograd_output_kernel(const WinogradConv& conv, const WinogradSchedule& schedule) {
  return remember_kernel(kernel_name("output", conv, schedule),
                         [&] { return WinogradKernel("output", conv, schedule).output(); });
}

kernel::Kernel winograd_fused_kernel(const WinogradConv& conv, const WinogradSchedule& schedule) {
  return remember_kernel(kernel_name("fused", conv, schedule),
                         [&] { return WinogradKernel("fused", conv, schedule).fused(); });
}

}  // namespace neo::gpu
