#pragma once

#include "routines/cpu/recurrent/codes_product.h"
#include "routines/cpu/recurrent/recurrent_plan.h"
#include "routines/cpu/tasks.h"

namespace neo {

// Sizes of a run. Sequences with lengths of their own are known when it begins.
struct RecurrentSizesOfRun {
  int64_t x_steps = 0;     // of X
  int64_t steps = 0;       // of the longest sequence
  int64_t batch = 0;       // of X
  int64_t rows = 0;        // of X that belong to a sequence
  bool is_ragged = false;  // rows are held by step, those of longer sequences first
};

// How one run goes.
struct RecurrentCall : RecurrentSizesOfRun {
  // Batch of one: the inputs of some steps are multiplied beside the recurrent products of the steps before. Where the
  // tiles are 0, `projection` multiplies those of all steps first, each part of W by itself.
  InputTiles tiles;
  GemmPlan projection;
  TaskSplit projection_split;
  CellSplit cells;
  // By Strassen's algorithm; no levels where it is not.
  StrassenPlan recurrent, candidate;
  int64_t strassen_rows = 0;    // floats from a block of x to the next, where a task copies its rows
  int64_t products = 0;         // floats of a group's products of h, beside which lies the workspace; of codes: where
                                // those of the tasks lie
  int64_t group_workspace = 0;  // floats of both
  // Strides of gates and states, floats.
  int64_t gates_row = 0, gates_block = 0, gates_gate = 0, gates_direction = 0;
  int64_t state_row = 0, state_block = 0;
  int64_t state = 0;  // floats of one state of one direction
  // Offsets in scratch, floats. Before all lie the lengths, where there are any.
  int64_t gates = 0, h = 0, cell = 0, reset = 0, workspace = 0, x = 0, groups = 0, ragged = 0;
  int64_t projection_weights = 0, bias = 0, recurrent_weights = 0, candidate_weights = 0, candidate_bias = 0,
          peepholes = 0;  // of weights that are not constants
  // Of 8-bit codes: those of X, by direction where rows are ragged, and of each task those of h.
  int64_t x_codes = 0, h_codes = 0, h_codes_size = 0;
  int64_t x_size = 0;          // floats of one direction, where X is packed
  int64_t scratch_floats = 0;  // of all
  bool takes_input = false;    // every step multiplies its inputs itself
  bool two_h = true;           // h of the step before and of this one are held apart

  bool is_beside() const { return tiles.small > 0; }
};

// The facts that a step of a layer is made with.
struct RecurrentDesign {
  RecurrentForm form;
  RecurrentMethod method;
  RecurrentKernels kernels;
  CodedRowsKernels codes;
  int threads;
  RecurrentPacking packing;

  static RecurrentDesign of(const RecurrentForm& form, const RecurrentMethod& method, const Target& target);
  bool has_codes() const { return method.way == RecurrentWay::Codes; }
  RecurrentPacker packer() const { return {form, kernels.tiles.lanes, kernels.pack_rows}; }
};

RecurrentCall plan_call(const RecurrentDesign& design, const RecurrentSizesOfRun& sizes);

// Floats of scratch memory for sequences of any lengths in X.
int64_t scratch_floats(const RecurrentDesign& design, int64_t steps, int64_t batch);

}  // namespace neo
