#include "routines/cpu/gemm/gemm.h"

#include "base/int_math.h"
#include "routines/cpu/gemm/gemm_block.h"
#include "routines/cpu/microkernel/microkernel_edge.h"
#include "routines/cpu/tasks.h"

namespace neo {
namespace {

constexpr int64_t kGemmChunk = 256;  // k per pass, so that a panel of B stays in the first two caches

// The part of k that many register blocks sum in turn, where a whole packed panel would leave the second cache between
// them; 0 where it stays.
int64_t part_of_long_panel(const GemmShape& s, const GemmSchedule& schedule, const TileKernels& kernels) {
  constexpr int64_t kMaxBytes = 512 << 10, kPartBytes = 128 << 10;
  const int64_t bytes = s.k * schedule.vectors * kernels.lanes * 4;
  if (bytes <= kMaxBytes || s.m <= 2 * kernels.max_rows[schedule.vectors]) return 0;
  return ceil_div(s.k, ceil_div(bytes, kPartBytes));
}

// Whether so few rows are multiplied with the rows of B as they lie, rather than with packed panels.
bool takes_dots(const GemmShape& s, const GemmStrides& strides, int64_t rows) {
  constexpr int64_t kMaxRows = 8, kSums = 16;  // adding up the lanes of a result takes as long as so many products
  return strides.b_row == 1 && strides.a_column == 1 && rows <= std::min(kMaxRows, s.k / kSums);
}

// Whether a few rows need nothing but the addresses of each panel.
bool is_plain(const GemmPlan& plan, const GemmArgs& args) {
  return plan.one_block && args.a_column == 1 && (!args.residual || (args.residual_column == 1 && args.beta == 1.0f));
}

// Panels of one row.
void run_row(const GemmPlan& plan, const TileKernels& kernels, const GemmArgs& args, IndexRange panels) {
  const int64_t vectors = plan.vectors / plan.panels, wider = plan.vectors % plan.panels;
  RowProduct row;
  row.a = args.a;
  row.count = plan.shape.k;
  row.lo = args.lo;
  row.hi = args.hi;
  const auto column_of = [&](int64_t panel) {
    return std::min((panel * vectors + std::min(panel, wider)) * plan.lanes, plan.shape.n);
  };
  const auto run = [&](int64_t begin, int64_t end) {
    const int64_t first = column_of(begin);
    row.weight = args.b + first * plan.shape.k;
    row.panels = end - begin;
    row.vectors = vectors + (begin < wider);
    row.columns = column_of(end) - first;
    if (args.column_bias) row.bias = args.column_bias + first;
    if (args.residual) row.init = args.residual + first;
    row.c = args.c + first;
    kernels.row_product(row);
  };
  // Panels of one width, as many as the kernel takes at once where they go backwards.
  const auto run_alike = [&](int64_t begin, int64_t end) {
    if (!args.backwards && begin < end) return run(begin, end);
    const int64_t most = vectors + (begin < wider) > 2 ? 2 : 4;
    for (; begin < end; end -= std::min(most, end - begin)) run(std::max(begin, end - most), end);
  };
  const int64_t split = std::clamp(wider, panels.begin, panels.end);
  if (args.backwards) run_alike(split, panels.end);
  run_alike(panels.begin, split);
  if (!args.backwards) run_alike(split, panels.end);
  if (args.activation) {
    const int64_t first = column_of(panels.begin);
    args.activation(args.c + first, 1, args.c_row, column_of(panels.end) - first);
  }
}

// The panels of some tasks, where a register block has all rows: as GemmBlock computes them, without what it decides
// for each block. A loop over time runs such a product in every iteration.
void run_one_block(const GemmPlan& plan, const TileKernels& kernels, const GemmArgs& args, IndexRange panels) {
  const GemmShape& s = plan.shape;
  const int64_t lanes = plan.lanes, most = plan.vectors / plan.panels, wider = plan.vectors % plan.panels;
  const TileTap tap = {};
  Tile tile;
  tile.taps = &tap;
  tile.tap_count = 1;
  tile.block_size = tile.last_size = s.k;
  tile.src = args.a;
  tile.step = args.a_row;
  tile.row_bias = args.row_bias;
  tile.init_row = args.residual_row;
  tile.dst_row = args.c_row;
  tile.lo = args.lo;
  tile.hi = args.hi;
  for (int64_t v = 0; v < kTileVectors; ++v) tile.init_vector[v] = tile.dst_vector[v] = v * lanes;
  for (int64_t i = panels.begin; i < panels.end; ++i) {
    const int64_t p = args.backwards ? panels.begin + panels.end - 1 - i : i;
    const int64_t first = (p * most + std::min(p, wider)) * lanes;
    const int64_t vectors = most + (p < wider), width = vectors * lanes, columns = std::min(width, s.n - first);
    tile.weight = args.b + first * s.k;
    tile.weight_step = width;
    if (args.column_bias) tile.bias = args.column_bias + first;
    if (args.residual) tile.init = args.residual + first;
    tile.dst = args.c + first;
    run_microkernel_edge(kernels.rows[vectors][s.m], kernels, tile, s.m, vectors, columns);
    if (args.activation) args.activation(tile.dst, s.m, args.c_row, columns);
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
  plan.k_chunk = std::max<int64_t>(1, std::min(s.k, schedule.k > 0 ? schedule.k : kGemmChunk));
  plan.whole_k = schedule.packed_b && schedule.k == 0;
  plan.k_part = plan.whole_k ? part_of_long_panel(s, schedule, kernels) : 0;
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
  plan.panel_chunk = schedule.panels > 0 ? std::min(schedule.panels, plan.panels)
                                         : ceil_div(plan.panels, panels_first ? wanted : panel_splits);
  plan.panel_chunks = ceil_div(plan.panels, plan.panel_chunk);
  const int64_t rows = panels_first ? s.m : ceil_div(s.m, row_splits);
  plan.row_chunk = schedule.chunk > 0 ? std::min(schedule.chunk, s.m) : rows;
  plan.row_chunks = ceil_div(s.m, plan.row_chunk);
  plan.tasks = batches * plan.panel_chunks * plan.row_chunks;
  const int64_t limit = kernels.max_rows[ceil_div(plan.vectors, plan.panels)];
  plan.one_block = plan.whole_k && batches == 1 && plan.row_chunks == 1 && s.k > 0 && s.m <= limit &&
                   (schedule.rows == 0 || s.m <= schedule.rows);
  return plan;
}

int64_t gemm_packed_size(const GemmPlan& plan) {
  return plan.vectors * plan.lanes * plan.shape.k;
}

void pack_gemm_b(const GemmPlan& plan, const PackKernels& kernels, const float* b, int64_t row, int64_t column,
                 float alpha, float* packed) {
  const GemmShape& s = plan.shape;
  for (int64_t p = 0; p < plan.panels; ++p) {
    const IndexRange vectors = gemm_panel(plan, p);
    const int64_t first = vectors.begin * plan.lanes, width = vectors.size() * plan.lanes;
    kernels.panel(b + first * column, row, column, s.k, std::min(width, s.n - first), vectors.size(), alpha, packed);
    packed += s.k * width;
  }
}

void run_gemm(const GemmPlan& plan, const TileKernels& kernels, const PackKernels& pack_kernels, const GemmArgs& args,
              int64_t task_begin, int64_t task_end, float* workspace) {
  const GemmShape& s = plan.shape;
  if (is_plain(plan, args)) {
    const int64_t chunk = plan.panel_chunk;
    const IndexRange panels = {task_begin * chunk, std::min(task_end * chunk, plan.panels)};
    return s.m == 1 && !args.row_bias ? run_row(plan, kernels, args, panels)
                                      : run_one_block(plan, kernels, args, panels);
  }
  float* a_scratch = workspace;
  float* b_scratch = a_scratch + kTileRows * plan.k_chunk;
  for (int64_t task = task_begin; task < task_end; ++task) {
    // Tasks that share panels are neighbours.
    const int64_t row_index = task % plan.row_chunks;
    const int64_t panel_index = task / plan.row_chunks % plan.panel_chunks;
    const IndexRange rows = {row_index * plan.row_chunk, std::min((row_index + 1) * plan.row_chunk, s.m)};
    const IndexRange panels = {panel_index * plan.panel_chunk,
                               std::min((panel_index + 1) * plan.panel_chunk, plan.panels)};
    GemmBlock block = {plan, kernels, args, BatchOffsets::of(s, args, task / (plan.row_chunks * plan.panel_chunks)),
                       a_scratch};
    const bool whole_a = args.a_column == 1 || args.a_row == 1;
    for (int64_t p = panels.begin; p < panels.end; ++p) {
      const IndexRange vectors = gemm_panel(plan, p);
      const int64_t first = vectors.begin * plan.lanes, width = vectors.size() * plan.lanes;
      const int64_t columns = std::min(width, s.n - first);
      const bool packed = plan.schedule.packed_b;
      // A few rows read B where it is.
      const bool in_place = !packed && args.b_column == 1 && columns == width && rows.size() <= 4;
      if (!packed && !in_place && takes_dots(s, args, rows.size())) {
        block.run_dots(args.b + block.at.b + first * args.b_column, rows, vectors);
        continue;
      }
      block.goes_on = plan.k_part > 0 && whole_a && columns == width && args.residual != args.c;
      const int64_t step = block.goes_on             ? plan.k_part
                           : plan.whole_k && whole_a ? std::max<int64_t>(1, s.k)
                                                     : plan.k_chunk;
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
        block.run_rows(weight, weight_step, scale, rows, vectors, part);
        k = part.end;
      } while (k < s.k);
    }
  }
}

}  // namespace neo
