#include "routines/cpu/conv/winograd.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/check.h"
#include "routines/cpu/gemm/split.h"

namespace neo {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
// Tasks that keep a team busy where there are few blocks of tiles.
constexpr int64_t kWantedTasks = 8;

IndexRange panel_vectors(const WinogradPlan& plan, int64_t panel) {
  return even_part(plan.oc_vectors, plan.panels, panel);
}

// The floats from one point to the next, such that neighbours fall into different sets of a cache.
int64_t spread(int64_t floats) {
  constexpr int64_t kLine = 16;
  return (ceil_div(floats, kLine) | 1) * kLine;
}

// Rows are what points give the three weights: (1, p, p^2) / (d/dx of x W(x^2) at p), W as in the input transform.
std::vector<double> weight_transform(int64_t tile) {
  const double* points = tile == 2 ? kWinogradPoints2 : tile == 4 ? kWinogradPoints4 : kWinogradPoints6;
  const int64_t pairs = tile / 2;
  std::vector<double> g(static_cast<size_t>(3 * (tile + 2)), 0.0);
  double whole = 1;
  for (int64_t i = 0; i < pairs; ++i) {
    const double p = points[i];
    whole *= -p * p;
    double scale = 2 * p * p;
    for (int64_t j = 0; j < pairs; ++j) scale *= j == i ? 1 : p * p - points[j] * points[j];
    for (int64_t sign = 0; sign < 2; ++sign) {
      double* row = &g[static_cast<size_t>(3 * (1 + 2 * i + sign))];
      row[0] = 1 / scale;
      row[1] = (sign ? -p : p) / scale;
      row[2] = p * p / scale;
    }
  }
  g[0] = 1 / whole;
  g[static_cast<size_t>(3 * (tile + 2) - 1)] = 1;
  return g;
}

struct TileAt {
  int64_t image, top, left;  // of the output

