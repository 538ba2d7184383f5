#include "routines/gpu/recurrent/recurrent_kernels.h"

#include "base/function_ref.h"
#include "routines/gpu/eltwise/steps.h"

namespace neo::gpu {

using kernel::Array;
using kernel::Builder;
using kernel::Expr;
using kernel::kFloat;
using kernel::kInt;
using kernel::Op;

namespace {

constexpr int64_t kMaxRecurrentSize = 1 << 24;

// The base of kernels with threads over directions, rows of the batch and panels of units.
class CellKernel {
 public:
  CellKernel(const std::string& name, const RecurrentSchedule& schedule) : b_(name), s_(schedule) {}

 protected:
  Expr count(const char* name, int64_t most = kMaxRecurrentSize) { return b_.size(name, 1, most); }

  void declare_state_sizes() {
    directions_ = count("directions", 2);
    batch_ = count("batch");
    panels_ = count("panels");
  }

  Expr state_size() const { return directions_ * batch_ * panels_ * s_.lanes; }

  // Runs `body` on all rows at once; rows after the last are computed as the last one and not stored.
  void each_panel(const Expr& rows, FunctionRef<void()> body) {
    first_ = b_.let("first", b_.group(1, "gy", ceildiv(rows, s_.rows)) * s_.rows);
    direction_ = b_.group(2, "gz", directions_);
    panel_ =
        b_.let("panel", b_.group(0, "gx", ceildiv(panels_, s_.threads)) * s_.threads + b_.local(0, "lx", s_.threads));
    rows_ = rows;
    b_.when(panel_ < panels_, body);
  }

  Expr row(int r) const { return min(first_ + r, rows_ - 1); }
  Expr state(const Expr& row) const { return (direction_ * batch_ + row) * panels_ * s_.lanes + panel_ * s_.lanes; }
  // An element that is computed from sizes of which too little is known to prove where it lies.
  Expr data(const char* name, const Expr& value) {
    const Array held = b_.registers(name, kInt, 1);
    held[0] = value;
    return b_.let(name, held[0]);
  }

  // sums += left[row][0, depth) x weights; `base` is where a row of `left` begins.
  void multiply(const Array& sums, const Array& left, FunctionRef<Expr(const Expr&)> base, const Expr& depth,
                const Array& weights, const Expr& whole_depth, int gates, int inner) {
    const int lanes = s_.lanes, width = gates * lanes;
    const Expr start = b_.let("start", s_.by_depth != 0 ? direction_ * whole_depth * panels_ * width + panel_ * width
                                                        : (direction_ * panels_ + panel_) * whole_depth * width);
    const auto step = [&](const Expr& at, int wide) {
      const Array x = b_.registers("x", {DType::Float32, wide}, s_.rows);
      for (int r = 0; r < s_.rows; ++r) x[r] = left.at(base(row(r)) + at, wide);
      for (int u = 0; u < wide; ++u) {
        const Array w = b_.registers("w", {DType::Float32, lanes}, gates);
        const Expr line = s_.by_depth != 0 ? start + (at + u) * panels_ * width : start + (at + u) * width;
        for (int g = 0; g < gates; ++g) w[g] = weights.at(line + g * lanes, lanes);
        for (int r = 0; r < s_.rows; ++r) {
          const Expr one = wide == 1 ? Expr(x[r]) : kernel::lane(Expr(x[r]), u);
          for (int g = 0; g < gates; ++g) sums[r * gates + g] = fma(one, w[g], sums[r * gates + g]);
        }
      }
    };
    b_.loop("i", 0, depth / inner, [&](const Expr& i) { step(i * inner, inner); });
    if (inner == 1) return;
    b_.loop("k", depth / inner * inner, depth, [&](const Expr& k) { step(k, 1); });
  }

