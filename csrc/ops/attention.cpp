#include "ops/attention.h"

#include <algorithm>
#include <cmath>

#include "base/budget.h"
#include "ops/elements.h"
#include "ops/families.h"
#include "ops/movement.h"
#include "ops/sizes.h"

namespace neo {

namespace {

// Longer than any sequence.
constexpr int64_t kMaxWindow = int64_t{1} << 46;

constexpr double kMasked = -HUGE_VAL;

// The axes of a 3-D operand [batch, sequence, heads * size] or a 4-D one [batch, heads, sequence, size].

struct HeadDims {
  Dim batch;
  Dim heads;
  Dim length;
  Dim size;
};

HeadDims infer_heads(InferContext& ctx, int input, std::string_view heads_key) {
  const Shape& shape = ctx.shape(input);
  if (shape.rank() == 4) return {shape[0], shape[1], shape[2], shape[3]};
  ctx.check_rank(input, 3);
  const int64_t heads = ctx.node().int_attr(heads_key, 0);
  ctx.check(heads >= 1, str("attribute ", heads_key, " is required for inputs of rank 3. Got ", heads));
  ctx.require_divides(heads, shape[2], str("the last axis must be divisible by ", heads_key));
  return {shape[0], heads, shape[1], floordiv(shape[2], Dim(heads))};
}

// Elements as [batch][heads][length][size].
struct Heads {
  int64_t batch = 0;
  int64_t heads = 0;
  int64_t length = 0;
  int64_t size = 0;
  std::vector<double> elements;

