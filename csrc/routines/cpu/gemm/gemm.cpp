#include "routines/cpu/gemm/gemm.h"

#include <limits>

#include "routines/cpu/gemm/split.h"

namespace neo {
namespace {

constexpr int64_t kChunk = 256;  // k per pass, so that a panel of B stays in the first two caches
constexpr int64_t kMaxLanes = 16;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

IndexRange panel_vectors(const GemmPlan& plan, int64_t panel) {
  return even_part(plan.vectors, plan.panels, panel);
}

struct BatchOffsets {
  int64_t a = 0, b = 0, c = 0, residual = 0;
};

BatchOffsets find_batch(const GemmShape& shape, const GemmArgs& args, int64_t index) {
  BatchOffsets at;
  for (int i = kGemmBatchAxes - 1; i >= 0; --i) {
    const int64_t position = index % shape.batch[i];
    index /= shape.batch[i];
    at.a += position * args.a_batch[i];
    at.b += position * args.b_batch[i];
    at.c += position * args.c_batch[i];
    at.residual += position * args.residual_batch[i];
  }
  return at;
}

// One register block of C over k in [k_begin, k_end).
struct Block {
  const GemmPlan& plan;
  const TileKernels& kernels;
  const GemmArgs& args;
  BatchOffsets at;
  float* a_scratch;  // kTileRows * k_chunk floats, used where A needs a copy

  void run(const float* weight, int64_t weight_step, float scale, IndexRange rows, IndexRange vectors,
           IndexRange k) const {
    const GemmShape& s = plan.shape;
    const int64_t lanes = plan.lanes, width = vectors.size() * lanes, first = vectors.begin * lanes;
    const int64_t columns = std::min(width, s.n - first), count = k.size();
    const bool is_first = k.begin == 0, is_last = k.end == s.k;
    Tile tile;
    const TileTap tap;
    tile.taps = &tap;
    tile.tap_count = 1;
    tile.block_size = tile.last_size = count;
    tile.weight = weight;
    tile.weight_step = weight_step;
    const bool by_columns = set_source(tile, scale, rows, k);

    alignas(64) float init[kTileRows * kTileVectors * kMaxLanes];
    float* c = args.c + at.c + rows.begin * args.c_row + first;
    if (!is_first) {
      tile.init = c;
      tile.init_row = args.c_row;
    } else {
      if (args.column_bias) tile.bias = args.column_bias + first;
      set_init(tile, init, rows, first, columns, width);
    }
    if (tile.init != init) {
      for (int64_t v = 0; v < vectors.size(); ++v) tile.init_vector[v] = v * lanes;
    }
    for (int64_t v = 0; v < vectors.size(); ++v) tile.dst_vector[v] = v * lanes;
    tile.lo = is_last ? args.lo : -kInfinity;
    tile.hi = is_last ? args.hi : kInfinity;
    const TileKernel kernel = (by_columns ? kernels.columns : kernels.rows)[vectors.size()][rows.size()];
    if (columns == width) {
      tile.dst = c;
      tile.dst_row = args.c_row;
      kernel(tile);
      return;
    }
    alignas(64) float acc[kTileRows * kTileVectors * kMaxLanes];
    TileEdge edge;
    edge.acc = acc;
    edge.rows = rows.size();
    edge.vectors = vectors.size();
    edge.columns = columns;
    edge.init = tile.init;
    edge.init_row = tile.init_row;
    std::copy_n(tile.init_vector, kTileVectors, edge.init_vector);
    edge.dst = c;
    edge.dst_row = args.c_row;
    std::copy_n(tile.dst_vector, kTileVectors, edge.dst_vector);
    edge.lo = tile.lo;
    edge.hi = tile.hi;
    tile.init = nullptr;
    tile.dst = acc;
    tile.dst_row = width;
    tile.lo = -kInfinity;
    tile.hi = kInfinity;
    kernel(tile);
    kernels.edge(edge);
  }

