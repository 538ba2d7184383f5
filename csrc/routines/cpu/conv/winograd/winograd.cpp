#include "routines/cpu/conv/winograd/winograd.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "base/check.h"
#include "base/int_math.h"
#include "routines/cpu/conv/winograd/winograd_fold.h"
#include "routines/cpu/microkernel/prefetch_plan.h"
#include "routines/patterns/winograd_form.h"

namespace neo {
namespace {

constexpr float kNoBound = std::numeric_limits<float>::infinity();
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

// The tiles of all images, row by row, are of four groups: last along h only, along neither axis, along w only, along
// both. Those of a block stand in this order, so that those that need a point are neighbours, whichever axis leaves it
// out.
constexpr int kTileGroups = 4;

struct TileGroup {
  bool last_h, last_w;

  static TileGroup at(int group) { return {group == 0 || group == 3, group >= 2}; }

  static int64_t along(const WinogradAxis& axis, bool last) {
    return last ? axis.tiles - axis.whole_tiles() : axis.whole_tiles();
  }
  int64_t rows(const WinogradPlan& plan) const { return along(plan.h, last_h); }     // of an image
  int64_t columns(const WinogradPlan& plan) const { return along(plan.w, last_w); }  // of such a row
  int64_t points(const WinogradPlan& plan) const {
    return (last_h ? plan.h.last_points() : plan.h.points()) * (last_w ? plan.w.last_points() : plan.w.points());
  }

  // The number of tiles of this group among the first `count`.
  int64_t among(const WinogradPlan& plan, int64_t count) const {
    const int64_t row = count / plan.w.tiles, column = count % plan.w.tiles, whole = plan.w.whole_tiles();
    const int64_t images = row / plan.h.tiles, row_of_image = row % plan.h.tiles;
    const bool in_last = row_of_image >= plan.h.whole_tiles();
    const int64_t full = last_h ? images * rows(plan) : images * rows(plan) + std::min(row_of_image, rows(plan));
    const int64_t of_row = last_w ? std::max<int64_t>(0, column - whole) : std::min(column, whole);
    return full * columns(plan) + (in_last == last_h ? of_row : 0);
  }
};

// Multiplications per pair of channels of the first `count` tiles.
int64_t products_of(const WinogradPlan& plan, int64_t count) {
  int64_t sum = 0;
  for (int i = 0; i < kTileGroups; ++i) sum += TileGroup::at(i).among(plan, count) * TileGroup::at(i).points(plan);
  return sum;
}

// A few blocks have as many products each, as nearly as whole tiles can; many as many tiles.
bool has_even_blocks(const WinogradPlan& plan) {
  constexpr int64_t kFew = 16;
  return (plan.h.last == 0 && plan.w.last == 0) || plan.blocks > kFew;
}

// First tile of block i.
int64_t block_begin(const WinogradPlan& plan, int64_t i) {
  if (i == plan.blocks) return plan.tiles;
  if (has_even_blocks(plan)) return even_part(plan.tiles, plan.blocks, i).begin;
  const int64_t wanted = plan.products * i / plan.blocks;
  int64_t low = 0, high = plan.tiles;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (products_of(plan, middle) < wanted)
      low = middle + 1;
    else
      high = middle;
  }
  return low > 0 && wanted - products_of(plan, low - 1) < products_of(plan, low) - wanted ? low - 1 : low;
}

int64_t largest_block(const WinogradPlan& plan) {
  if (plan.blocks == 0) return 0;
  if (has_even_blocks(plan)) return ceil_div(plan.tiles, plan.blocks);
  int64_t most = 0;
  for (int64_t i = 0; i < plan.blocks; ++i) {
    most = std::max(most, block_begin(plan, i + 1) - block_begin(plan, i));
  }
  return most;
}

// The tiles of one block.
class TileBlock {
 public:
  TileBlock(const WinogradPlan& plan, int64_t block) : plan_(plan) {
    const int64_t begin = block_begin(plan, block), end = block_begin(plan, block + 1);
    size_ = end - begin;
    for (int i = 0; i < kTileGroups; ++i) {
      before_[i] = TileGroup::at(i).among(plan, begin);
      sizes_[i] = TileGroup::at(i).among(plan, end) - before_[i];
    }
  }

