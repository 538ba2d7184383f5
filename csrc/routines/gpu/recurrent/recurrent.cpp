#include "routines/gpu/recurrent/recurrent.h"

#include "base/int_math.h"
#include "routines/gpu/recurrent/recurrent_kernels.h"
#include "routines/gpu/schedule.h"

namespace neo::gpu {
namespace {

enum KernelIndex { kInput, kLoad, kClear, kStore, kStep, kCandidate };

// Sizes and places of one run.
struct SequenceSizes {
  int64_t steps = 0, batch = 0, panels = 0;
};

class RecurrentProgram final : public Program {
 public:
  RecurrentProgram(const RecurrentLayer& layer, const RecurrentSchedule& schedule) : l_(layer), s_(schedule) {
    kernels_.push_back(recurrent_input_kernel(l_, s_));
    kernels_.push_back(recurrent_load_kernel(s_));
    kernels_.push_back(recurrent_clear_kernel(s_));
    kernels_.push_back(recurrent_store_kernel(s_));
    kernels_.push_back(recurrent_step_kernel(l_, s_, l_.kind));
    if (l_.kind == CellKind::GruGates) kernels_.push_back(recurrent_step_kernel(l_, s_, CellKind::GruCandidate));
  }

  const std::vector<kernel::Kernel>& kernels() const override { return kernels_; }

  Launches launches(std::span<const Dims> shapes) const override {
    const Dims& x = shapes[static_cast<size_t>(l_.x)];
    const SequenceSizes run{x[l_.batch_first ? 1 : 0], x[l_.batch_first ? 0 : 1], l_.panels(s_)};
    Launches all;
    if (run.batch == 0) return all;
    const int64_t state = l_.directions * run.batch * run.panels * s_.lanes;
    const int64_t products = run.steps * run.batch * l_.directions * run.panels * l_.gates() * s_.lanes;
    // Products, two states, cells, update, reset.
    all.temporaries = {4 * products, 4 * state, 4 * state};
    if (l_.kind == CellKind::Lstm) all.temporaries.push_back(4 * state);
    if (l_.kind == CellKind::GruGates) all.temporaries.insert(all.temporaries.end(), {4 * state, 4 * state});
    if (run.steps > 0) {
      all.launches.push_back({kInput,
                              {l_.directions, run.steps * run.batch, run.panels, l_.input, Operand{l_.x}, Packed{0},
                               Packed{1}, Temporary{0}}});
    }
    begin(all, run, state, l_.initial_h, kFirstState);
    if (l_.kind == CellKind::Lstm) begin(all, run, state, l_.initial_c, kCells);
    for (int64_t step = 0; step < run.steps; ++step) add_step(all, run, step);
    const int last = kFirstState + static_cast<int>(run.steps % 2);
    end(all, run, last, l_.final_h);
    end(all, run, kCells, l_.final_c);
    return all;
  }

 private:
  static constexpr int kFirstState = 1, kCells = 3, kUpdate = 3, kReset = 4;  // temporaries

  void add_state_sizes(KernelLaunch& launch, const SequenceSizes& run) const {
    const int64_t by_direction = l_.batch_first ? 1 : run.batch, by_row = l_.batch_first ? l_.directions : 1;
    launch.arguments = {
        l_.directions, run.batch, run.panels, l_.hidden, by_direction, by_row, l_.directions * run.batch * l_.hidden};
  }

  void begin(Launches& all, const SequenceSizes& run, int64_t state, int operand, int to) const {
    if (operand < 0) {
      all.launches.push_back({kClear, {state, Temporary{to}}});
      return;
    }
    KernelLaunch launch{kLoad, {}};
    add_state_sizes(launch, run);
    launch.arguments.insert(launch.arguments.end(), {Operand{operand}, Temporary{to}});
    all.launches.push_back(std::move(launch));
  }

  void end(Launches& all, const SequenceSizes& run, int from, int operand) const {
    if (operand < 0) return;
    KernelLaunch launch{kStore, {}};
    add_state_sizes(launch, run);
    launch.arguments.insert(launch.arguments.end(), {Temporary{from}, Operand{operand}});
    all.launches.push_back(std::move(launch));
  }

  KernelLaunch started(int kernel, const SequenceSizes& run, int64_t step) const {
    const int64_t backwards = run.steps - 1 - step;
    return {kernel,
            {l_.directions, run.batch, run.panels, run.steps * run.batch, l_.reverse ? backwards : step, backwards,
             l_.batch_first ? 1 : run.batch, l_.batch_first ? run.steps : 1, Temporary{0}}};
  }

