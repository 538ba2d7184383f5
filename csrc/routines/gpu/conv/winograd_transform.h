#pragma once

#include <vector>

#include "kernel_ir/builder.h"
#include "routines/patterns/winograd_axis.h"

namespace neo::gpu {

// The transforms of one axis on values of any lanes, each of which is a variable or a number of the kernel.
// Transforms the samples of a tile: axis.points() values to as many.
std::vector<kernel::Expr> transform_winograd_input(kernel::Builder& b, const WinogradAxis& axis,
                                                   const std::vector<kernel::Expr>& samples);
// Transforms the products at the points: axis.points() values to axis.tile.
std::vector<kernel::Expr> transform_winograd_output(kernel::Builder& b, const WinogradAxis& axis,
                                                    const std::vector<kernel::Expr>& products);

}  // namespace neo::gpu
