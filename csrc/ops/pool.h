#pragma once

#include "ops/window.h"

// Pooling as the float and the quantized operators share it.

namespace neo {

// Sets output 0 to the shape of a pool over input 0 with the node's attributes.
void infer_pool(InferContext& ctx);
// Sets output 0 to input 0 with every spatial axis reduced to 1. With `channels_last` the channels are the last axis.
void infer_global_pool(InferContext& ctx, bool channels_last = false);

// A pool over an input of known dims; the dims of its output are `outer`, the sizes that are left alone, and the
// window's.
struct PoolSizes {
  Dims outer;  // batch and channels
  WindowSizes window;
  Dims padded;  // spatial sizes with the padding at both ends

  int64_t planes() const { return element_count(outer); }
  Dims output_dims() const;
};
PoolSizes pool_sizes(const ReferenceContext& ctx, const Dims& input);

// Sums of the elements below each window.
std::vector<double> sum_windows(const PoolSizes& sizes, const std::vector<double>& x);
// How many elements each window of one plane divides by: those of the input, or those of the padded input.
std::vector<double> window_counts(const PoolSizes& sizes, bool include_pad);

// One flop per element below each window.
Work pool_work(const Node& node);
// One flop per input element.
Work input_work(const Node& node);

// The shape whose elements the indices of a MaxUnpool of `x` count: what the attributes give. output_shape may be
// larger.
Shape unpooled_shape(const Node& node, const Shape& x);

// The places where MaxUnpool puts its elements.
class Unpooling {
 public:
  // A Shape error where the inputs do not fit each other.
  explicit Unpooling(const ReferenceContext& ctx);

  const Dims& output() const { return output_; }
  // The element of the output that an index means; a Shape error where there is none.
  int64_t place(int64_t index) const { return index >= 0 && index < whole_limit() ? index : cut_place(index); }
  // Indices from 0 up to this one are elements of the output themselves.
  int64_t whole_limit() const { return is_whole_ ? limit_ : 0; }

 private:
  // The place where the output has another size than the one that indices count, and the error where there is none.
  int64_t cut_place(int64_t index) const;

  const ReferenceContext& ctx_;
  Dims counted_, output_, strides_;
  int64_t limit_ = 0;
  bool is_whole_ = false;  // the output has the size that the indices count
};

}  // namespace neo