  void add_step(Launches& all, const SequenceSizes& run, int64_t step) const {
    const int from = kFirstState + static_cast<int>(step % 2), to = kFirstState + static_cast<int>((step + 1) % 2);
    KernelLaunch launch = started(kStep, run, step);
    launch.arguments.insert(launch.arguments.end(), {Temporary{from}, Packed{2}});
    if (l_.kind == CellKind::GruLinear) launch.arguments.emplace_back(Packed{3});
    if (l_.kind == CellKind::Lstm) launch.arguments.emplace_back(Temporary{kCells});
    if (l_.kind == CellKind::GruGates) {
      launch.arguments.insert(launch.arguments.end(), {Temporary{kUpdate}, Temporary{kReset}});
      all.launches.push_back(std::move(launch));
      launch = started(kCandidate, run, step);
      launch.arguments.insert(launch.arguments.end(),
                              {Temporary{from}, Packed{3}, Temporary{kUpdate}, Temporary{kReset}});
    }
    launch.arguments.emplace_back(Temporary{to});
    if (l_.y >= 0) {
      const int64_t d = l_.directions, h = l_.hidden;
      const int64_t y_step = l_.batch_first ? d * h : d * run.batch * h;
      const int64_t y_direction = l_.batch_first ? h : run.batch * h;
      const int64_t y_row = l_.batch_first ? run.steps * d * h : h;
      launch.arguments.insert(launch.arguments.end(),
                              {h, y_step, y_direction, y_row, run.steps * run.batch * d * h, Operand{l_.y}});
    }
    all.launches.push_back(std::move(launch));
  }

  RecurrentLayer l_;
  RecurrentSchedule s_;
  std::vector<kernel::Kernel> kernels_;
};

}  // namespace

RecurrentSchedule RecurrentSchedule::of(const Schedule& schedule) {
  RecurrentSchedule s;
  read_value(schedule, "lanes", s.lanes);
  read_value(schedule, "rows", s.rows);
  read_value(schedule, "threads", s.threads);
  read_value(schedule, "by_depth", s.by_depth);
  return s;
}

int RecurrentLayer::gates() const {
  return kind == CellKind::Lstm ? 4 : kind == CellKind::GruLinear || kind == CellKind::GruGates ? 3 : 1;
}

int64_t RecurrentLayer::panels(const RecurrentSchedule& schedule) const {
  return ceil_div(hidden, static_cast<int64_t>(schedule.lanes));
}

int64_t packed_gates_size(const RecurrentLayer& layer, const RecurrentSchedule& schedule, const PackedGates& gates) {
  return layer.directions * layer.panels(schedule) * gates.packed_depth * gates.count * schedule.lanes;
}

void pack_gates(const RecurrentLayer& layer, const RecurrentSchedule& schedule, const PackedGates& gates,
                const float* from, float* to) {
  const int64_t panels = layer.panels(schedule), lanes = schedule.lanes, hidden = layer.hidden;
  for (int64_t d = 0; d < layer.directions; ++d) {
    const float* matrix = from + d * layer.gates() * hidden * gates.depth;
    for (int64_t panel = 0; panel < panels; ++panel) {
      for (int64_t k = 0; k < gates.packed_depth; ++k) {
        const int64_t place = schedule.by_depth != 0 ? (d * gates.packed_depth + k) * panels + panel
                                                     : (d * panels + panel) * gates.packed_depth + k;
        for (int64_t i = 0; i < gates.count * lanes; ++i) {
          const int64_t unit = panel * lanes + i % lanes, row = (gates.first + i / lanes) * hidden + unit;
          to[place * gates.count * lanes + i] = unit < hidden && k < gates.depth ? matrix[row * gates.depth + k] : 0.0f;
        }
      }
    }
  }
}

int64_t packed_biases_size(const RecurrentLayer& layer, const RecurrentSchedule& schedule) {
  return layer.directions * layer.panels(schedule) * layer.gates() * schedule.lanes;
}

namespace {

// A bias of one unit; `row` counts the gates of W, then those of R.
float bias_of(const RecurrentLayer& layer, const float* from, int64_t direction, int64_t row, int64_t unit) {
  if (from == nullptr || unit >= layer.hidden) return 0.0f;
  return from[(direction * 2 * layer.gates() + row) * layer.hidden + unit];
}

}  // namespace

void pack_biases(const RecurrentLayer& layer, const RecurrentSchedule& schedule, const float* from, float* to) {
  const int64_t gates = layer.gates(), panels = layer.panels(schedule);
  for (int64_t d = 0; d < layer.directions; ++d) {
    for (int64_t panel = 0; panel < panels; ++panel) {
      for (int64_t gate = 0; gate < gates; ++gate) {
        for (int64_t unit = panel * schedule.lanes; unit < (panel + 1) * schedule.lanes; ++unit) {
          const bool apart = layer.kind == CellKind::GruLinear && gate == 2;
          *to++ = bias_of(layer, from, d, gate, unit) + (apart ? 0.0f : bias_of(layer, from, d, gates + gate, unit));
        }
      }
    }
  }
}

void pack_candidate_biases(const RecurrentLayer& layer, const RecurrentSchedule& schedule, const float* from,
                           float* to) {
  for (int64_t d = 0; d < layer.directions; ++d) {
    for (int64_t unit = 0; unit < layer.panels(schedule) * schedule.lanes; ++unit) {
      *to++ = bias_of(layer, from, d, layer.gates() + 2, unit);
    }
  }
}

std::unique_ptr<Program> make_recurrent(const RecurrentLayer& layer, const RecurrentSchedule& schedule) {
  return std::make_unique<RecurrentProgram>(layer, schedule);
}

}  // namespace neo::gpu