  static TileAt of(const WinogradPlan& plan, int64_t tile) {
    const int64_t in_image = tile % (plan.tiles_h * plan.tiles_w);
    return {tile / (plan.tiles_h * plan.tiles_w), in_image / plan.tiles_w * plan.schedule.tile,
            in_image % plan.tiles_w * plan.schedule.tile};
  }
};

void transform_block(const WinogradPlan& plan, const WinogradKernels& kernels, const WinogradArgs& args,
                     IndexRange tiles, float* transformed) {
  const ConvShape& s = plan.shape;
  const int64_t size = plan.schedule.tile + 2;
  WinogradInput t;
  t.row = s.iw * plan.lanes;
  t.blocks = plan.ic_vectors;
  t.block = args.src_block;
  t.dst_point = plan.input_point;
  for (int64_t i = tiles.begin; i < tiles.end; ++i) {
    const TileAt at = TileAt::of(plan, i);
    const int64_t ih = at.top - s.pad_top, iw = at.left - s.pad_left;
    t.src = args.src + at.image * args.src_batch;
    t.first = (ih * s.iw + iw) * plan.lanes;
    t.top = std::clamp<int64_t>(-ih, 0, size);
    t.bottom = std::clamp<int64_t>(s.ih - ih, 0, size);
    t.left = std::clamp<int64_t>(-iw, 0, size);
    t.right = std::clamp<int64_t>(s.iw - iw, 0, size);
    t.dst = transformed + (i - tiles.begin) * plan.tile_stride;
    kernels.input[plan.schedule.tile / 2](t);
  }
}

// The products of all points, for one panel of output channels.
void multiply_panel(const WinogradPlan& plan, const TileKernels& kernels, const WinogradArgs& args, int64_t count,
                    IndexRange vectors, const float* transformed, float* products) {
  const int64_t width = vectors.size() * plan.lanes, ic = plan.shape.ic;
  const int64_t parts = ceil_div(count, kernels.max_rows[vectors.size()]);
  const TileTap tap;
  Tile tile;
  tile.taps = &tap;
  tile.tap_count = 1;
  tile.step = plan.tile_stride;
  tile.block_size = tile.last_size = ic;
  tile.weight_step = width;
  tile.dst_row = plan.product_row;
  for (int64_t v = 0; v < vectors.size(); ++v) tile.dst_vector[v] = v * plan.lanes;
  tile.lo = -kInfinity;
  tile.hi = kInfinity;
  const float* weight = args.weight + vectors.begin * plan.lanes * plan.points * ic;
  for (int64_t point = 0; point < plan.points; ++point) {
    tile.weight = weight + point * ic * width;
    for (int64_t i = 0; i < parts; ++i) {
      const IndexRange rows = even_part(count, parts, i);
      tile.src = transformed + point * plan.input_point + rows.begin * plan.tile_stride;
      tile.dst = products + point * plan.product_point + rows.begin * plan.product_row;
      kernels.rows[vectors.size()][rows.size()](tile);
    }
  }
}

void transform_products(const WinogradPlan& plan, const WinogradKernels& kernels, const WinogradArgs& args,
                        IndexRange tiles, IndexRange vectors, const float* products) {
  const ConvShape& s = plan.shape;
  const int64_t m = plan.schedule.tile;
  WinogradOutput t;
  t.src_point = plan.product_point;
  t.vectors = vectors.size();
  t.last_lanes = std::min(s.oc - (vectors.end - 1) * plan.lanes, plan.lanes);
  if (args.bias) t.bias = args.bias + vectors.begin * plan.lanes;
  t.residual_block = args.residual_block;
  t.dst_block = args.dst_block;
  t.row = s.ow * plan.lanes;
  t.lo = args.lo;
  t.hi = args.hi;
  for (int64_t i = tiles.begin; i < tiles.end; ++i) {
    const TileAt at = TileAt::of(plan, i);
    const int64_t pixel = (at.top * s.ow + at.left) * plan.lanes;
    t.src = products + (i - tiles.begin) * plan.product_row;
    t.dst = args.dst + at.image * args.dst_batch + vectors.begin * args.dst_block + pixel;
    if (args.residual) {
      t.residual = args.residual + at.image * args.residual_batch + vectors.begin * args.residual_block + pixel;
    }
    t.rows = std::min(m, s.oh - at.top);
    t.columns = std::min(m, s.ow - at.left);
    kernels.output[m / 2](t);
  }
}

}  // namespace

const char* reject_winograd(const ConvShape& s) {
  if (s.kh != 3 || s.kw != 3) return "the kernel is not 3x3";
  if (s.stride_h != 1 || s.stride_w != 1) return "the stride is not 1";
  if (s.dilation_h != 1 || s.dilation_w != 1) return "the dilation is not 1";
  if (s.groups != 1) return "more than one group";
  return nullptr;
}

WinogradPlan plan_winograd(const ConvShape& shape, const WinogradSchedule& schedule, int64_t lanes) {
  NEO_ASSERT(!reject_winograd(shape));
  const int64_t m = schedule.tile;
  WinogradPlan plan;
  plan.shape = shape;
  plan.schedule = schedule;
  plan.lanes = lanes;
  plan.points = (m + 2) * (m + 2);
  plan.ic_vectors = ceil_div(shape.ic, lanes);
  plan.oc_vectors = ceil_div(shape.oc, lanes);
  plan.panels = ceil_div(plan.oc_vectors, schedule.oc_vectors);
  plan.tiles_h = ceil_div(shape.oh, m);
  plan.tiles_w = ceil_div(shape.ow, m);
  plan.tiles = shape.n * plan.tiles_h * plan.tiles_w;
  plan.blocks = ceil_div(plan.tiles, schedule.block);
  plan.panel_parts = plan.blocks > 0 ? std::min(plan.panels, ceil_div(kWantedTasks, plan.blocks)) : 1;
  plan.tasks = plan.blocks * plan.panel_parts;
  const int64_t most = plan.blocks > 0 ? ceil_div(plan.tiles, plan.blocks) : 0;
  plan.tile_stride = plan.ic_vectors * lanes;
  plan.input_point = spread(most * plan.tile_stride);
  plan.product_row = std::min(plan.oc_vectors, schedule.oc_vectors) * lanes;
  plan.product_point = spread(most * plan.product_row);
  plan.workspace_size = plan.points * (plan.input_point + plan.product_point);
  return plan;
}