  int64_t size() const { return size_; }

  // Those that have point (i, j).
  IndexRange at_point(int64_t i, int64_t j) const {
    const bool last_h = plan_.h.last_has(i), last_w = plan_.w.last_has(j);
    return {last_h ? 0 : sizes_[0], size_ - (last_w ? 0 : sizes_[2]) - (last_h && last_w ? 0 : sizes_[3])};
  }

  struct Place {
    TileGroup group;
    int64_t at;    // which of all tiles of the group
    int64_t left;  // tiles of the group that the block has from here on
  };
  Place find(int64_t tile) const {
    int group = 0;
    for (; tile >= sizes_[group]; ++group) tile -= sizes_[group];
    return {TileGroup::at(group), before_[group] + tile, sizes_[group] - tile};
  }

 private:
  const WinogradPlan& plan_;
  int64_t size_ = 0;
  int64_t before_[kTileGroups], sizes_[kTileGroups];
};

// Tiles [begin, end) of a block that are neighbours in one row of tiles of an image.
struct TileRun {
  int64_t begin, end;
  int64_t image, top, left;  // of the first one's output
  bool last_h, last_w;       // whether they are those with fewer points

  int64_t size() const { return end - begin; }

  static TileRun of(const WinogradPlan& plan, const TileBlock& block, int64_t begin, int64_t end) {
    const auto [group, at, left_of_group] = block.find(begin);
    const int64_t rows = group.rows(plan), columns = group.columns(plan);
    const int64_t row = at / columns % rows, column = at % columns;
    const int64_t top = (group.last_h ? plan.h.whole_tiles() : row) * plan.h.tile;
    const int64_t left = (group.last_w ? plan.w.whole_tiles() : column) * plan.w.tile;
    const int64_t count = std::min({end - begin, plan.run, columns - column, left_of_group});
    return {begin, begin + count, at / (rows * columns), top, left, group.last_h, group.last_w};
  }
};

int64_t points_of(const WinogradAxis& axis, bool last) {
  return last ? axis.last_points() : axis.points();
}

// The points whose products are with these weights.
IndexRange points_with(const WinogradAxis& axis, int64_t weight) {
  return {weight, weight + 1 < axis.weights() ? weight + 1 : axis.points()};
}

// Places of the points of a tile.
std::array<IndexRange, 2> places_of(const WinogradAxis& axis, bool last) {
  if (!last) return {IndexRange{0, axis.points()}, IndexRange{0, 0}};
  return {IndexRange{0, axis.last + 1}, IndexRange{axis.tile + 1, axis.tile + axis.last_points() - axis.last}};
}

auto input_transform(const WinogradKernels& kernels, const WinogradAxis& axis, bool last) {
  return last ? kernels.last_input[axis.stride][axis.pairs()][axis.last_pairs()]
              : kernels.input[axis.stride][axis.pairs()];
}

auto output_transform(const WinogradKernels& kernels, const WinogradAxis& axis, bool last) {
  return last ? kernels.last_output[axis.stride][axis.pairs()][axis.last_pairs()]
              : kernels.output[axis.stride][axis.pairs()][axis.tile];
}

// One axis alone: every tile at once.
void transform_line_run(const WinogradPlan& plan, const WinogradKernels& kernels, const TileRun& run, WinogradPass t,
                        float* transformed) {
  const ConvShape& s = plan.shape;
  const bool along_h = plan.h.kernel > 1;
  const WinogradAxis& axis = along_h ? plan.h : plan.w;
  const bool last = along_h ? run.last_h : run.last_w;
  const auto transform = input_transform(kernels, axis, last);
  const int64_t points = points_of(axis, last);
  const int64_t ih = run.top * s.stride_h - s.pad_top;
  t.src_step = along_h ? s.iw * plan.lanes : plan.lanes;
  t.dst_step = plan.input_point;
  t.dst_block = plan.lanes;
  t.blocks = plan.ic_vectors;
  for (int64_t i = 0; i < run.size(); ++i) {
    const int64_t iw = run.left * s.stride_w + i * plan.w.step() - s.pad_left;
    const int64_t at = along_h ? ih : iw, size = along_h ? s.ih : s.iw;
    const int64_t across = along_h ? iw : ih, across_size = along_h ? s.iw : s.ih;
    const bool is_inside = across >= 0 && across < across_size;
    t.begin = std::clamp<int64_t>(-at, 0, points);
    t.end = is_inside ? std::clamp<int64_t>(size - at, 0, points) : 0;
    t.first = (ih * s.iw + iw) * plan.lanes;
    t.dst = transformed + i * plan.tile_stride;
    transform(t);
  }
}

// The samples that a run reads, as an image in blocks of channels.
struct RunWindow {
  const float* src;
  int64_t first;             // offset of the first sample, which may lie outside
  int64_t row, block;        // offsets of the next row and block
  IndexRange rows, columns;  // that are inside

