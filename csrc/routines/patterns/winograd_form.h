#pragma once

#include <vector>

#include "routines/patterns/conv_shape.h"
#include "routines/patterns/winograd_axis.h"

// Winograd's algorithm on every machine: the convolutions that it takes, its tiles, and its error.
namespace neo {

// Null where the algorithm takes the problem; else why not.
const char* reject_winograd(const ConvShape& shape);

// Whether a program can do the last tile of an axis with fewer points.
enum class WinogradLast : uint8_t { Whole, Smaller };

// An axis of `size` outputs by tiles of `tile`.
WinogradAxis winograd_axis(int64_t kernel, int64_t stride, int64_t tile, int64_t size, WinogradLast last_tile);

// [points][taps]: what points give the weights.
std::vector<double> winograd_weight_transform(const WinogradAxis& axis);

// Root of the mean square error against float64 on normal data, in units of the direct method's. The errors of the two
// axes multiply, since each method's grow with the root of the number of its terms. Measured on the CPU's routine over
// 4 to 512 input channels, 10 % added; few channels take fewest roundings off the direct method. Where values are
// positive, as behind a Relu, both sums round more and the ratio is smaller.
//
//   256 channels     m = 2      4      6
//   1x3, 3x1          0.75   1.34   2.67
//   1x5, 5x1          1.10   1.99   4.6
//   1x7, 7x1          1.9    4.0    9.5
//   3x3               0.58   1.81   7.3
//   3x5               0.82   2.7
//   5x5               1.15   3.9
//   7x7               3.7
//                    m = 3      5
//   1x2, 2x1          0.93   1.74
//   1x4, 4x1          1.13   2.24
//   1x6, 6x1          1.89   4.22
//   2x2               0.85   2.96
//   4x4               1.32   4.96
//   6x6               3.53
double winograd_error(const ConvShape& shape, int64_t tile);

// The tiles of a shape, by their error. None is offered whose error is more than 12 in units of the direct method's: a
// whole model keeps within 16. Errors that grow by a multiple must save multiplications worth that, which the tiles at
// the border often undo.
std::vector<int64_t> offered_winograd_tiles(const ConvShape& shape, WinogradLast last_tile);

}  // namespace neo
