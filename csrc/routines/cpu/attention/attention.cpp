#include "routines/cpu/attention/attention.h"

#include <algorithm>
#include <limits>

#include "base/int_math.h"
#include "routines/cpu/microkernel/microkernel_edge.h"
#include "routines/cpu/tasks.h"

namespace neo {
namespace {

constexpr int64_t kMaxKeyBlock = 768;   // keys that are taken at once
constexpr int64_t kKeyBlock = 512;      // of more keys
constexpr int64_t kHeldScores = 24576;  // so many floats leave room in a second-level cache
constexpr int64_t kMinRows = 12, kMaxRows = 96;
constexpr int64_t kLine = 16;  // floats

// One task.
class AttentionTask {
 public:
  AttentionTask(const AttentionPlan& plan, const AttentionTools& tools, const AttentionArgs& args, int64_t task,
                float* workspace)
      : plan_(plan), shape_(plan.shape), tools_(tools), args_(args), workspace_(workspace) {
    int64_t index = task / plan.row_chunks;
    for (int i = kAttentionBatchAxes - 1; i >= 0; --i) {
      position_[i] = index % shape_.batch[i];
      index /= shape_.batch[i];
    }
    rows_ = even_part(shape_.queries, plan.row_chunks, task % plan.row_chunks);
    top_ = workspace;
    sum_ = top_ + round_up(rows_.size(), kLine);
    correction_ = sum_ + round_up(rows_.size(), kLine);
  }

  void run() const {
    if (shape_.keys == 0) return clear();
    const int64_t row_blocks = ceil_div(rows_.size(), plan_.row_block);
    for (int64_t b = 0; b < plan_.key_blocks; ++b) {
      const IndexRange keys = {b * plan_.key_block, std::min((b + 1) * plan_.key_block, shape_.keys)};
      pack(keys);
      for (int64_t i = 0; i < row_blocks; ++i) {
        const IndexRange part = even_part(rows_.size(), row_blocks, i);
        run_block({rows_.begin + part.begin, rows_.begin + part.end}, keys);
      }
    }
  }

 private:
  // The panels of `columns` columns, each an even share of the vectors.
  struct Panels {
    int64_t vectors, count;
    Panels(int64_t columns, int64_t lanes)
        : vectors(ceil_div(columns, lanes)), count(ceil_div(vectors, int64_t{kTileVectors})) {}
    IndexRange operator[](int64_t i) const { return even_part(vectors, count, i); }
  };

  float* result(int64_t row) const { return args_.y_data + args_.y.offset(position_) + row * args_.y.row; }

  void clear() const {
    for (int64_t r = rows_.begin; r < rows_.end; ++r) std::fill_n(result(r), shape_.value_size, 0.0f);
  }

  void pack_panels(const float* src, int64_t row, int64_t column, int64_t k, int64_t columns, float scale,
                   float* to) const {
    const Panels panels(columns, plan_.lanes);
    for (int64_t p = 0; p < panels.count; ++p) {
      const IndexRange vectors = panels[p];
      const int64_t first = vectors.begin * plan_.lanes, width = vectors.size() * plan_.lanes;
      tools_.pack.panel(src + first * column, row, column, k, std::min(width, columns - first), vectors.size(), scale,
                        to + first * k);
    }
  }

  // Whether the rows read k, or v, where it is.
  bool reads_k() const { return rows_.size() <= kFewAttentionRows && args_.k.row == 1 && args_.q.column == 1; }
  bool reads_v() const {
    return rows_.size() <= kFewAttentionRows && args_.v.column == 1 && shape_.value_size % plan_.lanes == 0;
  }

  const float* keys_at(int64_t key) const { return args_.k_data + args_.k.offset(position_) + key * args_.k.column; }
  const float* values_at(int64_t key) const { return args_.v_data + args_.v.offset(position_) + key * args_.v.row; }

  void pack(IndexRange keys) const {
    if (!reads_k()) {
      pack_panels(keys_at(keys.begin), args_.k.row, args_.k.column, shape_.size, keys.size(), args_.scale,
                  workspace_ + plan_.packed_k_at);
    }
    if (!reads_v()) {
      pack_panels(values_at(keys.begin), args_.v.row, args_.v.column, keys.size(), shape_.value_size, 1.0f,
                  workspace_ + plan_.packed_v_at);
    }
  }

