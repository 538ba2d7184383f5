#pragma once

#include "ops/op.h"

// Arithmetic on sizes and element types that inference of several families shares.

namespace neo {

// min and max that return one of their arguments where the symbols' ranges decide.
Dim smaller(const Dim& a, const Dim& b);
Dim larger(const Dim& a, const Dim& b);
bool provably_less_equal(const Dim& a, const Dim& b);

// A position on an axis of `size` with negative values counted from the back; exact for every sign.
Dim from_front(const Dim& position, const Dim& size);

Dim product(std::span<const Dim> dims);

// The common value of two dims that must be equal: a constant wins over a symbol.
Dim unify(InferContext& ctx, const Dim& a, const Dim& b, const std::string& rule);

// The elements of an integer input of rank 0 or 1, unless there are more than a shape computation would have.
std::optional<std::vector<Dim>> shape_contents(InferContext& ctx, int input);
// The same of an input of any rank, row by row.
std::optional<std::vector<Dim>> tensor_contents(InferContext& ctx, int input);
// The only element of an integer input that holds one.
std::optional<Dim> scalar_contents(InferContext& ctx, int input);
// How many elements a rank 1 input has, where that is known.
std::optional<int64_t> constant_length(InferContext& ctx, int input);

// `rank` fresh dims.
std::vector<Dim> fresh_dims(InferContext& ctx, int64_t rank, std::string_view stem);

// The attribute axes, made non-negative; `fallback` counts all axes where it is absent.
std::vector<int> all_or_listed_axes(const Node& node, int rank);

// An element type held as ONNX's TensorProto number, or as a name.
DType dtype_attr(const Node& node, std::string_view key, DType fallback);

// The only element of an input.
int64_t scalar_int(const ReferenceContext& ctx, int input);
double scalar_double(const ReferenceContext& ctx, int input);

// One output of the type of input 0.
void infer_same(InferContext& ctx);

}  // namespace neo
