#include "routines/cpu/gemm/gemm_block.h"

#include <algorithm>
#include <limits>

#include "routines/cpu/microkernel/microkernel_edge.h"

namespace neo {
namespace {

constexpr int64_t kMaxLanes = 16;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Adds what a tile starts from to sums that are known, which become that.
void add_to_sums(Tile& tile, float* sums, int64_t rows, int64_t columns, int64_t width) {
  for (int64_t r = 0; tile.init && r < rows; ++r) {
    for (int64_t j = 0; j < columns; ++j) sums[r * width + j] += tile.init[r * tile.init_row + j];
  }
  tile.init = sums;
  tile.init_row = width;
}

}  // namespace

BatchOffsets BatchOffsets::of(const GemmShape& shape, const GemmStrides& strides, int64_t index) {
  BatchOffsets at;
  for (int i = kGemmBatchAxes - 1; i >= 0; --i) {
    const int64_t position = index % shape.batch[i];
    index /= shape.batch[i];
    at.a += position * strides.a_batch[i];
    at.b += position * strides.b_batch[i];
    at.c += position * strides.c_batch[i];
    at.residual += position * strides.residual_batch[i];
  }
  return at;
}

void GemmBlock::run_rows(const float* weight, int64_t weight_step, float scale, IndexRange rows, IndexRange vectors,
                         IndexRange k) const {
  if (!args.activation || k.end != plan.shape.k) return run_tiles(weight, weight_step, scale, rows, vectors, k);
  // As many results as stay in the first cache until they are activated.
  constexpr int64_t kResults = 4096;
  const int64_t parts = ceil_div(rows.size() * vectors.size() * plan.lanes, kResults);
  for (int64_t i = 0; i < parts; ++i) {
    const IndexRange part = even_part(rows.size(), parts, i);
    const IndexRange these = {rows.begin + part.begin, rows.begin + part.end};
    run_tiles(weight, weight_step, scale, these, vectors, k);
    activate(these, vectors);
  }
}

void GemmBlock::activate(IndexRange rows, IndexRange vectors) const {
  const int64_t first = vectors.begin * plan.lanes;
  args.activation(args.c + at.c + rows.begin * args.c_row + first, rows.size(), args.c_row,
                  std::min(vectors.size() * plan.lanes, plan.shape.n - first));
}

void GemmBlock::run_tiles(const float* weight, int64_t weight_step, float scale, IndexRange rows, IndexRange vectors,
                          IndexRange k) const {
  const bool is_short = k.size() == plan.shape.k && sums_shortly(rows.size(), k.size(), vectors.size());
  if (is_short && scale == 1.0f && (!args.residual || row_addend())) {
    return run_short(weight, weight_step, rows, vectors, k.size());
  }
  const int64_t limit = kernels.max_rows[vectors.size()];
  const int64_t most = plan.schedule.rows > 0 ? std::min(plan.schedule.rows, limit) : limit;
  const int64_t tiles = ceil_div(rows.size(), most);
  for (int64_t i = 0; i < tiles; ++i) {
    const IndexRange part = even_part(rows.size(), tiles, i);
    run_tile(weight, weight_step, scale, {rows.begin + part.begin, rows.begin + part.end}, vectors, k);
  }
}

void GemmBlock::run_short(const float* weight, int64_t weight_step, IndexRange rows, IndexRange vectors,
                          int64_t count) const {
  const int64_t first = vectors.begin * plan.lanes;
  ShortProduct product;
  product.a = args.a + at.a + rows.begin * args.a_row;
  product.a_row = args.a_row;
  product.a_column = args.a_column;
  product.weight = weight;
  product.weight_step = weight_step;
  product.rows = rows.size();
  product.columns = std::min(vectors.size() * plan.lanes, plan.shape.n - first);
  product.count = count;
  if (args.column_bias) product.bias = args.column_bias + first;
  if (args.row_bias) product.row_bias = args.row_bias + rows.begin;
  if (const float* addend = row_addend()) product.row_bias = addend + rows.begin;
  product.c = args.c + at.c + rows.begin * args.c_row + first;
  product.c_row = args.c_row;
  product.lo = args.lo;
  product.hi = args.hi;
  kernels.short_product(product);
}

void GemmBlock::run_dots(const float* b, IndexRange rows, IndexRange vectors) const {
  alignas(64) float sums[kTileRows * kTileVectors * kMaxLanes];
  const int64_t lanes = plan.lanes, width = vectors.size() * lanes, first = vectors.begin * lanes;
  const int64_t limit = kernels.max_rows[vectors.size()], parts = ceil_div(rows.size(), limit);
  for (int64_t i = 0; i < parts; ++i) {
    const IndexRange part = even_part(rows.size(), parts, i);
    DotProduct product;
    product.a = args.a + at.a + (rows.begin + part.begin) * args.a_row;
    product.a_row = args.a_row;
    product.b = b;
    product.b_row = args.b_column;
    product.rows = part.size();
    product.columns = std::min(width, plan.shape.n - first);
    product.count = plan.shape.k;
    product.scale = args.alpha;
    product.sums = sums;
    product.sums_row = width;
    kernels.dot_product(product);
    run_tile(nullptr, 0, 1.0f, {rows.begin + part.begin, rows.begin + part.end}, vectors, {0, plan.shape.k}, sums);
  }
  if (args.activation) activate(rows, vectors);
}

void GemmBlock::run_tile(const float* weight, int64_t weight_step, float scale, IndexRange rows, IndexRange vectors,
                         IndexRange k, float* sums) const {
  const GemmShape& s = plan.shape;
  const int64_t lanes = plan.lanes, width = vectors.size() * lanes, first = vectors.begin * lanes;
  const int64_t columns = std::min(width, s.n - first), count = k.size();
  const bool is_first = k.begin == 0, is_last = k.end == s.k;
  Tile tile;
  const TileTap tap = {};
  tile.taps = &tap;
  tile.tap_count = sums ? 0 : 1;
  tile.block_size = tile.last_size = count;
  tile.weight = weight;
  tile.weight_step = weight_step;
  const bool by_columns = set_source(tile, scale, rows, k);

  alignas(64) float init[kTileRows * kTileVectors * kMaxLanes];
  float* c = args.c + (at.c + rows.begin * args.c_row + first);
  tile.goes_on = goes_on && !is_first;
  if (!is_first && !goes_on) {
    tile.init = c;
    tile.init_row = args.c_row;
  } else {
    if (args.column_bias) tile.bias = args.column_bias + first;
    if (args.row_bias) tile.row_bias = args.row_bias + rows.begin;
    if (const float* addend = row_addend()) tile.row_bias = addend + rows.begin;
    if (is_last || !goes_on) set_init(tile, init, rows, first, columns, width);
    if (sums) add_to_sums(tile, sums, rows.size(), columns, width);
  }
  for (int64_t v = 0; v < vectors.size(); ++v) tile.init_vector[v] = tile.dst_vector[v] = v * lanes;
  tile.lo = is_last ? args.lo : -kInfinity;
  tile.hi = is_last ? args.hi : kInfinity;
  tile.dst = c;
  tile.dst_row = args.c_row;
  run_microkernel_edge((by_columns ? kernels.columns : kernels.rows)[vectors.size()][rows.size()], kernels, tile,
                       rows.size(), vectors.size(), columns);
}

bool GemmBlock::set_source(Tile& tile, float scale, IndexRange rows, IndexRange k) const {
  const float* a = args.a + at.a + rows.begin * args.a_row + k.begin * args.a_column;
  tile.src = a;
  if (scale == 1.0f && args.a_column == 1) {
    tile.step = args.a_row;
    return false;
  }
  if (scale == 1.0f && args.a_row == 1) {
    tile.step = args.a_column;
    return true;
  }
  for (int64_t r = 0; r < rows.size(); ++r) {
    for (int64_t i = 0; i < k.size(); ++i) {
      a_scratch[r * k.size() + i] = scale * a[r * args.a_row + i * args.a_column];
    }
  }
  tile.src = a_scratch;
  tile.step = k.size();
  return false;
}

void GemmBlock::set_init(Tile& tile, float* init, IndexRange rows, int64_t first, int64_t columns,
                         int64_t width) const {
  const float* residual = args.residual;
  if (!residual || row_addend()) return;
  residual += at.residual + rows.begin * args.residual_row + first * args.residual_column;
  if (args.residual_column == 1 && args.beta == 1.0f) {
    tile.init = residual;
    tile.init_row = args.residual_row;
    return;
  }
  tile.init = init;
  tile.init_row = width;
  for (int64_t r = 0; r < rows.size(); ++r) {
    const float* from = residual + r * args.residual_row;
    float* to = init + r * width;
    if (args.residual_column == 0) {
      std::fill_n(to, columns, args.beta * *from);
    } else {
      for (int64_t j = 0; j < columns; ++j) to[j] = args.beta * from[j * args.residual_column];
    }
    std::fill(to + columns, to + width, 0.0f);
  }
}

const float* GemmBlock::row_addend() const {
  const bool is_column = args.residual_column == 0 && args.residual_row == 1 && args.beta == 1.0f;
  return args.residual && is_column && !args.row_bias ? args.residual + at.residual : nullptr;
}

}  // namespace neo