 private:
  // True where the tile reads A in column form.
  bool set_source(Tile& tile, float scale, IndexRange rows, IndexRange k) const {
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

  // What is added beside the bias of the columns: straight from memory, or gathered where that is not dense rows.
  void set_init(Tile& tile, float* init, IndexRange rows, int64_t first, int64_t columns, int64_t width) const {
    const float* residual = args.residual;
    if (residual) residual += at.residual + rows.begin * args.residual_row + first * args.residual_column;
    if (!residual && !args.row_bias) return;
    if (residual && !args.row_bias && args.residual_column == 1 && args.beta == 1.0f) {
      tile.init = residual;
      tile.init_row = args.residual_row;
      return;
    }
    tile.init = init;
    if (!residual) {
      // The same vector serves all vectors of a row.
      tile.init_row = plan.lanes;
      for (int64_t r = 0; r < rows.size(); ++r) {
        std::fill_n(init + r * plan.lanes, plan.lanes, args.row_bias[rows.begin + r]);
      }
      return;
    }
    tile.init_row = width;
    for (int64_t v = 0; v * plan.lanes < width; ++v) tile.init_vector[v] = v * plan.lanes;
    for (int64_t r = 0; r < rows.size(); ++r) {
      const float bias = args.row_bias ? args.row_bias[rows.begin + r] : 0.0f;
      for (int64_t j = 0; j < width; ++j) {
        init[r * width + j] =
            j < columns ? bias + args.beta * residual[r * args.residual_row + j * args.residual_column] : 0.0f;
      }
    }
  }
};

template <class F>
void for_each_tile(const GemmPlan& plan, const TileKernels& kernels, int64_t vectors, IndexRange rows, F&& f) {
  const int64_t limit = kernels.max_rows[vectors];
  const int64_t most = plan.schedule.rows > 0 ? std::min(plan.schedule.rows, limit) : limit;
  const int64_t tiles = ceil_div(rows.size(), most);
  for (int64_t i = 0; i < tiles; ++i) {
    const IndexRange part = even_part(rows.size(), tiles, i);
    f(IndexRange{rows.begin + part.begin, rows.begin + part.end});
  }
}

}  // namespace

GemmPlan plan_gemm(const GemmShape& s, const GemmSchedule& schedule, const TileKernels& kernels) {
  GemmPlan plan;
  plan.shape = s;
  plan.schedule = schedule;
  plan.lanes = kernels.lanes;
  plan.vectors = ceil_div(s.n, plan.lanes);
  plan.panels = ceil_div(plan.vectors, schedule.vectors);
  // A copy of A, where it needs one, is cut along k as well; k = 0 still writes the bias.
  plan.k_chunk = std::max<int64_t>(1, std::min(s.k, kChunk));
  plan.workspace_size = (kTileRows + (schedule.packed_b ? 0 : schedule.vectors * plan.lanes)) * plan.k_chunk;

  const int64_t batches = s.batches();
  if (batches == 0 || s.m == 0 || s.n == 0) return plan;
  // Reading B counts too: a few rows are bound by memory.
  const int64_t cost = 2 * s.n * s.k * (s.m + 8) * batches;
  const int64_t wanted = ceil_div(worthwhile_tasks(cost), batches);
  const int64_t least_rows = schedule.packed_b ? 28 : 96;
  const int64_t row_splits = std::clamp<int64_t>(s.m / least_rows, 1, wanted);
  const int64_t panel_splits = std::clamp<int64_t>(ceil_div(wanted, row_splits), 1, plan.panels);
  // Packing B again for every part of the rows costs more than it gains while there are panels to hand out.
  const bool panels_first = !schedule.packed_b && plan.panels >= wanted;
  plan.panel_chunk = ceil_div(plan.panels, panels_first ? wanted : panel_splits);
  plan.panel_chunks = ceil_div(plan.panels, plan.panel_chunk);
  plan.row_chunk = panels_first ? s.m : ceil_div(s.m, row_splits);
  plan.row_chunks = ceil_div(s.m, plan.row_chunk);
  plan.tasks = batches * plan.panel_chunks * plan.row_chunks;
  return plan;
}

int64_t gemm_packed_size(const GemmPlan& plan) {
  return plan.vectors * plan.lanes * plan.shape.k;
}

void pack_gemm_b(const GemmPlan& plan, const PackKernels& kernels, const float* b, int64_t row, int64_t column,
                 float alpha, float* packed) {
  const GemmShape& s = plan.shape;
  for (int64_t p = 0; p < plan.panels; ++p) {
    const IndexRange vectors = panel_vectors(plan, p);
    const int64_t first = vectors.begin * plan.lanes, width = vectors.size() * plan.lanes;
    kernels.panel(b + first * column, row, column, s.k, std::min(width, s.n - first), vectors.size(), alpha, packed);
    packed += s.k * width;
  }
}

void run_gemm(const GemmPlan& plan, const TileKernels& kernels, const PackKernels& pack_kernels, const GemmArgs& args,
              int64_t task_begin, int64_t task_end, int member) {
  const GemmShape& s = plan.shape;
  float* a_scratch = args.workspace + member * plan.workspace_size;
  float* b_scratch = a_scratch + kTileRows * plan.k_chunk;
  for (int64_t task = task_begin; task < task_end; ++task) {
    // Tasks that share panels are neighbours.
    const int64_t row_index = task % plan.row_chunks;
    const int64_t panel_index = task / plan.row_chunks % plan.panel_chunks;
    const IndexRange rows = {row_index * plan.row_chunk, std::min((row_index + 1) * plan.row_chunk, s.m)};
    const IndexRange panels = {panel_index * plan.panel_chunk,
                               std::min((panel_index + 1) * plan.panel_chunk, plan.panels)};
    const Block block = {plan, kernels, args, find_batch(s, args, task / (plan.row_chunks * plan.panel_chunks)),
                         a_scratch};
    const bool whole_a = args.a_column == 1 || args.a_row == 1;
    for (int64_t p = panels.begin; p < panels.end; ++p) {
      const IndexRange vectors = panel_vectors(plan, p);
      const int64_t first = vectors.begin * plan.lanes, width = vectors.size() * plan.lanes;
      const int64_t columns = std::min(width, s.n - first);
      const bool packed = plan.schedule.packed_b;
      // A few rows read B where it is.
      const bool in_place = !packed && args.b_column == 1 && columns == width && rows.size() <= 4;
      const int64_t step = packed && whole_a ? std::max<int64_t>(1, s.k) : plan.k_chunk;
      int64_t k = 0;
      do {
        const IndexRange part = {k, std::min(k + step, s.k)};
        const float* weight = nullptr;
        int64_t weight_step = width;
        float scale = 1.0f;
        if (packed) {
          weight = args.b + block.at.b + (first * s.k + part.begin * width);
        } else {
          const float* b = args.b + block.at.b + part.begin * args.b_row + first * args.b_column;
          if (in_place) {
            weight = b;
            weight_step = args.b_row;
            scale = args.alpha;
          } else {
            pack_kernels.panel(b, args.b_row, args.b_column, part.size(), columns, vectors.size(), args.alpha,
                               b_scratch);
            weight = b_scratch;
          }
        }
        for_each_tile(plan, kernels, vectors.size(), rows,
                      [&](IndexRange tile) { block.run(weight, weight_step, scale, tile, vectors, part); });
        k = part.end;
      } while (k < s.k);
    }
  }
}

}  // namespace neo
