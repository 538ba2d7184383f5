#pragma once

#include <functional>

#include "ops/activation.h"
#include "ops/op.h"

// Attributes and inputs of RNN, GRU and LSTM. Inputs 0 to 5 of each are X, W, R, B, sequence_lens and initial_h.

namespace neo {

// Sets Y and the final states, of which there are `states`; W and R have `gates` blocks of hidden_size rows.
// With `weights_transposed` the blocks are columns.
void infer_recurrent(InferContext& ctx, int gates, int states, bool weights_transposed = false);

struct RecurrentSizes {
  int64_t steps = 0;
  int64_t batch = 0;
  int64_t input = 0;
  int64_t hidden = 0;
  int64_t directions = 1;
  bool batch_first = false;
  std::vector<int64_t> lengths;  // of each sequence of the batch

  // Positions in X, Y and the states, whose axes depend on the attribute layout, in rows of one vector each.
  int64_t x_row(int64_t step, int64_t b) const { return batch_first ? b * steps + step : step * batch + b; }
  int64_t y_row(int64_t step, int64_t direction, int64_t b) const {
    return batch_first ? (b * steps + step) * directions + direction : (step * directions + direction) * batch + b;
  }
  int64_t state_row(int64_t direction, int64_t b) const {
    return batch_first ? b * directions + direction : direction * batch + b;
  }
  Dims y_dims() const;
  Dims state_dims() const;
};
RecurrentSizes recurrent_sizes(const ReferenceContext& ctx, int64_t hidden);

// The activations of one direction; the attributes name `count` per direction.
std::vector<NamedActivation> direction_activations(const Node& node, const std::vector<std::string>& fallback,
                                                   int64_t direction);

// Bounds the input of activations by the attribute clip.
class Clip {
 public:
  explicit Clip(const Node& node);
  double operator()(double x) const { return x < -bound_ ? -bound_ : x > bound_ ? bound_ : x; }

 private:
  double bound_;
};

// rows[count][depth] times the transposed weights[width][depth].
std::vector<double> multiply_transposed(const std::vector<double>& rows, int64_t count, const double* weights,
                                        int64_t width, int64_t depth);

// W and R of one direction times vectors: the products that a step adds up.
struct GateProducts {
  std::function<std::vector<double>(const std::vector<double>& rows, int64_t count)> of_input;
  std::function<std::vector<double>(const std::vector<double>& rows, int64_t count)> of_hidden;
};

// One element of the batch at one step: `x` and `h` are the gates' sums of the input and of the hidden state, `state`
// is the hidden state to renew, `b` the place in the batch.
using RecurrentUpdate = std::function<void(const double* x, const double* h, double* state, int64_t b)>;

// Runs one direction over all sequences and writes rows of Y; `state` [batch][hidden] begins as the initial and ends as
// the final hidden state.
void run_direction(const ReferenceContext& ctx, const RecurrentSizes& sizes, int64_t direction,
                   const std::vector<double>& x, const GateProducts& products, const RecurrentUpdate& step,
                   std::vector<double>& state, std::vector<double>& y);

// An initial state of one direction as [batch][size]; zeros where the input is left out.
std::vector<double> initial_state(const ReferenceContext& ctx, const RecurrentSizes& sizes, int input,
                                  int64_t direction);
// Writes a final state of one direction into rows of all directions.
void keep_final_state(const RecurrentSizes& sizes, int64_t direction, const std::vector<double>& state,
                      std::vector<double>& all);
void store_recurrent_output(ReferenceContext& ctx, int output, const Dims& dims, const std::vector<double>& elements);

// The bias of one direction: `count` elements, zeros where the input is left out.
std::vector<double> direction_bias(const ReferenceContext& ctx, int input, int64_t direction, int64_t count);

// 2 flops per weight of W and R, step and element of the batch.
Work recurrent_work(const Node& node);

}  // namespace neo
