#pragma once

#include <memory>

#include "routines/gpu/program.h"
#include "routines/gpu/sort/argsort.h"

namespace neo::gpu {

// TopK of ONNX, sorted. Operand 0: x. Then the wanted ones of values (as x) and indices (int64), whose axis has k
// elements. Ties go to the lower index; NaN is the largest.
struct TopKChoice {
  DType dtype = DType::Float32;
  int axis = 0;  // >= 0
  bool largest = true;
  bool values = true;
  bool indices = true;
};
std::unique_ptr<Program> make_top_k(const TopKChoice& choice, const SortSchedule& schedule = {});

// Argsort of keys of any number in segments of any lengths, none among them: operands values [n], offsets [segments +
// 1] (int32, rising from 0 to n), order [n] (int32, positions in `values`). Flattened: the segment's number is the
// key's upper half.
std::unique_ptr<Program> make_segmented_argsort(bool falling, const SortSchedule& schedule = {});

// CumSum of ONNX along one axis. Operands x, y.
struct CumSumChoice {
  DType dtype = DType::Float32;
  int axis = 0;
  bool exclusive = false;
  bool reverse = false;
};
std::unique_ptr<Program> make_cum_sum(const CumSumChoice& choice);

// NonZero of ONNX. Operands x, y (int64).
std::unique_ptr<DataDependentProgram> make_non_zero(DType dtype, int rank);

// Compress of ONNX. Operands x, condition (of one axis, bool), y. Axis -1: x is taken flat.
std::unique_ptr<DataDependentProgram> make_compress(DType dtype, int axis);

}  // namespace neo::gpu
