#pragma once

#include "routines/routine.h"

// The one list of routines, in the table's order. X(name) stands for two functions that a file of
// routines/cpu/<family>/ or routines/gpu/<family>/ defines with NEO_DEFINE_ROUTINE: make_<name>_routine makes the
// routine, make_<name>_step is its make() without the rest of it, so that a program which only runs plans links no
// more.
#ifdef NEO_WITHOUT_DEVICES
#define NEO_DEVICE_ROUTINES(X)
#else
#define NEO_DEVICE_ROUTINES(X)       \
  X(gpu_eltwise)                     \
  X(gpu_copy)                        \
  X(gpu_pool)                        \
  X(gpu_reduce)                      \
  X(gpu_eltwise_nchw4c)              \
  X(gpu_eltwise_nchw8c)              \
  X(gpu_eltwise_nchw16c)             \
  X(gpu_eltwise_nhwc)                \
  X(gpu_copy_nchw4c)                 \
  X(gpu_copy_nchw8c)                 \
  X(gpu_copy_nchw16c)                \
  X(gpu_copy_nhwc)                   \
  X(gpu_pool_nchw4c)                 \
  X(gpu_pool_nchw8c)                 \
  X(gpu_pool_nchw16c)                \
  X(gpu_pool_nhwc)                   \
  X(gpu_reduce_nchw4c)               \
  X(gpu_reduce_nchw8c)               \
  X(gpu_reduce_nchw16c)              \
  X(gpu_reduce_nhwc)                 \
  X(gpu_softmax)                     \
  X(gpu_norm)                        \
  X(gpu_channel_norm)                \
  X(gpu_resize)                      \
  X(gpu_grid_sample)                 \
  X(gpu_index)                       \
  X(gpu_conv_direct_nchw)            \
  X(gpu_conv_direct_nchw4c)          \
  X(gpu_conv_direct_nchw8c)          \
  X(gpu_conv_direct_nchw16c)         \
  X(gpu_conv_direct_nhwc)            \
  X(gpu_conv_direct_first4c)         \
  X(gpu_conv_direct_first8c)         \
  X(gpu_conv_direct_first16c)        \
  X(gpu_conv_direct_first_nhwc)      \
  X(gpu_conv_depthwise_nchw)         \
  X(gpu_conv_depthwise_nchw4c)       \
  X(gpu_conv_depthwise_nchw8c)       \
  X(gpu_conv_depthwise_nchw16c)      \
  X(gpu_conv_depthwise_nhwc)         \
  X(gpu_conv_winograd_nchw4c)        \
  X(gpu_conv_winograd_nchw8c)        \
  X(gpu_conv_winograd_nchw16c)       \
  X(gpu_conv_winograd_fused_nchw8c)  \
  X(gpu_conv_winograd_fused_nchw16c) \
  X(gpu_conv_subgroup_nchw8c)        \
  X(gpu_conv_subgroup_nchw16c)       \
  X(gpu_conv_tiled)                  \
  X(gpu_conv_tiled_tf32)             \
  X(gpu_int8_conv_tiled)             \
  X(gpu_int8_gemm)                   \
  X(gpu_int8_conv_depthwise)         \
  X(gpu_int8_linear)                 \
  X(gpu_int8_eltwise)                \
  X(gpu_int8_pool)                   \
  X(gpu_gemm)                        \
  X(gpu_gemm_tf32)                   \
  X(gpu_recurrent)                   \
  X(gpu_top_k)                       \
  X(gpu_cum_sum)                     \
  X(gpu_non_zero)                    \
  X(gpu_compress)                    \
  X(gpu_non_max_suppression)         \
  X(gpu_roi_align)                   \
  X(gpu_box_nms)                     \
  X(gpu_multibox_prior)              \
  X(gpu_multibox_detection)
#endif

