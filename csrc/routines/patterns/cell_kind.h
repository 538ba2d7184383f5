#pragma once

#include <stdint.h>

// What a step of a recurrent layer computes. Safe in kernel files.
namespace neo {

enum class CellKind : uint8_t {
  Lstm,          // gates i, o, f, c
  GruLinear,     // gates z, r, h; the reset gate scales the candidate's product (linear_before_reset)
  GruGates,      // gates z, r of the other form; leaves z and r * h for GruCandidate
  GruCandidate,  // gate h
  RnnTanh,
  RnnRelu,
};

}  // namespace neo
