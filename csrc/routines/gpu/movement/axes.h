#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "kernel_ir/builder.h"
#include "routines/gpu/program.h"

// Parts of kernels over many axes.
namespace neo::gpu {

inline constexpr int64_t kMaxRows = 65535;  // groups along any axis but the first, on every device

// The coordinates of a linear index, outermost first. All but the first are proven to be below their sizes.
std::vector<kernel::Expr> split_index(kernel::Builder& builder, const kernel::Expr& index,
                                      std::span<const kernel::Expr> sizes);
// The linear index of coordinates.
kernel::Expr join_index(std::span<const kernel::Expr> coordinates, std::span<const kernel::Expr> sizes);
// The same, computed in 64 bits where 32 are not proven to do: a variable, about which nothing is known.
kernel::Expr join_index_unproven(kernel::Builder& builder, std::span<const kernel::Expr> coordinates,
                                 std::span<const kernel::Expr> sizes);
kernel::Expr product(std::span<const kernel::Expr> sizes);

// The index of one thread along the first axis of a launch of `items`, and what it does where there is such an item.
void each_item(kernel::Builder& builder, const kernel::Expr& items, int threads,
               FunctionRef<void(const kernel::Expr&)> body);

// A program whose launches are a function.
using LaunchFunction = std::function<Launches(std::span<const Dims>)>;
std::unique_ptr<Program> make_program(std::vector<kernel::Kernel> kernels, LaunchFunction launches);

// The largest of 16, 8, 4, 2 and 1, `most` at most, that divides a number.
int dividing_lanes(int64_t number, int most);

}  // namespace neo::gpu