  Array zeros(const char* name, int count) {
    const Array all = b_.registers(name, {DType::Float32, s_.lanes}, count);
    for (int i = 0; i < count; ++i) all[i] = wide(0);
    return all;
  }
  Expr wide(double value) const {
    const Expr one = kernel::real(value);
    return s_.lanes == 1 ? one : kernel::broadcast(one, s_.lanes);
  }

  Builder b_;
  const RecurrentSchedule& s_;
  Expr directions_, batch_, panels_, rows_, first_, direction_, panel_;
};

class InputKernel final : CellKernel {
 public:
  InputKernel(const RecurrentLayer& layer, const RecurrentSchedule& schedule)
      : CellKernel("recurrent_input", schedule), gates_(layer.gates()) {}

  kernel::Kernel run() {
    directions_ = count("directions", 2);
    const Expr rows = count("rows");
    panels_ = count("panels");
    const Expr depth = count("depth");
    const int width = gates_ * s_.lanes;
    const Array x = b_.input("x", DType::Float32, rows * depth);
    const Array weights = b_.input("weights", DType::Float32, directions_ * panels_ * depth * width);
    const Array biases = b_.input("biases", DType::Float32, directions_ * panels_ * width);
    const Array y = b_.output("y", DType::Float32, rows * directions_ * panels_ * width, DType::Float32);
    each_panel(rows, [&] {
      const Array sums = zeros("sums", s_.rows * gates_);
      multiply(
          sums, x, [&](const Expr& r) { return r * depth; }, depth, weights, depth, gates_, 1);
      const Expr place = direction_ * panels_ + panel_;
      for (int r = 0; r < s_.rows; ++r) {
        b_.when(first_ + r < rows, [&] {
          for (int g = 0; g < gates_; ++g) {
            y.at(((first_ + r) * directions_ * panels_ + place) * width + g * s_.lanes, s_.lanes) =
                sums[r * gates_ + g] + biases.at(place * width + g * s_.lanes, s_.lanes);
          }
        });
      }
    });
    return b_.finish();
  }

 private:
  int gates_;
};

class StepKernel final : CellKernel {
 public:
  StepKernel(const RecurrentLayer& layer, const RecurrentSchedule& schedule, CellKind kind)
      : CellKernel(kind == CellKind::GruGates ? "recurrent_gates" : "recurrent_step", schedule),
        kind_(kind),
        all_gates_(layer.gates()),
        gates_(kind == CellKind::GruGates       ? 2
               : kind == CellKind::GruCandidate ? 1
                                                : all_gates_),
        has_y_(layer.y >= 0 && kind != CellKind::GruGates) {}

  kernel::Kernel run() {
    declare();
    each_panel(batch_, [&] {
      const Array sums = zeros("sums", s_.rows * gates_), from_x = zeros("given", s_.rows * gates_);
      const Expr step = b_.let("step", select(direction_ == 0, first_step_, second_step_));
      const int width = all_gates_ * s_.lanes, skipped = kind_ == CellKind::GruCandidate ? 2 : 0;
      for (int r = 0; r < s_.rows; ++r) {
        const Expr line = data("line", step * step_rows_ + row(r) * batch_rows_);
        b_.when(line >= 0 && line < lines_, [&] {
          for (int g = 0; g < gates_; ++g) {
            from_x[r * gates_ + g] = products_->at(
                ((line * directions_ + direction_) * panels_ + panel_) * width + (skipped + g) * s_.lanes, s_.lanes);
          }
        });
      }
      const Expr depth = panels_ * s_.lanes;
      const Array& left = kind_ == CellKind::GruCandidate ? *reset_ : *h_;
      multiply(
          sums, left, [&](const Expr& r) { return (direction_ * batch_ + r) * panels_ * s_.lanes; }, depth, *weights_,
          depth, gates_, s_.lanes);
      for (int r = 0; r < s_.rows; ++r) {
        b_.when(first_ + r < batch_, [&] { cell(r, sums, from_x, step); });
      }
    });
    return b_.finish();
  }

