#include "routines/patterns/transposed_taps.h"

#include <algorithm>
#include <numeric>

#include "base/int_math.h"

namespace neo {
namespace {

int64_t residue_of_tap(const Im2colConvShape& s, int axis, int64_t tap) {
  return tap * s.dilation[axis] % s.stride[axis];
}

}  // namespace

ResidueTaps ResidueTaps::of(const Im2colConvShape& s, int axis, int64_t residue) {
  ResidueTaps taps;
  if (!s.transposed) {
    taps.count = s.kernel[axis];
    return taps;
  }
  taps.step = s.stride[axis] / std::gcd(s.stride[axis], s.dilation[axis]);
  const int64_t last = std::min(taps.step, s.kernel[axis]);
  while (taps.first < last && residue_of_tap(s, axis, taps.first) != residue) ++taps.first;
  if (taps.first < last) taps.count = ceil_div(s.kernel[axis] - taps.first, taps.step);
  return taps;
}

OutputPhase OutputPhase::of(const Im2colConvShape& s, int axis, int64_t begin) {
  const int64_t stride = s.stride[axis], rest = (begin + s.pad[axis]) % stride;
  OutputPhase phase;
  if (!s.transposed) {
    phase.count = s.out[axis];
    phase.in_step = stride;
    phase.taps = ResidueTaps::of(s, axis, 0);
    phase.first_offset = -s.pad[axis];
    phase.offset_step = s.dilation[axis];
    return phase;
  }
  phase.begin = begin;
  phase.count = begin < s.out[axis] ? ceil_div(s.out[axis] - begin, stride) : 0;
  phase.residue = rest < 0 ? rest + stride : rest;
  phase.taps = ResidueTaps::of(s, axis, phase.residue);
  // Output o gets tap t of input i where o = i * stride - pad + t * dilation.
  phase.first_offset = (begin + s.pad[axis] - phase.taps.first * s.dilation[axis]) / stride;
  phase.offset_step = -(phase.taps.step * s.dilation[axis] / stride);
  return phase;
}

int64_t phase_count(const Im2colConvShape& s, int axis) {
  return std::min(output_step(s, axis), s.out[axis]);
}

int64_t output_products(const Im2colConvShape& s) {
  int64_t products = 1;
  for (int axis = 0; axis < 3; ++axis) {
    int64_t of_axis = 0;
    for (int64_t p = 0; p < phase_count(s, axis); ++p) {
      const OutputPhase phase = OutputPhase::of(s, axis, p);
      of_axis += phase.taps.count * phase.count;
    }
    products *= of_axis;
  }
  return products;
}

int64_t taps_before(const Im2colConvShape& s, const int64_t (&residues)[3]) {
  if (!s.transposed) return 0;
  int64_t taps = 0, outer = 1;
  for (int axis = 0; axis < 3; ++axis) {
    int64_t before = 0, same = 0;
    for (int64_t t = 0; t < s.kernel[axis]; ++t) {
      before += residue_of_tap(s, axis, t) < residues[axis];
      same += residue_of_tap(s, axis, t) == residues[axis];
    }
    taps = taps * s.kernel[axis] + outer * before;
    outer *= same;
  }
  return taps;
}

}  // namespace neo
