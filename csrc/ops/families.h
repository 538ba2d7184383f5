#pragma once

#include "ops/op.h"

namespace neo {

// One function per family of operators, each in the file of its name.
void add_elementwise_ops(
    OpRegistry& ops);  // elementwise.cpp: unary and binary arithmetic, comparisons, logic, Where, Cast, Clip
void add_activation_ops(OpRegistry& ops);  // activation.cpp
void add_conv_ops(OpRegistry& ops);        // conv.cpp
void add_matmul_ops(OpRegistry& ops);      // matmul.cpp
void add_pool_ops(OpRegistry& ops);        // pool.cpp
void add_norm_ops(OpRegistry& ops);        // norm.cpp
void add_reduce_ops(OpRegistry& ops);      // reduce.cpp: Reduce*, ArgMax, Softmax, CumSum, TopK
void add_shape_ops(OpRegistry& ops);       // shape.cpp: Shape, Size, Reshape, Transpose, Concat, Split, Slice, ...
void add_index_ops(OpRegistry& ops);       // index.cpp: Gather*, Scatter*, OneHot, NonZero, Unique, ...
void add_generate_ops(
    OpRegistry& ops);  // generate.cpp: Constant, ConstantOfShape, Range, EyeLike, neo.Dims, windows, ...
void add_resize_ops(OpRegistry& ops);     // resize.cpp: Resize, GridSample, AffineGrid
void add_vision_ops(OpRegistry& ops);     // vision.cpp: NonMaxSuppression, RoiAlign, MaxRoiPool, DepthToSpace, ...
void add_recurrent_ops(OpRegistry& ops);  // recurrent.cpp: LSTM, GRU, RNN, DynamicQuantizeLSTM
void add_attention_ops(OpRegistry& ops);  // attention.cpp: Attention, RotaryEmbedding, Einsum
void add_quantize_ops(OpRegistry& ops);   // quantize.cpp: QuantizeLinear, DequantizeLinear, QLinear*, *Integer
void add_control_ops(OpRegistry& ops);    // control.cpp: If, Loop, Scan
void add_sequence_ops(OpRegistry& ops);   // sequence.cpp: sequences and optionals
void add_text_ops(OpRegistry& ops);       // text.cpp: strings
void add_signal_ops(OpRegistry& ops);     // signal.cpp: DFT, STFT, MelWeightMatrix
void add_loss_ops(OpRegistry& ops);       // loss.cpp
void add_ml_ops(OpRegistry& ops);         // ml.cpp: ai.onnx.ml

}  // namespace neo
