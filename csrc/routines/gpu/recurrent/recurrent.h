#pragma once

#include "routines/gpu/movement/axes.h"
#include "routines/patterns/cell_kind.h"
#include "routines/routine.h"

namespace neo::gpu {

// How a layer's threads take its work: each some rows of the batch and one vector of hidden units.
struct RecurrentSchedule {
  int lanes = 8;     // hidden units of a thread
  int rows = 1;      // of the batch, of a thread
  int threads = 8;   // of a group
  int by_depth = 0;  // weights lie by the summed axis first, not by vectors of units

  static RecurrentSchedule of(const Schedule& schedule);
};

// A recurrent layer whose weights are constants. Operands: x, initial_h and initial_c where they are there, then the
// outputs that are there.
struct RecurrentLayer {
  CellKind kind = CellKind::Lstm;  // GruGates stands for both halves of that form
  int64_t input = 0, hidden = 0;
  int64_t directions = 1;
  bool reverse = false;  // the first direction runs backwards
  bool batch_first = false;
  int x = 0, initial_h = -1, initial_c = -1;  // operands; -1: none
  int y = -1, final_h = -1, final_c = -1;

  int gates() const;
  int64_t panels(const RecurrentSchedule& schedule) const;
};

// The constants of a layer, as the kernels read them; hidden units are filled up to whole vectors with zeros.
//   weights: [direction][panel][depth][gates][lanes], by depth [direction][depth][panel][gates][lanes]
//   biases:  [direction][panel][gates][lanes]
struct PackedGates {
  int64_t depth = 0;         // of the constant
  int64_t packed_depth = 0;  // at least that
  int first = 0, count = 0;  // of the gates
};
int64_t packed_gates_size(const RecurrentLayer& layer, const RecurrentSchedule& schedule, const PackedGates& gates);
void pack_gates(const RecurrentLayer& layer, const RecurrentSchedule& schedule, const PackedGates& gates,
                const float* from, float* to);
int64_t packed_biases_size(const RecurrentLayer& layer, const RecurrentSchedule& schedule);
// `from`: the biases of W and R of each direction, or null. Both together, but of GruLinear's candidate that of W
// alone; that of R, which the reset gate scales, is packed apart: [direction][panel][lanes].
void pack_biases(const RecurrentLayer& layer, const RecurrentSchedule& schedule, const float* from, float* to);
void pack_candidate_biases(const RecurrentLayer& layer, const RecurrentSchedule& schedule, const float* from,
                           float* to);

// Packed: W, its biases, R (of GruGates the gates z and r), then R's candidate gate of GruGates, or the candidate's
// biases of GruLinear.
std::unique_ptr<Program> make_recurrent(const RecurrentLayer& layer, const RecurrentSchedule& schedule);

}  // namespace neo::gpu