 private:
  void declare() {
    declare_state_sizes();
    lines_ = count("lines");
    first_step_ = b_.size("first_step", 0, kMaxRecurrentSize);
    second_step_ = b_.size("second_step", 0, kMaxRecurrentSize);
    step_rows_ = count("step_rows");
    batch_rows_ = count("batch_rows");
    const Expr states = state_size();
    // Values between two launches stay float32.
    const DType kept = DType::Float32;
    products_ = b_.input("products", kept, lines_ * directions_ * panels_ * (all_gates_ * s_.lanes), kept);
    h_ = b_.input("h", kept, states, kept);
    weights_ = b_.input("weights", DType::Float32, directions_ * panels_ * panels_ * (gates_ * s_.lanes * s_.lanes));
    if (kind_ == CellKind::GruLinear) {
      candidate_bias_ = b_.input("candidate_bias", DType::Float32, directions_ * panels_ * s_.lanes);
    }
    if (kind_ == CellKind::Lstm) cells_ = b_.inout("cells", kept, states, kept);
    if (kind_ == CellKind::GruGates) {
      update_ = b_.output("update", kept, states, kept);
      reset_ = b_.output("reset", kept, states, kept);
      return;
    }
    if (kind_ == CellKind::GruCandidate) {
      update_ = b_.input("update", kept, states, kept);
      reset_ = b_.input("reset", kept, states, kept);
    }
    new_h_ = b_.output("new_h", kept, states, kept);
    if (!has_y_) return;
    hidden_ = count("hidden");
    y_step_ = count("y_step", kMaxElements);
    y_direction_ = count("y_direction", kMaxElements);
    y_row_ = count("y_row", kMaxElements);
    y_elements_ = count("y_elements", kMaxElements);
    y_ = b_.output("y", DType::Float32, y_elements_);
  }

  void cell(int r, const Array& sums, const Array& from_x, const Expr& step) {
    const int lanes = s_.lanes;
    const Expr at = b_.let("at", state(first_ + r));
    const auto gate = [&](int g) { return b_.let("gate", sums[r * gates_ + g] + from_x[r * gates_ + g]); };
    const auto tanh = [](const Expr& x) { return call(Op::Tanh, x); };
    Expr h;
    switch (kind_) {
      case CellKind::Lstm: {
        const Expr in = sigmoid(gate(0)), out = sigmoid(gate(1)), forget = sigmoid(gate(2)), next = tanh(gate(3));
        const Expr c = b_.let("c", forget * cells_->at(at, lanes) + in * next);
        cells_->at(at, lanes) = c;
        h = out * tanh(c);
        break;
      }
      case CellKind::GruLinear: {
        const Expr update = b_.let("update", sigmoid(gate(0))), reset = b_.let("reset", sigmoid(gate(1)));
        const Expr own = sums[r * gates_ + 2] + candidate_bias_->at((direction_ * panels_ + panel_) * lanes, lanes);
        const Expr next = b_.let("next", tanh(from_x[r * gates_ + 2] + reset * own));
        h = (wide(1) - update) * next + update * h_->at(at, lanes);
        break;
      }
      case CellKind::GruGates:
        update_->at(at, lanes) = sigmoid(gate(0));
        reset_->at(at, lanes) = sigmoid(gate(1)) * h_->at(at, lanes);
        return;
      case CellKind::GruCandidate: {
        const Expr update = b_.let("update", update_->at(at, lanes));
        h = (wide(1) - update) * tanh(gate(0)) + update * h_->at(at, lanes);
        break;
      }
      case CellKind::RnnTanh:
        h = tanh(gate(0));
        break;
      case CellKind::RnnRelu: {
        const Expr x = gate(0);
        h = select(x < wide(0), wide(0), x);
        break;
      }
    }
    h = b_.let("now", h);
    new_h_->at(at, lanes) = h;
    if (has_y_) store(first_ + r, step, h);
  }