  void run_block(IndexRange rows, IndexRange keys) const {
    float* scores = workspace_ + plan_.scores_at;
    const bool is_first = keys.begin == 0;
    const int64_t step = round_up(keys.size(), plan_.lanes), at = rows.begin - rows_.begin;
    const float* q = args_.q_data + args_.q.offset(position_) + rows.begin * args_.q.row;
    if (reads_k()) {
      tools_.rows.dots({q, keys_at(keys.begin), args_.q.row, args_.k.column, rows.size(), keys.size(), shape_.size,
                        args_.scale, scores, step});
    } else {
      multiply(q, args_.q.row, args_.q.column, rows.size(), shape_.size, workspace_ + plan_.packed_k_at, 0, step,
               scores, step, false);
    }
    ScoreBlock block;
    block.scores = scores;
    block.step = step;
    block.rows = rows.size();
    block.keys = keys.size();
    block.term_count = args_.term_count;
    for (int t = 0; t < args_.term_count; ++t) {
      AttentionTerm& term = block.terms[t] = args_.terms[t];
      const int64_t offset = term.strides.offset(position_) + rows.begin * term.strides.row + keys.begin;
      if (term.added) term.added += offset;
      if (term.condition) term.condition += offset;
    }
    block.top = top_ + at;
    block.sum = sum_ + at;
    block.correction = correction_ + at;
    block.is_first = is_first;
    tools_.rows.exponentials(block);
    float* y = result(rows.begin);
    if (!is_first) tools_.rows.scale_rows(y, args_.y.row, rows.size(), shape_.value_size, block.correction);
    multiply(scores, step, 1, rows.size(), keys.size(),
             reads_v() ? values_at(keys.begin) : workspace_ + plan_.packed_v_at, reads_v() ? args_.v.row : 0,
             shape_.value_size, y, args_.y.row, !is_first);
    if (keys.end < shape_.keys) return;
    for (int64_t r = 0; r < rows.size(); ++r) {
      const bool is_zero = args_.nan_is_zero && !(block.sum[r] > 0);
      if (is_zero) std::fill_n(result(rows.begin + r), shape_.value_size, 0.0f);
      block.correction[r] = is_zero ? 0.0f : 1 / block.sum[r];
    }
    tools_.rows.scale_rows(y, args_.y.row, rows.size(), shape_.value_size, block.correction);
  }

  // The product of some rows and a matrix: of packed panels where b_row is zero. `adds`: to what is there.
  void multiply(const float* a, int64_t a_row, int64_t a_column, int64_t rows, int64_t k, const float* b, int64_t b_row,
                int64_t columns, float* c, int64_t c_row, bool adds) const {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const Panels panels(columns, plan_.lanes);
    const TileTap tap = {};
    for (int64_t p = 0; p < panels.count; ++p) {
      const IndexRange vectors = panels[p];
      const int64_t first = vectors.begin * plan_.lanes, width = vectors.size() * plan_.lanes;
      const int64_t tiles = ceil_div(rows, int64_t{tools_.tiles.max_rows[vectors.size()]});
      const auto& kernels = (a_column == 1 ? tools_.tiles.rows : tools_.tiles.columns)[vectors.size()];
      for (int64_t i = 0; i < tiles; ++i) {
        const IndexRange part = even_part(rows, tiles, i);
        Tile tile;
        tile.taps = &tap;
        tile.tap_count = 1;
        tile.block_size = tile.last_size = k;
        tile.src = a + part.begin * a_row;
        tile.step = a_column == 1 ? a_row : a_column;
        tile.weight = b_row == 0 ? b + first * k : b + first;
        tile.weight_step = b_row == 0 ? width : b_row;
        tile.dst = c + part.begin * c_row + first;
        tile.dst_row = c_row;
        if (adds) {
          tile.init = tile.dst;
          tile.init_row = c_row;
        }
        for (int64_t v = 0; v < vectors.size(); ++v) tile.init_vector[v] = tile.dst_vector[v] = v * plan_.lanes;
        tile.lo = -kInfinity;
        tile.hi = kInfinity;
        run_microkernel_edge(kernels[part.size()], tools_.tiles, tile, part.size(), vectors.size(),
                             std::min(width, columns - first));
      }
    }
  }

  const AttentionPlan& plan_;
  const AttentionShape& shape_;
  const AttentionTools& tools_;
  const AttentionArgs& args_;
  float* workspace_;
  int64_t position_[kAttentionBatchAxes];
  IndexRange rows_;
  float* top_;
  float* sum_;
  float* correction_;
};

}  // namespace

AttentionPlan plan_attention(const AttentionShape& s, const TileKernels& kernels) {
  AttentionPlan plan;
  plan.shape = s;
  plan.lanes = kernels.lanes;
  int64_t batches = 1;
  for (const int64_t b : s.batch) batches *= b;
  if (batches == 0 || s.queries == 0 || s.value_size == 0) return plan;
  plan.key_blocks = s.keys <= kMaxKeyBlock ? std::min<int64_t>(s.keys, 1) : ceil_div(s.keys, kKeyBlock);
  plan.key_block = plan.key_blocks == 0 ? 0 : round_up(ceil_div(s.keys, plan.key_blocks), plan.lanes);
  plan.row_block = std::clamp(kHeldScores / std::max<int64_t>(plan.key_block, 1), kMinRows, kMaxRows);

  const int64_t operations = 2 * batches * s.queries * s.keys * (s.size + s.value_size + 16);
  const int64_t wanted = ceil_div(worthwhile_tasks(operations), batches);
  // Each task packs k and v, which rows must pay for.
  plan.row_chunks = std::clamp<int64_t>(s.queries / 64, 1, wanted);
  plan.tasks = batches * plan.row_chunks;
  const int64_t rows = ceil_div(s.queries, plan.row_chunks);
  plan.scores_at = 3 * round_up(rows, kLine);
  plan.packed_k_at = plan.scores_at + round_up(std::min(plan.row_block, rows) * plan.key_block, kLine);
  plan.packed_v_at = plan.packed_k_at + round_up(plan.key_block * s.size, kLine);
  plan.workspace_size = plan.packed_v_at + plan.key_block * round_up(s.value_size, plan.lanes);
  return plan;
}

void run_attention(const AttentionPlan& plan, const AttentionTools& tools, const AttentionArgs& args,
                   int64_t task_begin, int64_t task_end, float* workspace) {
  for (int64_t task = task_begin; task < task_end; ++task) AttentionTask(plan, tools, args, task, workspace).run();
}

}  // namespace neo