  static RunWindow of(const WinogradPlan& plan, const TileRun& run, const float* src, int64_t block) {
    const ConvShape& s = plan.shape;
    const int64_t ih = run.top * s.stride_h - s.pad_top, iw = run.left * s.stride_w - s.pad_left;
    return {src,
            (ih * s.iw + iw) * plan.lanes,
            s.iw * plan.lanes,
            block,
            inside(ih, s.ih, points_of(plan.h, run.last_h)),
            inside(iw, s.iw, plan.run_columns(run.size()))};
  }

  static RunWindow folded(const WinogradPlan& plan, const TileRun& run, const ConvOperands& args, float* window) {
    const int64_t rows = plan.h.points(), columns = plan.run_columns(run.size());
    fold_window(plan.source, args, args.src + run.image * args.src_batch, run.top, run.left, rows, columns, plan.lanes,
                window);
    return {window,      0, columns * plan.lanes, rows * columns * plan.lanes, {0, points_of(plan.h, run.last_h)},
            {0, columns}};
  }

 private:
  static IndexRange inside(int64_t first, int64_t size, int64_t count) {
    const int64_t begin = std::clamp<int64_t>(-first, 0, count);
    return {begin, std::clamp<int64_t>(size - first, begin, count)};
  }
};

// Lines of a tile from the one that is transformed to the one whose place is fetched.
constexpr int64_t kPrefetchLines = 2;

// Both axes: along h the columns of all tiles of the run, into `half`, then along w tile by tile.
void transform_plane_run(const WinogradPlan& plan, const WinogradKernels& kernels, const TileRun& run,
                         const RunWindow& window, float* transformed, float* half) {
  const int64_t lanes = plan.lanes, rows = plan.h.points(), columns = plan.run_columns(run.size());
  const auto [left, right] = window.columns;
  WinogradPass t;
  t.src = window.src;
  t.src_block = window.block;
  t.src_step = window.row;
  t.src_line = lanes;
  t.dst = half + left * lanes;
  t.dst_step = columns * lanes;
  t.dst_line = lanes;
  t.dst_block = rows * columns * lanes;
  t.lines = right - left;
  t.begin = window.rows.begin;
  t.end = window.rows.end;
  if (plan.fold == 1) t.prefetched = 2 * plan.w.step() * lanes;
  WinogradPass second;
  second.src = half;
  second.src_step = lanes;
  second.src_line = t.dst_step;
  second.src_block = t.dst_block;
  second.dst_step = plan.input_point;
  second.dst_line = plan.w.points() * plan.input_point;
  second.dst_block = lanes;
  second.end = points_of(plan.w, run.last_w);
  second.dst_prefetch = kPrefetchLines * second.dst_line;
  const auto along_h = plan.is_raw() ? kernels.raw_input : input_transform(kernels, plan.h, run.last_h);
  const auto along_w = plan.is_raw() ? kernels.raw_input : input_transform(kernels, plan.w, run.last_w);
  const std::array<IndexRange, 2> places = places_of(plan.h, run.last_h);
  for (int64_t b = 0; b < plan.ic_vectors; b += plan.run_vectors) {
    t.first = window.first + b * t.src_block + left * lanes;
    t.blocks = second.blocks = std::min(plan.run_vectors, plan.ic_vectors - b);
    along_h(t);
    for (int64_t line = 0; line < t.blocks * rows; ++line) {
      float* row = half + line * columns * lanes;
      std::fill_n(row, left * lanes, 0.0f);
      std::fill_n(row + right * lanes, (columns - right) * lanes, 0.0f);
    }
    for (int64_t i = 0; i < run.size(); ++i) {
      for (const IndexRange lines : places) {
        if (lines.size() == 0) continue;
        second.lines = lines.size();
        second.first = i * plan.w.step() * lanes + lines.begin * second.src_line;
        second.dst = transformed + i * plan.tile_stride + b * lanes + lines.begin * second.dst_line;
        along_w(second);
      }
    }
  }
}

void transform_block(const WinogradPlan& plan, const WinogradKernels& kernels, const ConvOperands& args,
                     const TileBlock& block, float* transformed, float* half) {
  for (int64_t i = 0; i < block.size();) {
    const TileRun run = TileRun::of(plan, block, i, block.size());
    const float* src = args.src + run.image * args.src_batch;
    float* dst = transformed + i * plan.tile_stride;
    if (plan.fold > 1) {
      transform_plane_run(plan, kernels, run, RunWindow::folded(plan, run, args, half + plan.half), dst, half);
    } else if (plan.is_plane()) {
      transform_plane_run(plan, kernels, run, RunWindow::of(plan, run, src, args.src_channel), dst, half);
    } else {
      WinogradPass t;
      t.src = src;
      t.src_block = args.src_channel;
      transform_line_run(plan, kernels, run, t, dst);
    }
    i = run.end;
  }
}

// The products of all points, for one panel of output channels.
void multiply_panel(const WinogradPlan& plan, const TileKernels& kernels, const ConvOperands& args,
                    const TileBlock& block, IndexRange vectors, const float* transformed, float* products) {
  const int64_t width = vectors.size() * plan.lanes, ic = plan.shape.ic, most = kernels.max_rows[vectors.size()];
  const TileTap tap = {};
  Tile tile;
  tile.taps = &tap;
  tile.tap_count = 1;
  tile.step = plan.tile_stride;
  tile.block_size = tile.last_size = ic;
  tile.weight_step = width;
  tile.dst_row = plan.product_row;
  for (int64_t v = 0; v < vectors.size(); ++v) tile.dst_vector[v] = v * plan.lanes;
  tile.lo = -kNoBound;
  tile.hi = kNoBound;
  tile.weight = args.weight + vectors.begin * plan.lanes * plan.weights * ic;
  for (int64_t weight = 0; weight < plan.weights; ++weight, tile.weight += ic * width) {
    const IndexRange along_h = points_with(plan.h, weight / plan.w.weights());
    const IndexRange along_w = points_with(plan.w, weight % plan.w.weights());
    const int64_t parts = ceil_div(block.at_point(along_h.begin, along_w.begin).size(), most);
    // The next weights lie behind its own.
    auto prefetched = PrefetchPlan::over(tile.weight + ic * width, width, ic, along_h.size() * along_w.size() * parts);
    for (int64_t i = along_h.begin; i < along_h.end; ++i) {
      for (int64_t j = along_w.begin; j < along_w.end; ++j) {
        const int64_t point = i * plan.w.points() + j;
        const IndexRange here = block.at_point(i, j);
        const int64_t count = here.size(), blocks = ceil_div(count, most);
        for (int64_t b = 0; b < blocks; ++b) {
          const IndexRange rows = even_part(count, blocks, b);
          tile.src = transformed + point * plan.input_point + (here.begin + rows.begin) * plan.tile_stride;
          tile.dst = products + point * plan.product_point + (here.begin + rows.begin) * plan.product_row;
          prefetched.give(tile);
          kernels.rows[vectors.size()][rows.size()](tile);
        }
      }
    }
  }
}

// The same of weights that are packed as taps: some channels at once, so that taps are in the first-level cache when
// another row of points or other tiles combine them again.
void multiply_raw_panel(const WinogradPlan& plan, const WinogradKernels& kernels, const ConvOperands& args,
                        int64_t count, IndexRange vectors, const float* transformed, float* products) {
  constexpr int64_t kChannels = 32;
  const int64_t ic = plan.shape.ic, tap_floats = kWinogradRawTaps * plan.lanes;
  WinogradRaw t;
  t.src_point = plan.input_point;
  t.src_tile = plan.tile_stride;
  t.dst_point = plan.product_point;
  t.dst_tile = plan.product_row;
  std::fill_n(products, plan.points * plan.product_point, 0.0f);
  for (int64_t v = vectors.begin; v < vectors.end; ++v) {
    for (int64_t c = 0; c < ic; c += kChannels) {
      t.channels = std::min(kChannels, ic - c);
      t.weight = args.weight + (v * ic + c) * tap_floats;
      for (int64_t i = 0; i < count; i += kWinogradRawTiles) {
        t.src = transformed + i * plan.tile_stride + c;
        t.dst = products + i * plan.product_row + (v - vectors.begin) * plan.lanes;
        t.prefetched = t.weight + (i == 0 ? t.channels * tap_floats : 0);
        kernels.multiply_raw(t);
      }
    }
  }
}

void transform_products(const WinogradPlan& plan, const WinogradKernels& kernels, const ConvOperands& args,
                        const TileBlock& block, IndexRange vectors, const float* products, float* half) {
  const ConvShape& s = plan.shape;
  const int64_t side = plan.pools ? 2 : 1;  // results along an axis to an element of the output
  const int64_t lanes = plan.lanes, row = s.ow / side * lanes;
  const bool is_plane = plan.is_plane(), along_h = plan.w.kernel == 1;
  WinogradEpilogue e;
  e.residual_block = args.residual_channel;
  e.last_lanes = std::min(s.oc - (vectors.end - 1) * lanes, lanes);
  if (args.bias) e.bias = args.bias + vectors.begin * lanes;
  e.lo = args.lo;
  e.hi = args.hi;
  WinogradPass first;
  first.src_step = plan.w.points() * plan.product_point;
  first.src_line = plan.product_point;
  first.src_block = lanes;
  first.dst_step = plan.w.points() * lanes;
  first.dst_line = lanes;
  first.dst_block = plan.h.tile * first.dst_step;
  WinogradPass last;
  last.src = half;
  last.src_step = is_plane ? lanes : plan.product_point;
  last.src_line = first.dst_step;
  last.src_block = is_plane ? first.dst_block : lanes;
  last.dst_step = along_h ? row : lanes;
  last.dst_line = row;
  last.dst_block = args.dst_channel;
  last.epilogue = &e;
  first.blocks = last.blocks = vectors.size();
  // Results that are pooled: in place, then the largest of these.
  WinogradPass lines = last;
  lines.dst = half;
  lines.dst_step = lanes;
  lines.dst_line = lines.src_line;
  lines.dst_block = lines.src_block;
  lines.epilogue = nullptr;
  WinogradResults results;
  results.row = row;
  results.dst_block = args.dst_channel;
  results.residual_block = args.residual_channel;
  for (int64_t i = 0; i < block.size(); ++i) {
    const TileRun at = TileRun::of(plan, block, i, i + 1);
    const int64_t pixel = at.top / side * row + at.left / side * lanes;
    const float* src = products + i * plan.product_row;
    const int64_t rows = std::min(plan.h.tile, s.oh - at.top), columns = std::min(plan.w.tile, s.ow - at.left);
    last.dst = args.dst + at.image * args.dst_batch + vectors.begin * args.dst_channel + pixel;
    if (args.residual) {
      e.residual = args.residual + at.image * args.residual_batch + vectors.begin * args.residual_channel + pixel;
    }
    if (is_plane) {
      results.dst = last.dst;
      results.residual = e.residual;
      results.rows = rows / side;
      results.columns = columns / side;
      first.results = &results;
      for (const IndexRange lines : places_of(plan.w, at.last_w)) {
        if (lines.size() == 0) continue;
        first.lines = lines.size();
        first.src = src + lines.begin * first.src_line;
        first.dst = half + lines.begin * first.dst_line;
        output_transform(kernels, plan.h, at.last_h)(first);
        first.results = nullptr;
      }
      last.lines = rows / side;
    } else {
      last.src = src;
    }
    last.end = (along_h ? rows : columns) / side;
    if (along_h) {
      output_transform(kernels, plan.h, at.last_h)(last);
    } else if (plan.pools) {
      lines.lines = rows;
      output_transform(kernels, plan.w, at.last_w)(lines);
      kernels.pool(last);
    } else {
      output_transform(kernels, plan.w, at.last_w)(last);
    }
    for (int64_t v = 0; v < vectors.size() && args.activation; ++v) {
      args.activation(last.dst + v * args.dst_channel, rows, row, columns * lanes);
    }
  }
}

void pack_taps(const WinogradPlan& plan, const float* weight, float* packed) {
  constexpr int64_t kTaps = kWinogradRawTaps;
  double multiples[kTaps];
  for (int64_t k = 0; k < kTaps; ++k) multiples[k] = std::pow(kWinogradRawPoint, k / 3 + k % 3);
  const int64_t ic = plan.shape.ic, oc = plan.shape.oc, padded = plan.oc_vectors * plan.lanes;
  for (int64_t o = 0; o < padded; ++o) {
    float* to = packed + o / plan.lanes * plan.lanes * ic * kTaps + o % plan.lanes;
    for (int64_t c = 0; c < ic; ++c) {
      for (int64_t k = 0; k < kTaps; ++k, to += plan.lanes) {
        *to = o < oc ? static_cast<float>(multiples[k] * weight[(o * ic + c) * kTaps + k]) : 0.0f;
      }
    }
  }
}

}  // namespace