  const double* row(int64_t b, int64_t h, int64_t i) const {
    return elements.data() + ((b * heads + h) * length + i) * size;
  }
  Dims dims() const { return {batch, heads, length, size}; }
};

Heads load_heads(const ReferenceContext& ctx, int input, std::string_view heads_key) {
  const Dims dims = ctx.input(input).dims();
  if (dims.size() == 4) return {dims[0], dims[1], dims[2], dims[3], ctx.doubles(input)};
  const int64_t heads = ctx.node().int_attr(heads_key, 0);
  ctx.check(dims.size() == 3 && heads >= 1 && dims[2] % heads == 0,
            str("input ", input, " must have rank 4, or rank 3 and a last axis divisible by ", heads_key, ". Got ",
                to_string(dims), " and ", heads));
  Heads result{dims[0], heads, dims[1], dims[2] / heads, {}};
  const auto flat = ctx.doubles(input);
  result.elements.resize(flat.size());
  for (int64_t b = 0; b < result.batch; ++b) {
    for (int64_t i = 0; i < result.length; ++i) {
      for (int64_t h = 0; h < heads; ++h) {
        std::copy_n(flat.begin() + ((b * result.length + i) * heads + h) * result.size, result.size,
                    result.elements.begin() + ((b * heads + h) * result.length + i) * result.size);
      }
    }
  }
  return result;
}

// past followed by the new elements.
Heads append(const ReferenceContext& ctx, int past_input, const Heads& fresh) {
  if (!ctx.has_input(past_input)) return fresh;
  const Dims past = ctx.input(past_input).dims();
  ctx.check(past.size() == 4 && past[0] == fresh.batch && past[1] == fresh.heads && past[3] == fresh.size,
            str("a cache must fit the keys and values. Got ", to_string(past), " and ", to_string(fresh.dims())));
  const auto old = ctx.doubles(past_input);
  Heads result{fresh.batch, fresh.heads, past[2] + fresh.length, fresh.size, {}};
  result.elements.reserve(old.size() + fresh.elements.size());
  const int64_t old_run = past[2] * fresh.size;
  const int64_t new_run = fresh.length * fresh.size;
  for (int64_t i = 0; i < fresh.batch * fresh.heads; ++i) {
    result.elements.insert(result.elements.end(), old.begin() + i * old_run, old.begin() + (i + 1) * old_run);
    result.elements.insert(result.elements.end(), fresh.elements.begin() + i * new_run,
                           fresh.elements.begin() + (i + 1) * new_run);
  }
  return result;
}

// Attention(Q, K, V, mask, past key, past value, valid lengths) -> Y, present key, present value, scores

void check_attention_attributes(InferContext& ctx) {
  const Node& node = ctx.node();
  const int64_t mode = node.int_attr("qk_matmul_output_mode", 0);
  ctx.check(mode >= 0 && mode <= 3, str("attribute qk_matmul_output_mode must be 0 to 3. Got ", mode));
  for (const char* key : {"left_window_size", "right_window_size"}) {
    ctx.check(node.int_attr(key, -1) >= -1,
              str("attribute ", key, " must be -1 or more. Got ", node.int_attr(key, -1)));
  }
  ctx.check(ctx.has_input(4) == ctx.has_input(5), "past_key and past_value must be given together");
  ctx.check(!ctx.has_input(6) || !ctx.has_input(4), "nonpad_kv_seqlen must not be given together with past_key");
}

void infer_attention(InferContext& ctx) {
  for (const int i : {0, 1, 2}) check_dtype(ctx, i, DTypeClass::Float);
  check_same_dtype(ctx, 0, 1);
  check_attention_attributes(ctx);
  const DType dtype = ctx.dtype(0);
  if (!ctx.ranked(0) || !ctx.ranked(1) || !ctx.ranked(2)) {
    ctx.set_output(0, dtype, Shape());
    ctx.set_output(1, dtype, Shape());
    ctx.set_output(2, ctx.dtype(2), Shape());
    return ctx.set_output(3, dtype, Shape());
  }
  const HeadDims q = infer_heads(ctx, 0, "q_num_heads");
  const HeadDims k = infer_heads(ctx, 1, "kv_num_heads");
  const HeadDims v = infer_heads(ctx, 2, "kv_num_heads");
  ctx.require_equal(q.batch, k.batch, "queries and keys must have one batch");
  ctx.require_equal(k.batch, v.batch, "keys and values must have one batch");
  ctx.require_equal(q.size, k.size, "queries and keys must have one head size");
  ctx.require_equal(k.heads, v.heads, "keys and values must have as many heads");
  ctx.require_equal(k.length, v.length, "keys and values must have one length");
  ctx.require_divides(k.heads, q.heads, "the heads of queries must be a multiple of those of keys");
  Dim total = k.length;
  if (ctx.has_input(4)) {
    ctx.check_rank(4, 4);
    ctx.check_rank(5, 4);
    total = total + (ctx.ranked(4) ? ctx.shape(4)[2] : ctx.fresh("past"));
  }
  const bool packed = ctx.shape(0).rank() == 3;
  ctx.set_output(0, dtype,
                 packed ? Shape({q.batch, q.length, q.heads * v.size}) : Shape({q.batch, q.heads, q.length, v.size}));
  ctx.set_output(1, dtype, Shape({k.batch, k.heads, total, k.size}));
  ctx.set_output(2, ctx.dtype(2), Shape({v.batch, v.heads, total, v.size}));
  ctx.set_output(3, dtype, Shape({q.batch, q.heads, q.length, total}));
}

// The addend of the scores [batch][heads][queries][keys]; kMasked where a key is not seen.
class Bias {
 public:
  Bias(const ReferenceContext& ctx, const Heads& q, int64_t keys)
      : causal_(ctx.node().int_attr("is_causal", 0) != 0),
        left_(std::min(ctx.node().int_attr("left_window_size", -1), kMaxWindow)),
        right_(std::min(ctx.node().int_attr("right_window_size", -1), kMaxWindow)),
        offsets_(static_cast<size_t>(q.batch)),
        valid_(static_cast<size_t>(q.batch), keys) {
    if (ctx.has_input(4)) {
      std::fill(offsets_.begin(), offsets_.end(), ctx.input(4).dims()[2]);
    } else if (ctx.has_input(6)) {
      valid_ = ctx.ints(6);
      ctx.check(static_cast<int64_t>(valid_.size()) == q.batch,
                str("nonpad_kv_seqlen must have one length per element of the batch. Got ", valid_.size()));
      for (size_t b = 0; b < valid_.size(); ++b) {
        ctx.check(valid_[b] >= 0 && valid_[b] <= keys,
                  str("nonpad_kv_seqlen must be 0 to ", keys, ". Got ", valid_[b]));
        offsets_[b] = valid_[b] - q.length;
      }
    }
    if (!ctx.has_input(3)) return;
    Dims mask = ctx.input(3).dims();
    ctx.check(!mask.empty() && mask.size() <= 4 && mask.back() <= keys,
              str("the mask must broadcast to the scores. Got ", to_string(mask)));
    mask_keys_ = mask.back();
    mask_ = ctx.doubles(3);
    if (ctx.input(3).dtype() == DType::Bool) {
      for (double& element : mask_) element = element != 0 ? 0 : kMasked;
    }
    mask.pop_back();
    mask_rows_ = broadcast_indices(ctx, mask, {q.batch, q.heads, q.length});
    heads_ = q.heads;
    queries_ = q.length;
  }

