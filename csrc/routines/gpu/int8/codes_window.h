#pragma once

#include "base/function_ref.h"
#include "routines/gpu/int8/codes_product.h"
#include "routines/patterns/codes_pool.h"

// Convolutions whose groups have one input channel, and pools: a thread makes a pixel of one channel, or of four that
// lie together. The layouts of input and result are one.
namespace neo::gpu {

// Channels that a thread makes: 4 where so many lie together, else 1.
int codes_lanes(int64_t together, int64_t channels);

// Products are those of codes less their zero points.
const char* reject_codes_depthwise(const CodesProduct& product);
int64_t codes_depthwise_words(const CodesProduct& product);  // int32 of the weights
// weight(channel, tap): [block of lanes][tap][lane].
void pack_codes_depthwise(const CodesProduct& product, FunctionRef<int32_t(int64_t, int64_t)> weight, int32_t* to);
// Packed constants: the weights, the columns, then the table if there is one.
std::unique_ptr<const Program> make_codes_depthwise(const CodesProduct& product, int threads);
Profile codes_depthwise_profile(const CodesProduct& product, int threads, const Dims& x, const Dims& y);

// A maximum is that of the codes, an average that of their numbers.
struct CodesPool {
  bool is_average = false, is_global = false, counts_padding = false;
  Window window;  // of all but global ones
  int axes = 0;
  int64_t together = 1;
  int lanes = 1;
  CodeGrid x, y;

  CodesPool(const CodesPoolProblem& problem, int64_t together);
};
std::unique_ptr<const Program> make_codes_pool(const CodesPool& pool, int threads);
Profile codes_pool_profile(const CodesPool& pool, int threads, const Dims& x, const Dims& y);

}  // namespace neo::gpu