WinogradPlan plan_winograd(const ConvShape& source, const WinogradSchedule& schedule, int64_t lanes) {
  constexpr int64_t kHalfFloats = 4096;  // half of a first-level cache
  WinogradPlan plan;
  plan.source = source;
  plan.shape = fold_shape(source);
  plan.fold = winograd_fold(source);
  const ConvShape& shape = plan.shape;
  NEO_ASSERT(!reject_winograd(shape));
  plan.schedule = schedule;
  plan.lanes = lanes;
  // Weights that are packed as taps come with all points.
  const WinogradLast last_tile = plan.is_raw() ? WinogradLast::Whole : WinogradLast::Smaller;
  plan.h = winograd_axis(shape.kh, shape.stride_h, schedule.tile, shape.oh, last_tile);
  plan.w = winograd_axis(shape.kw, shape.stride_w, schedule.tile, shape.ow, last_tile);
  plan.points = plan.h.points() * plan.w.points();
  plan.weights = plan.h.weights() * plan.w.weights();
  plan.ic_vectors = ceil_div(shape.ic, lanes);
  plan.oc_vectors = ceil_div(shape.oc, lanes);
  plan.panels = schedule.panels;
  plan.tiles = shape.n * plan.h.tiles * plan.w.tiles;
  plan.products = shape.n * plan.h.all_points() * plan.w.all_points();
  plan.blocks = ceil_div(plan.tiles, schedule.block);
  const int64_t parts = schedule.parts > 0 ? schedule.parts : ceil_div(kWantedTasks, std::max<int64_t>(1, plan.blocks));
  plan.panel_parts = plan.blocks > 0 ? std::min(plan.panels, parts) : 1;
  plan.tasks = plan.blocks * plan.panel_parts;
  int64_t most = largest_block(plan);
  if (plan.is_raw()) most = ceil_div(most, kWinogradRawTiles) * kWinogradRawTiles;
  plan.tile_stride = plan.ic_vectors * lanes;
  plan.input_point = spread(most * plan.tile_stride);
  plan.panel_width = ceil_div(plan.oc_vectors, plan.panels) * lanes;
  // The products of a single panel take the place of what they are made of.
  plan.is_in_place = plan.panels == 1 && plan.panel_width <= plan.tile_stride && !plan.is_raw();
  plan.product_row = plan.is_in_place ? plan.tile_stride : plan.panel_width;
  plan.product_point = plan.is_in_place ? plan.input_point : spread(most * plan.product_row);
  plan.run = schedule.run > 0 ? schedule.run : plan.fold > 1 ? 8 : 4;
  if (plan.is_plane()) {
    const int64_t floats = plan.run_columns(plan.run) * plan.h.points() * lanes;
    plan.run_vectors = std::clamp<int64_t>(kHalfFloats / floats, 1, plan.ic_vectors);
    plan.half = std::max(floats * plan.run_vectors, plan.h.tile * plan.w.points() * plan.panel_width);
    if (plan.fold > 1) plan.window = floats * plan.ic_vectors;
  }
  plan.first_product = plan.is_in_place ? 0 : plan.points * plan.input_point;
  plan.first_half = plan.first_product + plan.points * plan.product_point;
  plan.workspace_size = plan.first_half + plan.half + plan.window;
  return plan;
}