#define NEO_ROUTINES(X)        \
  X(direct_nchwc)              \
  X(direct_nchw)               \
  X(direct_rows)               \
  X(depthwise)                 \
  X(depthwise_pointwise)       \
  X(pointwise_depthwise)       \
  X(inverted_residual)         \
  X(stem_depthwise)            \
  X(stem_depthwise_pointwise)  \
  X(pointwise_with_prologue)   \
  X(sparse_nchw)               \
  X(strassen)                  \
  X(im2col_conv)               \
  X(large_kernel)              \
  X(subpixel_nchwc)            \
  X(subpixel_rows)             \
  X(subpixel_winograd)         \
  X(transposed_depthwise)      \
  X(winograd)                  \
  X(int8_depthwise_float32)    \
  X(int8_depthwise_pointwise)  \
  X(int8_pointwise_depthwise)  \
  X(int8_inverted_residual)    \
  X(int8_winograd)             \
  X(int8_direct_nchwc)         \
  X(int8_direct_nchw)          \
  X(int8_gemm)                 \
  X(int8_matmul)               \
  X(int8_depthwise)            \
  X(int8_few_channels)         \
  X(int8_pool)                 \
  X(int8_eltwise)              \
  X(int8_linear)               \
  X(int8_block_weights)        \
  X(gemv_exponent_packed)      \
  X(attention)                 \
  X(gemm_sparse)               \
  X(gemm_strassen)             \
  X(gemm)                      \
  X(typed_gemm)                \
  X(eltwise)                   \
  X(typed_eltwise)             \
  X(pool_nchwc)                \
  X(pool_nchw)                 \
  X(typed_pool)                \
  X(max_unpool)                \
  X(global_pool)               \
  X(reduce)                    \
  X(typed_reduce)              \
  X(typed_softmax)             \
  X(typed_norm)                \
  X(scan)                      \
  X(hardmax)                   \
  X(softmax)                   \
  X(norm)                      \
  X(view)                      \
  X(concat_in_place)           \
  X(channels)                  \
  X(depth_to_space)            \
  X(copy)                      \
  X(pad)                       \
  X(diagonal)                  \
  X(gather)                    \
  X(resize_nchwc)              \
  X(resize_nchwc_to_nhwc)      \
  X(resize_nchw)               \
  X(typed_resize)              \
  X(grid_sample)               \
  X(recurrent_exponent_packed) \
  X(recurrent_codes)           \
  X(recurrent64)               \
  X(recurrent_stack)           \
  X(recurrent)                 \
  X(lrn_nchwc)                 \
  X(lrn_nchw)                  \
  X(scatter_nd)                \
  X(index)                     \
  X(one_hot)                   \
  X(gather_rows)               \
  X(top_k)                     \
  X(fourier)                   \
  X(trees)                     \
  X(linear_model)              \
  X(support_vectors)           \
  X(normalizer)                \
  X(lookup)                    \
  NEO_DEVICE_ROUTINES(X)       \
  X(reference)

// For a RoutineOf; NEO_DEFINE_ROUTINE for one that needs no arguments besides.
#define NEO_DEFINE_STEP(name, ...)                                                                                  \
  std::unique_ptr<Step> make_##name##_step(const Candidate& candidate, const Target& target, const OpRegistry& ops, \
                                           PackedStore& packed) {                                                   \
    return __VA_ARGS__::make_step(candidate, target, ops, packed);                                                  \
  }
#define NEO_DEFINE_ROUTINE(name, ...)                \
  std::unique_ptr<Routine> make_##name##_routine() { \
    return std::make_unique<__VA_ARGS__>();          \
  }                                                  \
  NEO_DEFINE_STEP(name, __VA_ARGS__)

namespace neo {

// The base of a routine whose make() is its static make_step(), which needs nothing else of the routine.
template <class Self, class Base = Routine>
class RoutineOf : public Base {
 public:
  using Base::Base;

  std::unique_ptr<Step> make(const Candidate& candidate, const Target& target, const OpRegistry& ops,
                             PackedStore& packed) const override {
    return Self::make_step(candidate, target, ops, packed);
  }
};

using MakeStep = std::unique_ptr<Step> (*)(const Candidate& candidate, const Target& target, const OpRegistry& ops,
                                           PackedStore& packed);

#define NEO_DECLARE(name)                                                                                           \
  std::unique_ptr<Routine> make_##name##_routine();                                                                 \
  std::unique_ptr<Step> make_##name##_step(const Candidate& candidate, const Target& target, const OpRegistry& ops, \
                                           PackedStore& packed);
NEO_ROUTINES(NEO_DECLARE)
#undef NEO_DECLARE

// The names of the list, in the order of standard_routines().
std::vector<std::string_view> standard_routine_makers();

}  // namespace neo
