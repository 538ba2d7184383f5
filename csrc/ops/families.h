#pragma once

#include "ops/op.h"

// The one list of what fills the registry: X(name) stands for add_<name>_ops, which a file of this folder defines.
#define NEO_OP_FILES(X)    \
  X(activation)            \
  X(attention)             \
  X(cast)                  \
  X(comparison)            \
  X(control)               \
  X(conv)                  \
  X(determinant)           \
  X(einsum)                \
  X(elementwise)           \
  X(generate)              \
  X(grid)                  \
  X(index)                 \
  X(layer_norm)            \
  X(linear_attention)      \
  X(linear_model)          \
  X(loss)                  \
  X(lstm)                  \
  X(map)                   \
  X(matmul)                \
  X(ml)                    \
  X(multibox)              \
  X(norm)                  \
  X(pad)                   \
  X(pool)                  \
  X(quantize)              \
  X(quantized_elementwise) \
  X(quantized_product)     \
  X(random)                \
  X(recurrent)             \
  X(reduce)                \
  X(resize)                \
  X(scan)                  \
  X(scatter)               \
  X(sequence)              \
  X(shape)                 \
  X(signal)                \
  X(slice)                 \
  X(softmax)               \
  X(special_conv)          \
  X(text)                  \
  X(tree)                  \
  X(vision)

namespace neo {

#define NEO_DECLARE(name) void add_##name##_ops(OpRegistry& ops);
NEO_OP_FILES(NEO_DECLARE)
#undef NEO_DECLARE

// The name in the list that adds an operator; an Unsupported error for one that register_op() added.
std::string_view op_family(std::string_view op);

}  // namespace neo