bool takes_pool(const ConvShape& shape) {
  return shape.kh == 3 && shape.kw == 3 && shape.stride_h == 1 && shape.stride_w == 1 && winograd_fold(shape) == 1;
}

bool takes_raw_weights(const ConvShape& shape, int64_t tile) {
  return tile == 4 && shape.kh == 3 && shape.kw == 3 && shape.stride_h == 1 && shape.stride_w == 1 &&
         winograd_fold(shape) == 1;
}

int64_t winograd_weight_size(const WinogradPlan& plan) {
  return (plan.is_raw() ? kWinogradRawTaps : plan.weights) * plan.shape.ic * plan.oc_vectors * plan.lanes;
}

void pack_winograd_weight(const WinogradPlan& plan, const WinogradKernels& kernels, const float* weight,
                          float* packed) {
  const int64_t ic = plan.shape.ic, oc = plan.shape.oc, kh = plan.h.kernel, kw = plan.w.kernel;
  std::vector<float> folded;
  if (plan.fold > 1) {
    folded = fold_weight(plan.source, weight);
    weight = folded.data();
  }
  if (plan.is_raw()) return pack_taps(plan, weight, packed);
  const std::vector<double> along_h = winograd_weight_transform(plan.h), along_w = winograd_weight_transform(plan.w);
  const auto most = static_cast<size_t>(plan.panel_width);
  std::vector<double> taps(static_cast<size_t>(kh * kw) * most), half(static_cast<size_t>(kw) * most);
  for (int64_t p = 0; p < plan.panels; ++p) {
    const IndexRange vectors = panel_vectors(plan, p);
    const int64_t first = vectors.begin * plan.lanes, width = vectors.size() * plan.lanes;
    const auto at = [&](std::vector<double>& rows, int64_t i) { return &rows[static_cast<size_t>(i * width)]; };
    float* panel = packed + first * plan.weights * ic;
    for (int64_t c = 0; c < ic; ++c) {
      for (int64_t o = 0; o < width; ++o) {
        for (int64_t k = 0; k < kh * kw; ++k) {
          *(at(taps, k) + o) = first + o < oc ? weight[((first + o) * ic + c) * kh * kw + k] : 0.0;
        }
      }
      for (int64_t i = 0; i < plan.h.weights(); ++i) {
        for (int64_t j = 0; j < kw; ++j) {
          kernels.weight_half(kh, &along_h[static_cast<size_t>(i * kh)], at(taps, j), kw * width, width, at(half, j));
        }
        for (int64_t j = 0; j < plan.w.weights(); ++j) {
          float* to = panel + ((i * plan.w.weights() + j) * ic + c) * width;
          kernels.weight_whole(kw, &along_w[static_cast<size_t>(j * kw)], half.data(), width, width, to);
        }
      }
    }
  }
}

void run_winograd(const WinogradPlan& plan, const WinogradKernels& kernels, const TileKernels& tiles,
                  const ConvOperands& args, int64_t task_begin, int64_t task_end, WinogradMember& member) {
  float *products = member.workspace + plan.first_product, *half = member.workspace + plan.first_half;
  for (int64_t task = task_begin; task < task_end; ++task) {
    const int64_t block = task / plan.panel_parts;
    const TileBlock mine(plan, block);
    if (member.block != block) transform_block(plan, kernels, args, mine, member.workspace, half);
    member.block = block;
    const IndexRange panels = even_part(plan.panels, plan.panel_parts, task % plan.panel_parts);
    for (int64_t p = panels.begin; p < panels.end; ++p) {
      const IndexRange vectors = panel_vectors(plan, p);
      if (plan.is_raw()) {
        multiply_raw_panel(plan, kernels, args, mine.size(), vectors, member.workspace, products);
      } else {
        multiply_panel(plan, tiles, args, mine, vectors, member.workspace, products);
      }
      transform_products(plan, kernels, args, mine, vectors, products, half);
    }
  }
}

}  // namespace neo
