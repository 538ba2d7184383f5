#include <algorithm>
#include <cmath>

#include "base/budget.h"
#include "ops/elements.h"
#include "ops/families.h"
#include "ops/quantize.h"
#include "ops/recurrent.h"
#include "ops/sizes.h"

namespace neo {

namespace {

// LSTM; gates i, o, f, c. Inputs 6 and 7 are initial_c and the peepholes.

void infer_lstm(InferContext& ctx) {
  infer_recurrent(ctx, 4, 2);
}

// Runs every direction with the products that `products` gives for it.
void run_lstm(ReferenceContext& ctx, const RecurrentSizes& sizes,
              const std::function<GateProducts(int64_t direction)>& products) {
  const int64_t hidden = sizes.hidden;
  const bool coupled = ctx.node().int_attr("input_forget", 0) != 0;
  const Clip clip(ctx.node());
  const auto x = ctx.doubles(0);
  auto y = make_scratch<double>(element_count(sizes.y_dims()));
  auto final_h = make_scratch<double>(element_count(sizes.state_dims()));
  std::vector<double> final_c(final_h.size());
  for (int64_t d = 0; d < sizes.directions; ++d) {
    const auto bias = direction_bias(ctx, 3, d, 8 * hidden);
    const auto peephole = direction_bias(ctx, 7, d, 3 * hidden);
    const auto activations = direction_activations(ctx.node(), {"Sigmoid", "Tanh", "Tanh"}, d);
    auto state = initial_state(ctx, sizes, 5, d);
    auto cells = initial_state(ctx, sizes, 6, d);
    const auto step = [&](const double* from_x, const double* from_h, double* h, int64_t b) {
      double* cell = cells.data() + b * hidden;
      for (int64_t i = 0; i < hidden; ++i) {
        const auto sum = [&](int64_t gate) {
          const int64_t at = gate * hidden + i;
          return from_x[at] + from_h[at] + bias[static_cast<size_t>(at)] + bias[static_cast<size_t>(4 * hidden + at)];
        };
        const auto peek = [&](int64_t gate) { return peephole[static_cast<size_t>(gate * hidden + i)] * cell[i]; };
        const double input = activations[0](clip(sum(0) + peek(0)));
        const double forget = coupled ? 1 - input : activations[0](clip(sum(2) + peek(2)));
        const double candidate = activations[1](clip(sum(3)));
        cell[i] = forget * cell[i] + input * candidate;
        const double output = activations[0](clip(sum(1) + peek(1)));
        h[i] = output * activations[2](clip(cell[i]));
      }
    };
    run_direction(ctx, sizes, d, x, products(d), step, state, y);
    keep_final_state(sizes, d, state, final_h);
    keep_final_state(sizes, d, cells, final_c);
  }
  store_recurrent_output(ctx, 0, sizes.y_dims(), y);
  store_recurrent_output(ctx, 1, sizes.state_dims(), final_h);
  store_recurrent_output(ctx, 2, sizes.state_dims(), final_c);
}

void reference_lstm(ReferenceContext& ctx) {
  const RecurrentSizes sizes = recurrent_sizes(ctx, ctx.input(2).dims().back());
  const int64_t width = 4 * sizes.hidden;
  const auto w = ctx.doubles(1);
  const auto r = ctx.doubles(2);
  ctx.check(static_cast<int64_t>(w.size()) == sizes.directions * width * sizes.input &&
                static_cast<int64_t>(r.size()) == sizes.directions * width * sizes.hidden,
            str("W and R must fit the input and the hidden size. Got ", to_string(ctx.input(1).dims()), " and ",
                to_string(ctx.input(2).dims())));
  run_lstm(ctx, sizes, [&](int64_t direction) {
    const auto product = [width](const std::vector<double>& weights, int64_t d, int64_t depth) {
      const double* matrix = weights.data() + d * width * depth;
      return [=](const std::vector<double>& rows, int64_t count) {
        return multiply_transposed(rows, count, matrix, width, depth);
      };
    };
    return GateProducts{product(w, direction, sizes.input), product(r, direction, sizes.hidden)};
  });
}

// com.microsoft.DynamicQuantizeLSTM: W [directions, input, 4 * hidden] and R are 8-bit with scales and zero points per
// direction or per column (inputs 8 to 11); rows are quantized to uint8 before each product.

void infer_dynamic_lstm(InferContext& ctx) {
  for (const int i : {1, 2}) check_dtype(ctx, i, DTypeClass::Integer);
  infer_recurrent(ctx, 4, 2, true);
}

struct QuantizedWeights {
  std::vector<double> transposed;  // [width][depth], zero point subtracted
  std::vector<double> scale;       // per column of the product
};

QuantizedWeights read_quantized(const ReferenceContext& ctx, int input, int scale_input, int64_t direction,
                                int64_t depth, int64_t width) {
  const auto elements = ctx.doubles(input);
  const auto directions = static_cast<size_t>(ctx.input(input).dims()[0]);
  ctx.check(elements.size() == directions * static_cast<size_t>(depth * width),
            str("W and R must fit the input and the hidden size. Got ", to_string(ctx.input(input).dims())));
  const auto per_column = [&](int from) {
    const auto all = ctx.doubles(from);
    const size_t count = all.size() / directions;
    ctx.check(
        count == 1 || count == static_cast<size_t>(width),
        str("scales and zero points must be per direction or per column. Got ", to_string(ctx.input(from).dims())));
    auto columns = make_scratch<double>(width);
    for (size_t i = 0; i < columns.size(); ++i) columns[i] = all[static_cast<size_t>(direction) * count + i % count];
    return columns;
  };
  QuantizedWeights weights;
  weights.scale = per_column(scale_input);
  const auto zero =
      ctx.has_input(scale_input + 1) ? per_column(scale_input + 1) : std::vector<double>(static_cast<size_t>(width));
  weights.transposed.resize(static_cast<size_t>(depth * width));
  const double* matrix = elements.data() + direction * depth * width;
  for (int64_t i = 0; i < depth; ++i) {
    for (int64_t j = 0; j < width; ++j) {
      weights.transposed[static_cast<size_t>(j * depth + i)] = matrix[i * width + j] - zero[static_cast<size_t>(j)];
    }
  }
  return weights;
}

void reference_dynamic_lstm(ReferenceContext& ctx) {
  const Dims r_dims = ctx.input(2).dims();
  ctx.check(r_dims.size() == 3, str("R must have rank 3. Got ", to_string(r_dims)));
  const RecurrentSizes sizes = recurrent_sizes(ctx, r_dims[1]);
  const int64_t width = 4 * sizes.hidden;
  run_lstm(ctx, sizes, [&](int64_t direction) {
    const auto product = [&](int input, int scale_input, int64_t depth) {
      return [weights = read_quantized(ctx, input, scale_input, direction, depth, width), width, depth](
                 const std::vector<double>& rows, int64_t count) {
        const DynamicQuantization quantized = quantize_dynamically(rows);
        auto sums = multiply_transposed(quantized.offsets, count, weights.transposed.data(), width, depth);
        for (size_t i = 0; i < sums.size(); ++i) {
          sums[i] *= quantized.scale * weights.scale[i % static_cast<size_t>(width)];
        }
        return sums;
      };
    };
    return GateProducts{product(1, 8, sizes.input), product(2, 10, sizes.hidden)};
  });
}

}  // namespace

void add_lstm_ops(OpRegistry& ops) {
  ops.add({.name = "LSTM",
           .min_inputs = 3,
           .max_inputs = 8,
           .max_outputs = 3,
           .infer = infer_lstm,
           .reference = reference_lstm,
           .work = recurrent_work});
  ops.add({.name = "com.microsoft.DynamicQuantizeLSTM",
           .min_inputs = 12,
           .max_inputs = 12,
           .required_inputs = 3,
           .max_outputs = 3,
           .infer = infer_dynamic_lstm,
           .reference = reference_dynamic_lstm,
           .work = recurrent_work});
}

}  // namespace neo