int64_t winograd_weight_size(const WinogradPlan& plan) {
  return plan.points * plan.shape.ic * plan.oc_vectors * plan.lanes;
}

void pack_winograd_weight(const WinogradPlan& plan, const float* weight, float* packed) {
  const int64_t size = plan.schedule.tile + 2, ic = plan.shape.ic, oc = plan.shape.oc;
  const std::vector<double> g = weight_transform(plan.schedule.tile);
  const auto most = static_cast<size_t>(plan.schedule.oc_vectors * plan.lanes);
  std::vector<double> taps(9 * most), half(static_cast<size_t>(size) * 3 * most);
  for (int64_t p = 0; p < plan.panels; ++p) {
    const IndexRange vectors = panel_vectors(plan, p);
    const int64_t first = vectors.begin * plan.lanes, width = vectors.size() * plan.lanes;
    float* panel = packed + first * plan.points * ic;
    for (int64_t c = 0; c < ic; ++c) {
      for (int64_t o = 0; o < width; ++o) {
        for (int64_t k = 0; k < 9; ++k) {
          taps[static_cast<size_t>(k * width + o)] = first + o < oc ? weight[((first + o) * ic + c) * 9 + k] : 0.0;
        }
      }
      for (int64_t i = 0; i < size; ++i) {
        const double* row = &g[static_cast<size_t>(3 * i)];
        for (int64_t j = 0; j < 3; ++j) {
          double* to = &half[static_cast<size_t>((i * 3 + j) * width)];
          const double* from = &taps[static_cast<size_t>(j * width)];
          for (int64_t o = 0; o < width; ++o) {
            to[o] = row[0] * from[o] + row[1] * from[3 * width + o] + row[2] * from[6 * width + o];
          }
        }
      }
      for (int64_t i = 0; i < size; ++i) {
        const double* from = &half[static_cast<size_t>(i * 3 * width)];
        for (int64_t j = 0; j < size; ++j) {
          const double* row = &g[static_cast<size_t>(3 * j)];
          float* to = panel + ((i * size + j) * ic + c) * width;
          for (int64_t o = 0; o < width; ++o) {
            to[o] = static_cast<float>(row[0] * from[o] + row[1] * from[width + o] + row[2] * from[2 * width + o]);
          }
        }
      }
    }
  }
}

double winograd_error(int64_t tile, int64_t ic) {
  const double many = tile == 2 ? 0.63 : tile == 4 ? 1.82 : 7.9;
  return many * (1 + 4.5 / static_cast<double>(ic));
}

void run_winograd(const WinogradPlan& plan, const WinogradKernels& kernels, const TileKernels& tiles,
                  const WinogradArgs& args, int64_t task_begin, int64_t task_end, WinogradMember& member) {
  float* products = member.workspace + plan.points * plan.input_point;
  for (int64_t task = task_begin; task < task_end; ++task) {
    const int64_t block = task / plan.panel_parts;
    const IndexRange mine = even_part(plan.tiles, plan.blocks, block);
    if (member.block != block) transform_block(plan, kernels, args, mine, member.workspace);
    member.block = block;
    const IndexRange panels = even_part(plan.panels, plan.panel_parts, task % plan.panel_parts);
    for (int64_t p = panels.begin; p < panels.end; ++p) {
      const IndexRange vectors = panel_vectors(plan, p);
      multiply_panel(plan, tiles, args, mine.size(), vectors, member.workspace, products);
      transform_products(plan, kernels, args, mine, vectors, products);
    }
  }
}

}  // namespace neo
