#pragma once

#include <stdint.h>

// The cells of recurrent layers. Safe in kernel files.
namespace neo {

enum class CellKind : uint8_t {
  Lstm,          // gates i, o, f, c
  GruLinear,     // gates z, r, h; the reset gate scales the candidate's product (linear_before_reset)
  GruGates,      // gates z, r of the other form; leaves z and r * h for GruCandidate
  GruCandidate,  // gate h
  RnnTanh,
  RnnRelu,
};

// ONNX's activation functions of recurrent layers, with their parameters a and b.
enum class CellFunction : uint8_t {
  Affine,  // also the identity
  Clip,
  Elu,
  HardSigmoid,
  LeakyRelu,
  Relu,
  ScaledTanh,
  Sigmoid,
  Softplus,
  Softsign,
  Tanh,
  ThresholdedRelu,
};

// The differences of one direction from the plain cell of its kind.
struct CellRules {
  CellFunction functions[3] = {};  // f, g, h
  float a[3] = {}, b[3] = {};      // their parameters
  float clip = 0;                  // bound of the functions' arguments; infinity: none
  bool coupled = false;            // Lstm: the forget gate is 1 - the input gate
};

}  // namespace neo
