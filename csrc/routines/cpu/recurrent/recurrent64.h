#pragma once

// The end of a step of a recurrent layer of float64: one row, whose products are sums already. Safe in kernel files.

#include <stdint.h>

#include "routines/patterns/cell_kind.h"

namespace neo {

struct Cell64Args {
  CellKind kind = CellKind::Lstm;
  int64_t hidden = 0;
  const CellRules* rules = nullptr;
  const double* x = nullptr;               // [gates][hidden], as ONNX orders them
  const double* products = nullptr;        // of h, the gates that this phase has
  const double* bias = nullptr;            // [gates][hidden], all but candidate_bias
  const double* candidate_bias = nullptr;  // GruLinear: [hidden]
  const double* peepholes = nullptr;       // Lstm: [i, o, f][hidden], or null
  double* h = nullptr;                     // renewed; GruGates: read
  double* cell = nullptr;                  // Lstm: c. GruGates, GruCandidate: z
  double* reset = nullptr;                 // GruGates: r * h
  double* work = nullptr;                  // [gates][hidden]
};

}  // namespace neo
