#include "ops/recurrent.h"

#include <algorithm>
#include <cmath>

#include "base/budget.h"
#include "ops/elements.h"
#include "ops/families.h"
#include "ops/sizes.h"

namespace neo {

namespace {

bool is_reverse(const Node& node, int64_t direction) {
  return direction == 1 || node.string_attr("direction", "forward") == "reverse";
}

int64_t direction_count(const Node& node) {
  const std::string direction = node.string_attr("direction", "forward");
  if (direction == "bidirectional") return 2;
  NEO_CHECK(direction == "forward" || direction == "reverse", Model, node.op,
            "attribute direction must be forward, reverse or bidirectional. Got \"", direction, "\" - at ",
            node.place());
  return 1;
}

bool is_batch_first(const Node& node) {
  const int64_t layout = node.int_attr("layout", 0);
  NEO_CHECK(layout == 0 || layout == 1, Model, node.op, "attribute layout must be 0 or 1. Got ", layout, " - at ",
            node.place());
  return layout == 1;
}

// The rows of W and R of one direction as dense matrices.
GateProducts dense_products(const ReferenceContext& ctx, const RecurrentSizes& sizes, int gates, int64_t direction,
                            const std::vector<double>& w, const std::vector<double>& r) {
  const int64_t width = gates * sizes.hidden;
  ctx.check(static_cast<int64_t>(w.size()) == sizes.directions * width * sizes.input &&
                static_cast<int64_t>(r.size()) == sizes.directions * width * sizes.hidden,
            str("W and R must fit the input and the hidden size. Got ", to_string(ctx.input(1).dims()), " and ",
                to_string(ctx.input(2).dims())));
  const double* w_rows = w.data() + direction * width * sizes.input;
  const double* r_rows = r.data() + direction * width * sizes.hidden;
  return {[=, &sizes](const std::vector<double>& rows, int64_t count) {
            return multiply_transposed(rows, count, w_rows, width, sizes.input);
          },
          [=, &sizes](const std::vector<double>& rows, int64_t count) {
            return multiply_transposed(rows, count, r_rows, width, sizes.hidden);
          }};
}

// The lengths of the sequences of a batch.
std::vector<int64_t> read_lengths(const ReferenceContext& ctx, int input, int64_t steps, int64_t batch) {
  std::vector<int64_t> lengths = ctx.ints(input);
  if (static_cast<int64_t>(lengths.size()) != batch) {
    ctx.fail(ErrorKind::Shape, str("sequence_lens must have one length per element of the batch. Got ", lengths.size(),
                                   ", expected ", batch));
  }
  for (const int64_t length : lengths) {
    if (length >= 0 && length <= steps) continue;
    ctx.fail(ErrorKind::Shape, str("a sequence must not be longer than X. Got ", length, ", expected 0 to ", steps));
  }
  return lengths;
}

// RNN

void infer_rnn(InferContext& ctx) {
  infer_recurrent(ctx, 1, 1);
}

void reference_rnn(ReferenceContext& ctx) {
  const RecurrentSizes sizes = recurrent_sizes(ctx, ctx.input(2).dims().back());
  const int64_t hidden = sizes.hidden;
  const Clip clip(ctx.node());
  const auto x = ctx.doubles(0);
  const auto w = ctx.doubles(1);
  const auto r = ctx.doubles(2);
  auto y = make_scratch<double>(element_count(sizes.y_dims()));
  auto final_h = make_scratch<double>(element_count(sizes.state_dims()));
  for (int64_t d = 0; d < sizes.directions; ++d) {
    const auto bias = direction_bias(ctx, 3, d, 2 * hidden);
    const auto f = direction_activations(ctx.node(), {"Tanh"}, d).front();
    auto state = initial_state(ctx, sizes, 5, d);
    const auto step = [&](const double* from_x, const double* from_h, double* h, int64_t) {
      for (int64_t i = 0; i < hidden; ++i) {
        const auto j = static_cast<size_t>(i);
        h[i] = f(clip(from_x[i] + from_h[i] + bias[j] + bias[j + static_cast<size_t>(hidden)]));
      }
    };
    run_direction(ctx, sizes, d, x, dense_products(ctx, sizes, 1, d, w, r), step, state, y);
    keep_final_state(sizes, d, state, final_h);
  }
  store_recurrent_output(ctx, 0, sizes.y_dims(), y);
  store_recurrent_output(ctx, 1, sizes.state_dims(), final_h);
}

// neo.SequenceLengths: the int32 lengths of sequences in X, which may be no longer than that. Attribute: layout.

void infer_sequence_lengths(InferContext& ctx) {
  check_dtype(ctx, 0, DTypeClass::Integer);
  ctx.check_rank(0, 1);
  ctx.check_rank(1, 3);
  const Dim batch = ctx.ranked(1) ? ctx.shape(1)[is_batch_first(ctx.node()) ? 0 : 1] : ctx.fresh("batch");
  if (ctx.ranked(0)) {
    ctx.require_equal(ctx.shape(0)[0], batch, "sequence_lens must have one length per element of the batch");
  }
  ctx.set_output(0, DType::Int32, Shape({batch}));
}

void reference_sequence_lengths(ReferenceContext& ctx) {
  const Dims& x = ctx.input(1).dims();
  const bool batch_first = is_batch_first(ctx.node());
  const auto lengths = read_lengths(ctx, 0, x[batch_first ? 1 : 0], x[batch_first ? 0 : 1]);
  store_ints(ctx.output(0, DType::Int32, {static_cast<int64_t>(lengths.size())}), lengths);
}

// GRU; gates z, r, h

void infer_gru(InferContext& ctx) {
  infer_recurrent(ctx, 3, 1);
}

void reference_gru(ReferenceContext& ctx) {
  const RecurrentSizes sizes = recurrent_sizes(ctx, ctx.input(2).dims().back());
  const int64_t hidden = sizes.hidden;
  const bool linear_first = ctx.node().int_attr("linear_before_reset", 0) != 0;
  const Clip clip(ctx.node());
  const auto x = ctx.doubles(0);
  const auto w = ctx.doubles(1);
  const auto r = ctx.doubles(2);
  auto y = make_scratch<double>(element_count(sizes.y_dims()));
  auto final_h = make_scratch<double>(element_count(sizes.state_dims()));
  auto update = make_scratch<double>(hidden);
  auto reset = make_scratch<double>(hidden);
  for (int64_t d = 0; d < sizes.directions; ++d) {
    const auto bias = direction_bias(ctx, 3, d, 6 * hidden);
    const double* w_bias = bias.data();
    const double* r_bias = bias.data() + 3 * hidden;
    const double* r_candidate = r.data() + (d * 3 + 2) * hidden * hidden;
    const auto activations = direction_activations(ctx.node(), {"Sigmoid", "Tanh"}, d);
    const NamedActivation& f = activations[0];
    const NamedActivation& g = activations[1];
    auto state = initial_state(ctx, sizes, 5, d);
    const auto step = [&](const double* from_x, const double* from_h, double* h, int64_t) {
      for (int64_t i = 0; i < hidden; ++i) {
        const auto j = static_cast<size_t>(i);
        update[j] = f(clip(from_x[i] + from_h[i] + w_bias[i] + r_bias[i]));
        reset[j] = f(clip(from_x[hidden + i] + from_h[hidden + i] + w_bias[hidden + i] + r_bias[hidden + i]));
      }
      const int64_t c = 2 * hidden;
      auto recurrent = make_scratch<double>(hidden);
      if (linear_first) {
        for (int64_t i = 0; i < hidden; ++i) {
          const auto j = static_cast<size_t>(i);
          recurrent[j] = reset[j] * (from_h[c + i] + r_bias[c + i]);
        }
      } else {
        for (int64_t i = 0; i < hidden; ++i) recurrent[static_cast<size_t>(i)] = reset[static_cast<size_t>(i)] * h[i];
        recurrent = multiply_transposed(recurrent, 1, r_candidate, hidden, hidden);
        for (int64_t i = 0; i < hidden; ++i) recurrent[static_cast<size_t>(i)] += r_bias[c + i];
      }
      for (int64_t i = 0; i < hidden; ++i) {
        const auto j = static_cast<size_t>(i);
        const double candidate = g(clip(from_x[c + i] + recurrent[j] + w_bias[c + i]));
        h[i] = (1 - update[j]) * candidate + update[j] * h[i];
      }
    };
    run_direction(ctx, sizes, d, x, dense_products(ctx, sizes, 3, d, w, r), step, state, y);
    keep_final_state(sizes, d, state, final_h);
  }
  store_recurrent_output(ctx, 0, sizes.y_dims(), y);
  store_recurrent_output(ctx, 1, sizes.state_dims(), final_h);
}

}  // namespace

void infer_recurrent(InferContext& ctx, int gates, int states, bool weights_transposed) {
  check_dtype(ctx, 0, DTypeClass::Float);
  const int64_t directions = direction_count(ctx.node());
  const bool batch_first = is_batch_first(ctx.node());
  ctx.check_rank(0, 3);
  ctx.check_rank(1, 3);
  ctx.check_rank(2, 3);
  for (int i = 5; i < 5 + states && i < ctx.input_count(); ++i) ctx.check_rank(i, 3);
  Dim steps;
  Dim batch;
  if (ctx.ranked(0)) {
    steps = ctx.shape(0)[batch_first ? 1 : 0];
    batch = ctx.shape(0)[batch_first ? 0 : 1];
  } else {
    steps = ctx.fresh("steps");
    batch = ctx.fresh("batch");
  }
  Dim hidden;
  if (ctx.node().has_attr("hidden_size")) {
    hidden = ctx.node().int_attr("hidden_size", 0);
    ctx.require_less_equal(1, hidden, "hidden_size must be at least 1");
  } else if (ctx.ranked(2)) {
    hidden = ctx.shape(2)[weights_transposed ? 1 : 2];
  } else {
    hidden = ctx.fresh("hidden");
  }
  for (const int i : {1, 2}) {
    if (!ctx.ranked(i)) continue;
    const Shape& weights = ctx.shape(i);
    const Dim& width = weights[weights_transposed ? 2 : 1];
    const Dim& depth = weights[weights_transposed ? 1 : 2];
    ctx.require_equal(weights[0], directions, "W and R must have one matrix per direction");
    ctx.require_equal(width, hidden * Dim(gates), "W and R must have a row per gate and hidden element");
    if (i == 2) ctx.require_equal(depth, hidden, "R must have a column per hidden element");
    if (i == 1 && ctx.ranked(0)) ctx.require_equal(depth, ctx.shape(0)[2], "W must have a column per input element");
  }
  if (ctx.ranked(3)) {
    ctx.check_rank(3, 2);
    ctx.require_equal(ctx.shape(3)[1], hidden * Dim(2 * gates), "B must have two biases per gate and hidden element");
  }
  if (ctx.ranked(4)) {
    ctx.check_rank(4, 1);
    ctx.require_equal(ctx.shape(4)[0], batch, "sequence_lens must have one length per element of the batch");
  }
  const Shape y = batch_first ? Shape({batch, steps, directions, hidden}) : Shape({steps, directions, batch, hidden});
  const Shape state = batch_first ? Shape({batch, directions, hidden}) : Shape({directions, batch, hidden});
  ctx.set_output(0, ctx.dtype(0), y);
  for (int i = 1; i <= states; ++i) ctx.set_output(i, ctx.dtype(0), state);
}

Dims RecurrentSizes::y_dims() const {
  if (batch_first) return {batch, steps, directions, hidden};
  return {steps, directions, batch, hidden};
}

Dims RecurrentSizes::state_dims() const {
  if (batch_first) return {batch, directions, hidden};
  return {directions, batch, hidden};
}

RecurrentSizes recurrent_sizes(const ReferenceContext& ctx, int64_t hidden) {
  const Dims x = ctx.input(0).dims();
  ctx.check(x.size() == 3, str("X must have rank 3. Got ", to_string(x)));
  RecurrentSizes sizes;
  sizes.batch_first = is_batch_first(ctx.node());
  sizes.directions = direction_count(ctx.node());
  sizes.steps = x[sizes.batch_first ? 1 : 0];
  sizes.batch = x[sizes.batch_first ? 0 : 1];
  sizes.input = x[2];
  sizes.hidden = hidden;
  sizes.lengths.assign(static_cast<size_t>(sizes.batch), sizes.steps);
  if (ctx.has_input(4)) sizes.lengths = read_lengths(ctx, 4, sizes.steps, sizes.batch);
  return sizes;
}

std::vector<NamedActivation> direction_activations(const Node& node, const std::vector<std::string>& fallback,
                                                   int64_t direction) {
  const auto count = fallback.size();
  auto names = node.strings_attr("activations");
  if (names.empty()) names = fallback;
  // Lists may be written once for both directions.
  if (names.size() == count) {
    const auto once = names;
    names.insert(names.end(), once.begin(), once.end());
  }
  NEO_CHECK(names.size() == 2 * count, Model, node.op, "attribute activations must name ", count,
            " functions per direction. Got ", names.size(), " - at ", node.place());
  const auto alpha = node.floats_attr("activation_alpha");
  const auto beta = node.floats_attr("activation_beta");
  size_t alphas = 0;
  size_t betas = 0;
  std::vector<NamedActivation> activations;
  for (const std::string& name : names) {
    // Only functions that take parameters consume values.
    const int parameters = NamedActivation::parameter_count(node, name);
    std::vector<double> values;
    if (parameters >= 1 && alphas < alpha.size()) values.push_back(alpha[alphas++]);
    if (parameters >= 2 && values.size() == 1 && betas < beta.size()) values.push_back(beta[betas++]);
    activations.emplace_back(node, name, values);
  }
  const auto first = activations.begin() + direction * static_cast<int64_t>(count);
  return {first, first + static_cast<int64_t>(count)};
}

Clip::Clip(const Node& node) : bound_(node.float_attr("clip", HUGE_VAL)) {}

std::vector<double> multiply_transposed(const std::vector<double>& rows, int64_t count, const double* weights,
                                        int64_t width, int64_t depth) {
  auto result = make_scratch<double>(count * width);
  for (int64_t i = 0; i < count; ++i) {
    checkpoint();
    const double* row = rows.data() + i * depth;
    for (int64_t j = 0; j < width; ++j) {
      const double* column = weights + j * depth;
      double sum = 0;
      for (int64_t p = 0; p < depth; ++p) sum += row[p] * column[p];
      result[static_cast<size_t>(i * width + j)] = sum;
    }
  }
  return result;
}

void run_direction(const ReferenceContext& ctx, const RecurrentSizes& sizes, int64_t direction,
                   const std::vector<double>& x, const GateProducts& products, const RecurrentUpdate& step,
                   std::vector<double>& state, std::vector<double>& y) {
  const bool reverse = is_reverse(ctx.node(), direction);
  if (sizes.steps == 0 || sizes.batch == 0) return;
  const auto from_x = products.of_input(x, sizes.steps * sizes.batch);
  const int64_t width = static_cast<int64_t>(from_x.size()) / (sizes.steps * sizes.batch);
  for (int64_t s = 0; s < sizes.steps; ++s) {
    const auto from_h = products.of_hidden(state, sizes.batch);
    for (int64_t b = 0; b < sizes.batch; ++b) {
      const int64_t length = sizes.lengths[static_cast<size_t>(b)];
      if (s >= length) continue;
      const int64_t at = reverse ? length - 1 - s : s;
      double* h = state.data() + b * sizes.hidden;
      step(from_x.data() + sizes.x_row(at, b) * width, from_h.data() + b * width, h, b);
      std::copy_n(h, sizes.hidden, y.begin() + sizes.y_row(at, direction, b) * sizes.hidden);
    }
  }
}

std::vector<double> initial_state(const ReferenceContext& ctx, const RecurrentSizes& sizes, int input,
                                  int64_t direction) {
  auto state = make_scratch<double>(sizes.batch * sizes.hidden);
  if (!ctx.has_input(input)) return state;
  ctx.check(ctx.input(input).dims() == sizes.state_dims(),
            str("an initial state must have dims ", to_string(sizes.state_dims()), ". Got ",
                to_string(ctx.input(input).dims())));
  const auto all = ctx.doubles(input);
  for (int64_t b = 0; b < sizes.batch; ++b) {
    std::copy_n(all.begin() + sizes.state_row(direction, b) * sizes.hidden, sizes.hidden,
                state.begin() + b * sizes.hidden);
  }
  return state;
}

void keep_final_state(const RecurrentSizes& sizes, int64_t direction, const std::vector<double>& state,
                      std::vector<double>& all) {
  for (int64_t b = 0; b < sizes.batch; ++b) {
    std::copy_n(state.begin() + b * sizes.hidden, sizes.hidden,
                all.begin() + sizes.state_row(direction, b) * sizes.hidden);
  }
}

void store_recurrent_output(ReferenceContext& ctx, int output, const Dims& dims, const std::vector<double>& elements) {
  if (ctx.has_output(output)) store_doubles(ctx.output(output, ctx.input(0).dtype(), dims), elements);
}

std::vector<double> direction_bias(const ReferenceContext& ctx, int input, int64_t direction, int64_t count) {
  if (!ctx.has_input(input)) return std::vector<double>(static_cast<size_t>(count));
  const auto all = ctx.doubles(input);
  ctx.check(
      static_cast<int64_t>(all.size()) >= (direction + 1) * count,
      str("input ", input, " must have ", count, " elements per direction. Got ", to_string(ctx.input(input).dims())));
  return {all.begin() + direction * count, all.begin() + (direction + 1) * count};
}

Work recurrent_work(const Node& node) {
  const Value* x = node.input(0);
  if (!x || !x->shape().has_rank() || x->shape().rank() != 3) return {0, operand_bytes(node)};
  const Dim weights = element_count_or_zero(node.input(1)) + element_count_or_zero(node.input(2));
  return {Dim(2) * x->shape()[0] * x->shape()[1] * weights, operand_bytes(node)};
}

void add_recurrent_ops(OpRegistry& ops) {
  ops.add({.name = "RNN",
           .min_inputs = 3,
           .max_inputs = 6,
           .max_outputs = 2,
           .infer = infer_rnn,
           .reference = reference_rnn,
           .work = recurrent_work});
  ops.add({.name = "GRU",
           .min_inputs = 3,
           .max_inputs = 6,
           .max_outputs = 2,
           .infer = infer_gru,
           .reference = reference_gru,
           .work = recurrent_work});
  ops.add({.name = "neo.SequenceLengths",
           .min_inputs = 2,
           .max_inputs = 2,
           .infer = infer_sequence_lengths,
           .reference = reference_sequence_lengths});
}

}  // namespace neo