  void store(const Expr& row, const Expr& step, const Expr& h) {
    const int lanes = s_.lanes;
    const Expr unit = panel_ * lanes;
    const Expr at = data("to", step * y_step_ + direction_ * y_direction_ + row * y_row_ + unit);
    b_.when(at >= 0, [&] {
      b_.when(
          unit + lanes <= hidden_ && at <= y_elements_ - lanes, [&] { y_->at(at, lanes) = h; },
          [&] {
            for (int lane = 0; lane < lanes; ++lane) {
              b_.when(unit + lane < hidden_ && at < y_elements_ - lane,
                      [&] { (*y_)[at + lane] = lanes == 1 ? h : kernel::lane(h, lane); });
            }
          });
    });
  }

  CellKind kind_;
  int all_gates_, gates_;
  bool has_y_;
  Expr lines_, first_step_, second_step_, step_rows_, batch_rows_, hidden_, y_step_, y_direction_, y_row_, y_elements_;
  std::optional<Array> products_, h_, weights_, candidate_bias_, cells_, update_, reset_, new_h_, y_;
};

// Between an operand [direction][batch][hidden], whatever the order of its first axes, and a state.
class StateKernel final : CellKernel {
 public:
  StateKernel(const RecurrentSchedule& schedule, bool stores)
      : CellKernel(stores ? "recurrent_store" : "recurrent_load", schedule), stores_(stores) {}

  kernel::Kernel run() {
    declare_state_sizes();
    const Expr hidden = count("hidden"), by_direction = count("by_direction"), by_row = count("by_row");
    const Expr elements = count("elements", kMaxElements);
    const Expr states = state_size();
    const Array given = stores_ ? b_.input("state", DType::Float32, states, DType::Float32)
                                : b_.input("given", DType::Float32, elements);
    const Array made = stores_ ? b_.output("made", DType::Float32, elements)
                               : b_.output("state", DType::Float32, states, DType::Float32);
    each_panel(batch_, [&] {
      for (int r = 0; r < s_.rows; ++r) {
        b_.when(first_ + r < batch_, [&] {
          const Expr unit = panel_ * s_.lanes;
          const Expr line = data("line", (direction_ * by_direction + (first_ + r) * by_row) * hidden + unit);
          const Expr at = b_.let("at", state(first_ + r));
          for (int lane = 0; lane < s_.lanes; ++lane) {
            const Expr there = unit + lane < hidden && line >= 0 && line < elements - lane;
            if (stores_) {
              b_.when(there, [&] { made[line + lane] = given[at + lane]; });
            } else {
              b_.when(
                  there, [&] { made[at + lane] = given[line + lane]; }, [&] { made[at + lane] = 0.0f; });
            }
          }
        });
      }
    });
    return b_.finish();
  }

 private:
  bool stores_;
};

}  // namespace

kernel::Kernel recurrent_input_kernel(const RecurrentLayer& layer, const RecurrentSchedule& schedule) {
  return InputKernel(layer, schedule).run();
}

kernel::Kernel recurrent_step_kernel(const RecurrentLayer& layer, const RecurrentSchedule& schedule, CellKind kind) {
  return StepKernel(layer, schedule, kind).run();
}

kernel::Kernel recurrent_load_kernel(const RecurrentSchedule& schedule) {
  return StateKernel(schedule, false).run();
}

kernel::Kernel recurrent_store_kernel(const RecurrentSchedule& schedule) {
  return StateKernel(schedule, true).run();
}

kernel::Kernel recurrent_clear_kernel(const RecurrentSchedule& schedule) {
  Builder b("recurrent_clear");
  const Expr n = b.size("n", 1, kMaxElements);
  const Array state = b.output("state", DType::Float32, n, DType::Float32);
  each_item(b, n, schedule.threads, [&](const Expr& i) { state[i] = 0.0f; });
  return b.finish();
}

}  // namespace neo::gpu
