#pragma once

// First layers: few channels of a plain image, large kernels with a stride. With what lies s apart along both axes
// taken for a channel of its own, a convolution of stride s is one of stride 1, of s^2 times the channels and kernels
// of ceil(k / s) taps, which Winograd's algorithm takes. The same image of so many channels is never in memory: each
// run of tiles folds what it reads.

#include <stdint.h>

#include <vector>

#include "routines/cpu/conv/conv_operands.h"
#include "routines/patterns/conv_shape.h"

namespace neo {

// The stride that is folded; 1: none is, and the input is in blocks.
int64_t winograd_fold(const ConvShape& shape);

// Factor on winograd_error(): the direct method rounds less often where a folded kernel has zeros.
constexpr double kFoldError = 1.06;

// The convolution of stride 1, without padding; the shape itself where nothing is folded. Channel c and the remainders
// a and b of row and column are channel (c s + a) s + b.
ConvShape fold_shape(const ConvShape& shape);

// OIHW of the convolution of stride 1, zero where the kernel has no tap.
std::vector<float> fold_weight(const ConvShape& shape, const float* weight);

// Pixels [top, top + rows) x [left, left + columns) of a folded image, in blocks of `lanes` channels, zero where there
// is no input. `src` is that of the image.
void fold_window(const ConvShape& shape, const ConvOperands& args, const float* src, int64_t top, int64_t left,
                 int64_t rows, int64_t columns, int64_t lanes, float* window);

}  // namespace neo
