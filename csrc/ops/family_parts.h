#pragma once

#include "ops/op.h"

// Parts of families that have files of their own; the family's function of ops/families.h calls them.

namespace neo {

void add_comparison_ops(OpRegistry& ops);    // comparison.cpp, of elementwise: comparisons, logic, bits, Where
void add_cast_ops(OpRegistry& ops);          // cast.cpp, of elementwise: Cast, CastLike, BitCast
void add_determinant_ops(OpRegistry& ops);   // determinant.cpp, of matmul: Det
void add_special_conv_ops(OpRegistry& ops);  // special_conv.cpp, of conv: DeformConv, CausalConvWithState
void add_layer_norm_ops(OpRegistry& ops);    // layer_norm.cpp, of norm: LayerNormalization and its kin
void add_softmax_ops(OpRegistry& ops);       // softmax.cpp, of reduce: Softmax, LogSoftmax, Hardmax
void add_scan_ops(OpRegistry& ops);          // scan.cpp, of reduce: CumSum, CumProd, TopK
void add_slice_ops(OpRegistry& ops);    // slice.cpp, of shape: Concat, Split, Slice, Trilu, ReverseSequence, Compress
void add_pad_ops(OpRegistry& ops);      // pad.cpp, of shape: Pad, CenterCropPad
void add_scatter_ops(OpRegistry& ops);  // scatter.cpp, of index
void add_random_ops(OpRegistry& ops);   // random.cpp, of generate
void add_grid_ops(OpRegistry& ops);     // grid.cpp, of resize: GridSample, AffineGrid
void add_tree_ops(OpRegistry& ops);     // tree_ensemble.cpp, of ml
void add_linear_model_ops(OpRegistry& ops);  // linear_model.cpp, of ml: linear and support vector machines

}  // namespace neo
