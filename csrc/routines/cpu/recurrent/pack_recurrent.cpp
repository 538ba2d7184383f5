#include "routines/cpu/recurrent/pack_recurrent.h"

#include <algorithm>

#include "base/int_math.h"
#include "ops/op.h"
#include "routines/cpu/gemm/gemm_block.h"

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
PackedCells pack_cells(const RecurrentPacker& packer, const Value& r, int64_t first, int64_t count,
                       const RecurrentPacking& packing, const StrassenPlan& plan, PackedStore& store) {
  const RecurrentForm& form = packer.form;
  if (plan.levels > 0) return {{}, pack_strassen_cells(form, r, plan, packing.groups, first, count, store)};
  PackedCells cells;
  if (!packing.exponent_packed) {
    cells.values = store.floats(packer.gates_size(count), {&r}, [&](float* to) {
      packer.pack_gates(r.constant->as<float>(), first, count, 0, form.directions * packer.blocks(), to);
    });
    return cells;
  }
  const int64_t hidden = form.hidden, lanes = packer.lanes, blocks = packer.blocks();
  // Rows [row, row + rows) of one direction's block.
  const auto copy_rows = [&](int64_t panel, int64_t row, int64_t rows, float* to) {
    const float* from = r.constant->as<float>() + (panel / blocks * form.gates + first) * hidden * hidden + row;
    const int64_t unit = panel % blocks * lanes, units = std::min(lanes, hidden - unit);
    for (int64_t gate = 0; gate < count; ++gate)
      packer.rows(from + (gate * hidden + unit) * hidden, hidden, units, rows, lanes, to + gate * lanes, count * lanes);
  };
  cells.exponent_packed = exponent_packed_cells(form, count, lanes);
  cells.values = store.floats(cells.exponent_packed.size(), {&r}, [&](float* to) {
    pack_exponent_packed(cells.exponent_packed, *packing.exponent_packed, r.constant->as<float>(), copy_rows, to);
  });
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

// The bias of a row: B holds for direction d the biases of W, then those of R.
float bias_of(const RecurrentForm& form, const float* b, int64_t d, int64_t half, int64_t row) {
  return b && row >= 0 ? b[(2 * d + half) * form.gates * form.hidden + row] : 0.0f;
}

// W of all directions for Strassen's algorithm.
void pack_strassen_projection(const RecurrentForm& form, const float* w, const StrassenPlan& plan, int64_t lanes,
                              float* to) {
  const int64_t rows = form.gates * form.hidden, input = form.input;
  Tensor columns(DType::Float32, {form.directions * ceil_div(form.hidden, lanes) * lanes * form.gates, input});
  float* column = columns.as<float>();
  for_each_column(form, lanes, [&](int64_t d, int64_t, int64_t row) {
    if (row >= 0)
      std::copy_n(w + (d * rows + row) * input, input, column);
    else
      std::fill_n(column, input, 0.0f);
    column += input;
  });
  pack_strassen_weight(plan, columns.as<float>(), to);
}

}  // namespace

int64_t RecurrentPacker::blocks() const {
  return ceil_div(form.hidden, lanes);
}

int64_t RecurrentPacker::bias_size() const {
  return form.directions * blocks() * form.gates * lanes;
}

int64_t RecurrentPacker::gates_size(int64_t gates) const {
  return form.directions * blocks() * form.hidden * gates * lanes;
}

int64_t RecurrentPacker::candidate_bias_size() const {
  return form.directions * blocks() * lanes;
}

int64_t RecurrentPacker::peepholes_size() const {
  return form.peepholes ? form.directions * blocks() * 3 * lanes : 0;
}

void RecurrentPacker::pack_projection(const GemmPlan& plan, int64_t parts, const float* w, int64_t begin, int64_t end,
                                      float* to) const {
  const int64_t hidden = form.hidden, input = form.input, of_direction = blocks() * form.gates;
  const int64_t vectors = form.directions * of_direction / parts;
  for (int64_t i = begin; i < end; ++i) {
    const IndexRange panel = gemm_panel(plan, i % plan.panels);
    const int64_t first = i / plan.panels * vectors + panel.begin, width = panel.size() * lanes;
    for (int64_t v = 0; v < panel.size(); ++v) {
      const int64_t direction = (first + v) / of_direction, column = (first + v) % of_direction;
      const int64_t gate = column % form.gates, unit = column / form.gates * lanes;
      rows(w + ((direction * form.gates + gate) * hidden + unit) * input, input, std::min(lanes, hidden - unit), input,
           lanes, to + first * lanes * input + v * lanes, width);
    }
  }
}