  double operator()(int64_t b, int64_t h, int64_t i, int64_t j) const {
    const auto batch = static_cast<size_t>(b);
    const int64_t position = i + offsets_[batch];
    if (j >= valid_[batch] || (causal_ && j > position)) return kMasked;
    if ((left_ >= 0 && j < position - left_) || (right_ >= 0 && j > position + right_)) return kMasked;
    if (mask_rows_.empty()) return 0;
    if (j >= mask_keys_) return kMasked;
    const int64_t row = mask_rows_[static_cast<size_t>((b * heads_ + h) * queries_ + i)];
    return mask_[static_cast<size_t>(row * mask_keys_ + j)];
  }

 private:
  bool causal_;
  int64_t left_;
  int64_t right_;
  std::vector<int64_t> offsets_;  // keys before the first query, by batch
  std::vector<int64_t> valid_;    // keys that are not padding, by batch
  std::vector<double> mask_;
  std::vector<int64_t> mask_rows_;  // empty: no mask
  int64_t mask_keys_ = 0;
  int64_t heads_ = 0;
  int64_t queries_ = 0;
};

enum QkMode : int64_t { kRaw, kCapped, kBiased, kProbabilities };

void reference_attention(ReferenceContext& ctx) {
  const Node& node = ctx.node();
  const Heads q = load_heads(ctx, 0, "q_num_heads");
  const Heads k = append(ctx, 4, load_heads(ctx, 1, "kv_num_heads"));
  const Heads v = append(ctx, 5, load_heads(ctx, 2, "kv_num_heads"));
  ctx.check(k.heads > 0 && q.heads % k.heads == 0 && v.heads == k.heads && q.size == k.size && v.length == k.length &&
                k.batch == q.batch && v.batch == q.batch,
            str("queries, keys and values must fit. Got ", to_string(q.dims()), ", ", to_string(k.dims()), " and ",
                to_string(v.dims())));
  const Bias bias(ctx, q, k.length);
  const double scale = node.float_attr("scale", 1.0 / std::sqrt(static_cast<double>(q.size)));
  const double softcap = node.float_attr("softcap", 0.0);
  const int64_t mode = node.int_attr("qk_matmul_output_mode", 0);
  const bool precise = !node.has_attr("softmax_precision");
  const DType precision = dtype_attr(node, "softmax_precision", DType::Float64);
  const bool packed = ctx.input(0).rank() == 3;
  const auto keys = static_cast<size_t>(k.length);
  auto y = make_scratch<double>(q.batch * q.heads * q.length * v.size);
  std::vector<double> kept(ctx.has_output(3) ? static_cast<size_t>(q.batch * q.heads * q.length) * keys : 0);
  std::vector<double> scores(keys);
  for (int64_t b = 0; b < q.batch; ++b) {
    for (int64_t h = 0; h < q.heads; ++h) {
      const int64_t kv = h / (q.heads / k.heads);
      for (int64_t i = 0; i < q.length; ++i) {
        checkpoint();
        const int64_t row = (b * q.heads + h) * q.length + i;
        const auto keep = [&](int64_t at) {
          if (mode == at && !kept.empty()) std::copy(scores.begin(), scores.end(), kept.begin() + row * k.length);
        };
        for (size_t j = 0; j < keys; ++j) {
          const double* query = q.row(b, h, i);
          const double* key = k.row(b, kv, static_cast<int64_t>(j));
          double sum = 0;
          for (int64_t d = 0; d < q.size; ++d) sum += query[d] * key[d];
          scores[j] = sum * scale;
        }
        keep(kRaw);
        if (softcap > 0) {
          for (double& score : scores) score = softcap * std::tanh(score / softcap);
        }
        keep(kCapped);
        bool seen = false;
        for (size_t j = 0; j < keys; ++j) {
          const double added = bias(b, h, i, static_cast<int64_t>(j));
          seen = seen || added != kMasked;
          scores[j] += added;
        }
        keep(kBiased);
        softmax_scores(scores, seen, precise ? DType::Undefined : precision);
        keep(kProbabilities);
        double* target = y.data() + (packed ? ((b * q.length + i) * q.heads + h) : row) * v.size;
        for (size_t j = 0; j < keys; ++j) {
          if (scores[j] == 0) continue;
          const double* value = v.row(b, kv, static_cast<int64_t>(j));
          for (int64_t d = 0; d < v.size; ++d) target[d] += scores[j] * value[d];
        }
      }
    }
  }
  const DType dtype = ctx.input(0).dtype();
  const Dims dims = packed ? Dims{q.batch, q.length, q.heads * v.size} : Dims{q.batch, q.heads, q.length, v.size};
  store_doubles(ctx.output(0, dtype, dims), y);
  if (ctx.has_output(1)) store_doubles(ctx.output(1, dtype, k.dims()), k.elements);
  if (ctx.has_output(2)) store_doubles(ctx.output(2, ctx.input(2).dtype(), v.dims()), v.elements);
  if (ctx.has_output(3)) store_doubles(ctx.output(3, dtype, {q.batch, q.heads, q.length, k.length}), kept);
}

// 2 flops per score and element of a key, and of a value.
Work attention_work(const Node& node) {
  const Value* q = node.input(0);
  const Value* k = node.input(1);
  const Value* v = node.input(2);
  for (const Value* value : {q, k, v}) {
    if (!value || !value->shape().has_rank()) return {0, operand_bytes(node)};
  }
  const Shape& shape = k->shape();
  Dim keys = shape[shape.rank() == 4 ? 2 : 1];
  const Value* past = node.input(4);
  if (past && past->shape().has_rank() && past->shape().rank() == 4) keys = keys + past->shape()[2];
  Dim sizes = q->shape().element_count() * Dim(2);
  if (shape.rank() == 4 && q->shape().rank() == 4) {
    sizes = q->shape()[0] * q->shape()[1] * q->shape()[2] * (shape[3] + v->shape()[v->shape().rank() - 1]);
  }
  return {Dim(2) * keys * sizes, operand_bytes(node)};
}

// RotaryEmbedding(X, cos, sin, position ids)

void infer_rotary(InferContext& ctx) {
  check_dtype(ctx, 0, DTypeClass::Float);
  infer_same(ctx);
  if (!ctx.ranked(0)) return;
  const HeadDims x = infer_heads(ctx, 0, "num_heads");
  const int64_t rotated = ctx.node().int_attr("rotary_embedding_dim", 0);
  ctx.check(rotated >= 0 && rotated % 2 == 0, str("attribute rotary_embedding_dim must be even. Got ", rotated));
  if (rotated == 0) {
    ctx.require_divides(2, x.size, "the head size must be even");
  } else {
    ctx.require_less_equal(rotated, x.size, "rotary_embedding_dim must not exceed the head size");
  }
  for (const int i : {1, 2}) ctx.check_rank(i, ctx.has_input(3) ? 2 : 3);
}

void reference_rotary(ReferenceContext& ctx) {
  const Dims dims = ctx.input(0).dims();
  const bool packed = dims.size() == 3;
  Heads x = load_heads(ctx, 0, "num_heads");
  const int64_t rotated =
      ctx.node().int_attr("rotary_embedding_dim", 0) == 0 ? x.size : ctx.node().int_attr("rotary_embedding_dim", 0);
  const int64_t half = rotated / 2;
  ctx.check(rotated <= x.size, str("rotary_embedding_dim must not exceed the head size. Got ", rotated, ", expected ",
                                   x.size, " at most"));
  const bool interleaved = ctx.node().int_attr("interleaved", 0) != 0;
  const auto cosines = ctx.doubles(1);
  const auto sines = ctx.doubles(2);
  const int64_t rows = half == 0 ? 0 : static_cast<int64_t>(cosines.size()) / half;
  ctx.check(ctx.input(1).dims() == ctx.input(2).dims() && ctx.input(1).rank() > 0 && ctx.input(1).dims().back() == half,
            str("the caches must have rows of ", half, ". Got ", to_string(ctx.input(1).dims()), " and ",
                to_string(ctx.input(2).dims())));
  auto positions = make_scratch<int64_t>(x.batch * x.length);
  for (size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<int64_t>(i);
  if (ctx.has_input(3)) positions = broadcast_ints(ctx, 3, {x.batch, x.length});
  for (int64_t b = 0; b < x.batch; ++b) {
    for (int64_t i = 0; i < x.length; ++i) {
      const int64_t position = checked_index(ctx, positions[static_cast<size_t>(b * x.length + i)], rows);
      const double* cosine = cosines.data() + position * half;
      const double* sine = sines.data() + position * half;
      for (int64_t h = 0; h < x.heads; ++h) {
        double* row = x.elements.data() + ((b * x.heads + h) * x.length + i) * x.size;
        for (int64_t p = 0; p < half; ++p) {
          double& real = row[interleaved ? 2 * p : p];
          double& imaginary = row[interleaved ? 2 * p + 1 : half + p];
          const double turned = cosine[p] * real - sine[p] * imaginary;
          imaginary = sine[p] * real + cosine[p] * imaginary;
          real = turned;
        }
      }
    }
  }
  if (packed) {
    std::vector<double> flat(x.elements.size());
    for (int64_t b = 0; b < x.batch; ++b) {
      for (int64_t h = 0; h < x.heads; ++h) {
        for (int64_t i = 0; i < x.length; ++i) {
          std::copy_n(x.row(b, h, i), x.size, flat.begin() + ((b * x.length + i) * x.heads + h) * x.size);
        }
      }
    }
    x.elements = std::move(flat);
  }
  store_doubles(ctx.output(0, ctx.input(0).dtype(), dims), x.elements);
}

}  // namespace

void softmax_scores(std::vector<double>& scores, bool seen, DType precision) {
  if (!seen) return std::fill(scores.begin(), scores.end(), 0.0);
  const auto rounded = [precision](double x) { return precision == DType::Undefined ? x : round_to(precision, x); };
  double largest = kMasked;
  for (double& score : scores) {
    score = rounded(score);
    largest = std::max(largest, score);
  }
  double sum = 0;
  for (double& score : scores) sum += score = std::exp(score - largest);
  for (double& score : scores) score = rounded(score / sum);
}

void add_attention_ops(OpRegistry& ops) {
  ops.add({.name = "Attention",
           .min_inputs = 3,
           .max_inputs = 7,
           .max_outputs = 4,
           .infer = infer_attention,
           .reference = reference_attention,
           .work = attention_work});
  ops.add({.name = "RotaryEmbedding",
           .min_inputs = 3,
           .max_inputs = 4,
           .infer = infer_rotary,
           .reference = reference_rotary});
}

}  // namespace neo
