#include "routines/cpu/recurrent/pack_recurrent.h"

#include <algorithm>

#include "base/int_math.h"
#include "ops/op.h"

namespace neo {
namespace {

// Gates [first, first + count) of R for Strassen's algorithm, of hidden units that are whole vectors.
Tensor pack_strassen_cells(const RecurrentForm& form, const Value& r, const StrassenPlan& plan, int64_t groups,
                           int64_t first, int64_t count, PackedStore& store) {
  const int64_t hidden = form.hidden, units = hidden / groups, parts = form.directions * groups;
  return store.floats(parts * strassen_weight_size(plan), {&r}, [&](float* to) {
    Tensor matrix(DType::Float32, {units * count, hidden});
    for (int64_t part = 0; part < parts; ++part) {
      const float* from = r.constant->as<float>() + part / groups * form.gates * hidden * hidden;
      float* row = matrix.as<float>();
      for (int64_t unit = part % groups * units, end = unit + units; unit < end; unit += plan.lanes) {
        for (int64_t gate = first; gate < first + count; ++gate, row += plan.lanes * hidden) {
          std::copy_n(from + (gate * hidden + unit) * hidden, plan.lanes * hidden, row);
        }
      }
      pack_strassen_weight(plan, matrix.as<float>(), to + part * strassen_weight_size(plan));
    }
  });
}

// Gates [first, first + count) of R. `plan`: Strassen's, of a group of them.
PackedCells pack_cells(const RecurrentForm& form, const Value& r, int64_t lanes, int64_t first, int64_t count,
                       const RecurrentPacking& packing, const StrassenPlan& plan, PackedStore& store) {
  if (plan.levels > 0) return {{}, pack_strassen_cells(form, r, plan, packing.groups, first, count, store)};
  const ExponentPackedKernels* exponent_packed = packing.exponent_packed;
  const int64_t hidden = form.hidden, blocks = ceil_div(hidden, lanes);
  // Rows [row, row + rows) of one direction's block.
  const auto copy_rows = [&](int64_t panel, int64_t row, int64_t rows, float* to) {
    constexpr int64_t kTogether = 16;  // a cache line of each unit's weights
    const float* from = r.constant->as<float>() + panel / blocks * form.gates * hidden * hidden;
    const int64_t unit = panel % blocks * lanes, units = std::min(lanes, hidden - unit);
    std::fill_n(to, rows * count * lanes, 0.0f);
    for (int64_t begin = 0; begin < rows; begin += kTogether) {
      const int64_t end = std::min(begin + kTogether, rows);
      for (int64_t gate = 0; gate < count; ++gate) {
        for (int64_t lane = 0; lane < units; ++lane) {
          const float* source = from + ((first + gate) * hidden + unit + lane) * hidden + row;
          for (int64_t k = begin; k < end; ++k) to[(k * count + gate) * lanes + lane] = source[k];
        }
      }
    }
  };
  PackedCells cells;
  if (exponent_packed) {
    cells.exponent_packed = exponent_packed_cells(form, count, lanes);
    cells.values = store.floats(cells.exponent_packed.size(), {&r}, [&](float* to) {
      pack_exponent_packed(cells.exponent_packed, *exponent_packed, r.constant->as<float>(), copy_rows, to);
    });
  } else {
    const int64_t panel = hidden * count * lanes;
    cells.values = store.floats(form.directions * blocks * panel, {&r}, [&](float* to) {
      for (int64_t i = 0; i < form.directions * blocks; ++i) copy_rows(i, 0, hidden, to + i * panel);
    });
  }
  return cells;
}

// Calls f(direction, gate, row of the gates or -1 in a padding lane) for the columns of the projection in their order:
// [direction][block][gate][lane].
template <class F>
void for_each_column(const RecurrentForm& form, int64_t lanes, F f) {
  for (int64_t d = 0; d < form.directions; ++d) {
    for (int64_t block = 0; block < ceil_div(form.hidden, lanes); ++block) {
      for (int64_t gate = 0; gate < form.gates; ++gate) {
        for (int64_t unit = block * lanes; unit < (block + 1) * lanes; ++unit) {
          f(d, gate, unit < form.hidden ? gate * form.hidden + unit : -1);
        }
      }
    }
  }
}

}  // namespace

GemmPlan projection_plan(const RecurrentForm& form, int64_t rows, int64_t panel_vectors, const TileKernels& tiles) {
  const int64_t vectors = panel_vectors > 0 ? panel_vectors : form.gates > 1 ? form.gates : kTileVectors;
  GemmShape shape;
  shape.m = rows;
  shape.n = form.directions * ceil_div(form.hidden, tiles.lanes) * form.gates * tiles.lanes;
  shape.k = form.input;
  return plan_gemm(shape, {vectors, tiles.max_rows[vectors], true}, tiles);
}

ExponentPackedShape exponent_packed_cells(const RecurrentForm& form, int64_t gates, int64_t lanes) {
  ExponentPackedShape shape;
  shape.rows = form.hidden;
  shape.panels = form.directions * ceil_div(form.hidden, lanes);
  shape.vectors = gates;
  shape.lanes = lanes;
  shape.weights = form.directions * form.gates * form.hidden * form.hidden;  // all of R, in which the largest is sought
  return shape;
}

PackedRecurrent pack_recurrent(const Node& node, const RecurrentForm& form, const RecurrentPacking& packing,
                               const TileKernels& tiles, const PackKernels& pack, PackedStore& store) {
  PackedRecurrent packed;
  const int64_t lanes = tiles.lanes, rows = form.gates * form.hidden;
  packed.lanes = lanes;
  packed.blocks = ceil_div(form.hidden, lanes);
  packed.width = packed.blocks * form.gates * lanes;
  const Value &w = *node.input(1), &r = *node.input(2), *b = node.input(3);

  const GemmPlan plan = projection_plan(form, 1, packing.panel_vectors, tiles);
  const bool by_strassen = packing.projection.levels > 0;
  const int64_t size = by_strassen ? strassen_weight_size(packing.projection) : gemm_packed_size(plan);
  packed.projection = store.floats(size, {&w}, [&](float* to) {
    Tensor columns(DType::Float32, {form.directions * packed.width, form.input});
    float* column = columns.as<float>();
    for_each_column(form, lanes, [&](int64_t d, int64_t, int64_t row) {
      if (row >= 0)
        std::copy_n(w.constant->as<float>() + (d * rows + row) * form.input, form.input, column);
      else
        std::fill_n(column, form.input, 0.0f);
      column += form.input;
    });
    if (by_strassen)
      pack_strassen_weight(packing.projection, columns.as<float>(), to);
    else
      pack_gemm_b(plan, pack, columns.as<float>(), 1, form.input, 1.0f, to);
  });
  // Of direction d, B holds the biases of W, then those of R.
  const auto bias_of = [&](int64_t d, int64_t half, int64_t row) {
    return b && row >= 0 ? b->constant->as<float>()[(2 * d + half) * rows + row] : 0.0f;
  };
  packed.bias = store.floats(form.directions * packed.width, {b}, [&](float* to) {
    for_each_column(form, lanes, [&](int64_t d, int64_t gate, int64_t row) {
      const bool apart = form.kind == CellKind::GruLinear && gate == 2;
      *to++ = apart ? bias_of(d, 0, row) : bias_of(d, 0, row) + bias_of(d, 1, row);
    });
  });
  packed.candidate_bias = store.floats(form.directions * packed.blocks * lanes, {b}, [&](float* to) {
    for_each_column(form, lanes, [&](int64_t d, int64_t gate, int64_t row) {
      if (gate + 1 == form.gates) *to++ = bias_of(d, 1, row);
    });
  });
  if (form.kind == CellKind::GruGates) {
    packed.recurrent = pack_cells(form, r, lanes, 0, 2, packing, packing.recurrent, store);
    packed.candidate = pack_cells(form, r, lanes, 2, 1, packing, packing.candidate, store);
  } else {
    packed.recurrent = pack_cells(form, r, lanes, 0, form.gates, packing, packing.recurrent, store);
  }
  return packed;
}

}  // namespace neo