void RecurrentPacker::pack_gates(const float* r, int64_t first, int64_t count, int64_t begin, int64_t end,
                                 float* to) const {
  const int64_t hidden = form.hidden;
  for (int64_t block = begin; block < end; ++block) {
    const int64_t direction = block / blocks(), unit = block % blocks() * lanes;
    for (int64_t gate = 0; gate < count; ++gate) {
      const float* from = r + ((direction * form.gates + first + gate) * hidden + unit) * hidden;
      rows(from, hidden, std::min(lanes, hidden - unit), hidden, lanes, to + (block * hidden * count + gate) * lanes,
           count * lanes);
    }
  }
}

void RecurrentPacker::pack_bias(const float* b, float* to) const {
  for_each_column(form, lanes, [&](int64_t d, int64_t gate, int64_t row) {
    const bool apart = form.kind == CellKind::GruLinear && gate == 2;
    *to++ = apart ? bias_of(form, b, d, 0, row) : bias_of(form, b, d, 0, row) + bias_of(form, b, d, 1, row);
  });
}

void RecurrentPacker::pack_candidate_bias(const float* b, float* to) const {
  for_each_column(form, lanes, [&](int64_t d, int64_t gate, int64_t row) {
    if (gate + 1 == form.gates) *to++ = bias_of(form, b, d, 1, row);
  });
}

void RecurrentPacker::pack_peepholes(const float* peepholes, float* to) const {
  for_each_column(form, lanes, [&](int64_t d, int64_t gate, int64_t row) {
    if (gate < 3) *to++ = row >= 0 ? peepholes[d * 3 * form.hidden + row] : 0.0f;
  });
}

RecurrentWeights PackedRecurrent::weights() const {
  const auto of = [](const Tensor& tensor) { return tensor.defined() ? tensor.as<float>() : nullptr; };
  return {of(projection), of(bias), of(recurrent.values), of(candidate.values), of(candidate_bias), of(peepholes)};
}

GemmPlan projection_plan(const RecurrentForm& form, int64_t rows, const RecurrentPacking& packing,
                         const TileKernels& tiles) {
  const int64_t vectors = packing.panel_vectors > 0 ? packing.panel_vectors
                          : form.gates > 1          ? form.gates
                                                    : kTileVectors;
  GemmShape shape;
  shape.m = rows;
  shape.n = form.directions / packing.parts * ceil_div(form.hidden, tiles.lanes) * form.gates * tiles.lanes;
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

PackedRecurrent pack_recurrent(const RecurrentForm& form, const RecurrentPacking& packing, const TileKernels& tiles,
                               PackRows rows, PackedStore& store) {
  PackedRecurrent packed;
  const int64_t lanes = tiles.lanes;
  const RecurrentPacker packer{form, lanes, rows};
  packed.lanes = lanes;
  packed.blocks = packer.blocks();
  packed.width = packed.blocks * form.gates * lanes;
  if (!form.has_constant_weights) return packed;

  const auto floats_of = [](const Value* v) { return v ? v->constant->as<float>() : nullptr; };
  const auto pack_bias = [&] {
    packed.bias =
        store.floats(packer.bias_size(), {form.b}, [&](float* to) { packer.pack_bias(floats_of(form.b), to); });
  };
  const auto pack_peepholes = [&] {
    if (!form.peepholes) return;
    packed.peepholes = store.floats(packer.peepholes_size(), {form.peepholes},
                                    [&](float* to) { packer.pack_peepholes(floats_of(form.peepholes), to); });
  };
  if (form.is_quantized) {
    pack_bias();
    pack_peepholes();
    return packed;
  }
  const bool by_strassen = packing.projection.levels > 0;
  const GemmPlan plan = projection_plan(form, 1, packing, tiles);
  const int64_t size = by_strassen ? strassen_weight_size(packing.projection) : packing.parts * gemm_packed_size(plan);
  packed.projection = store.floats(size, {form.w}, [&](float* to) {
    if (by_strassen)
      pack_strassen_projection(form, floats_of(form.w), packing.projection, lanes, to);
    else
      packer.pack_projection(plan, packing.parts, floats_of(form.w), 0, packing.parts * plan.panels, to);
  });
  pack_bias();
  packed.candidate_bias = store.floats(packer.candidate_bias_size(), {form.b},
                                       [&](float* to) { packer.pack_candidate_bias(floats_of(form.b), to); });
  packed.recurrent = pack_cells(packer, *form.r, 0, packer.recurrent_gates(), packing, packing.recurrent, store);
  if (packer.has_candidate()) packed.candidate = pack_cells(packer, *form.r, 2, 1, packing, packing.candidate, store);
  pack_peepholes();
  return packed;
}

}  // namespace neo
