#include "ops/families.h"

namespace neo {

const OpRegistry& standard_ops() {
  static const OpRegistry ops = [] {
    OpRegistry all;
    add_elementwise_ops(all);
    add_activation_ops(all);
    add_conv_ops(all);
    add_matmul_ops(all);
    add_pool_ops(all);
    add_norm_ops(all);
    add_reduce_ops(all);
    add_shape_ops(all);
    add_index_ops(all);
    add_generate_ops(all);
    add_resize_ops(all);
    add_vision_ops(all);
    add_recurrent_ops(all);
    add_attention_ops(all);
    add_quantize_ops(all);
    add_control_ops(all);
    add_sequence_ops(all);
    add_text_ops(all);
    add_signal_ops(all);
    add_loss_ops(all);
    add_ml_ops(all);
    return all;
  }();
  return ops;
}

}  // namespace neo
