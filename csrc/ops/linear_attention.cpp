#include <cmath>

#include "base/budget.h"
#include "ops/attention.h"
#include "ops/elements.h"
#include "ops/families.h"
#include "ops/sizes.h"

namespace neo {

namespace {

// LinearAttention(query, key, value, past state, decay, beta) -> output, present state: a state of d_k x d_v per key
// head that decays, takes up key x value (less what it already holds for the key, in the delta rules) and is read by
// queries.

struct Rule {
  bool decays = false;
  bool corrects = false;
};

Rule read_rule(const Node& node) {
  const std::string rule = node.string_attr("update_rule", "gated_delta");
  NEO_CHECK(rule == "linear" || rule == "gated" || rule == "delta" || rule == "gated_delta", Model, node.op,
            "attribute update_rule must be linear, gated, delta or gated_delta. Got \"", rule, "\" - at ",
            node.place());
  return {rule.starts_with("gated"), rule.ends_with("delta")};
}

struct HeadCounts {
  int64_t queries = 1;
  int64_t keys = 1;
};

HeadCounts read_heads(const Node& node) {
  const HeadCounts heads{node.int_attr("q_num_heads", 0), node.int_attr("kv_num_heads", 0)};
  NEO_CHECK(heads.queries >= 1 && heads.keys >= 1 && heads.queries % heads.keys == 0, Model, node.op,
            "attribute q_num_heads must be a multiple of kv_num_heads. Got ", heads.queries, " and ", heads.keys,
            " - at ", node.place());
  return heads;
}

void infer_linear_attention(InferContext& ctx) {
  for (const int i : {0, 1, 2}) {
    check_dtype(ctx, i, DTypeClass::Float);
    check_same_dtype(ctx, 0, i);
    ctx.check_rank(i, 3);
  }
  const Rule rule = read_rule(ctx.node());
  const HeadCounts heads = read_heads(ctx.node());
  ctx.check(ctx.has_input(4) == rule.decays, "decay must be given for the gated rules, and only for them");
  ctx.check(ctx.has_input(5) == rule.corrects, "beta must be given for the delta rules, and only for them");
  const DType state = ctx.has_input(3) ? ctx.dtype(3) : ctx.dtype(0);
  if (!ctx.ranked(0) || !ctx.ranked(2)) {
    ctx.set_output(0, ctx.dtype(0), Shape());
    return ctx.set_output(1, state, Shape());
  }
  const Shape& q = ctx.shape(0);
  const Shape& v = ctx.shape(2);
  ctx.require_divides(heads.queries, q[2], "the last axis of the query must be divisible by q_num_heads");
  ctx.require_divides(heads.keys, v[2], "the last axis of the value must be divisible by kv_num_heads");
  const Dim key_size = floordiv(q[2], Dim(heads.queries));
  const Dim value_size = floordiv(v[2], Dim(heads.keys));
  if (ctx.ranked(1)) {
    ctx.require_equal(ctx.shape(1)[2], key_size * Dim(heads.keys), "query and key must have one head size");
  }
  ctx.set_output(0, ctx.dtype(0), Shape({q[0], q[1], value_size * Dim(heads.queries)}));
  ctx.set_output(1, state, Shape({q[0], heads.keys, key_size, value_size}));
}

void reference_linear_attention(ReferenceContext& ctx) {
  const Rule rule = read_rule(ctx.node());
  const HeadCounts heads = read_heads(ctx.node());
  const Dims q_dims = ctx.input(0).dims();
  const Dims k_dims = ctx.input(1).dims();
  const Dims v_dims = ctx.input(2).dims();
  ctx.check(
      q_dims.size() == 3 && v_dims.size() == 3 && q_dims[2] % heads.queries == 0 && v_dims[2] % heads.keys == 0,
      str("query and value must be divisible by their heads. Got ", to_string(q_dims), " and ", to_string(v_dims)));
  const int64_t batch = q_dims[0];
  const int64_t steps = q_dims[1];
  const int64_t key_size = q_dims[2] / heads.queries;
  const int64_t value_size = v_dims[2] / heads.keys;
  ctx.check(k_dims == Dims{batch, steps, heads.keys * key_size} && v_dims[0] == batch && v_dims[1] == steps,
            str("query, key and value must fit. Got ", to_string(q_dims), ", ", to_string(k_dims), " and ",
                to_string(v_dims)));
  const auto q = ctx.doubles(0);
  const auto k = ctx.doubles(1);
  const auto v = ctx.doubles(2);
  // A decay per head and key element, a beta per head.
  const auto gate = [&](int input, int64_t finest) {
    if (!ctx.has_input(input)) return std::vector<double>{};
    const Dims dims = ctx.input(input).dims();
    ctx.check(dims.size() == 3 && dims[0] == batch && dims[1] == steps &&
                  (dims[2] == finest || dims[2] == heads.keys || (input == 5 && dims[2] == 1)),
              str("input ", input, " must have one gate per head or finer. Got ", to_string(dims)));
    return ctx.doubles(input);
  };
  const auto decay = gate(4, heads.keys * key_size);
  const auto beta = gate(5, heads.keys);
  const int64_t decays = decay.empty() ? 0 : ctx.input(4).dims()[2];
  const int64_t betas = beta.empty() ? 0 : ctx.input(5).dims()[2];
  const Dims state_dims = {batch, heads.keys, key_size, value_size};
  auto state = std::vector<double>(static_cast<size_t>(element_count(state_dims)));
  if (ctx.has_input(3)) {
    ctx.check(ctx.input(3).dims() == state_dims,
              str("past_state must have dims ", to_string(state_dims), ". Got ", to_string(ctx.input(3).dims())));
    state = ctx.doubles(3);
  }
  double scale = ctx.node().float_attr("scale", 0.0);
  if (scale == 0) scale = 1.0 / std::sqrt(static_cast<double>(key_size));
  const Dims y_dims = {batch, steps, heads.queries * value_size};
  auto y = make_scratch<double>(element_count(y_dims));
  auto written = make_scratch<double>(value_size);
  const int64_t group = heads.queries / heads.keys;
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t t = 0; t < steps; ++t) {
      const int64_t step = b * steps + t;
      for (int64_t h = 0; h < heads.keys; ++h) {
        checkpoint();
        double* matrix = state.data() + (b * heads.keys + h) * key_size * value_size;
        const double* key = k.data() + (step * heads.keys + h) * key_size;
        const double* value = v.data() + (step * heads.keys + h) * value_size;
        for (int64_t i = 0; rule.decays && i < key_size; ++i) {
          const int64_t at = step * decays + (decays == heads.keys ? h : h * key_size + i);
          const double kept = std::exp(decay[static_cast<size_t>(at)]);
          for (int64_t j = 0; j < value_size; ++j) matrix[i * value_size + j] *= kept;
        }
        for (int64_t j = 0; j < value_size; ++j) {
          written[static_cast<size_t>(j)] = value[j];
          if (!rule.corrects) continue;
          double held = 0;
          for (int64_t i = 0; i < key_size; ++i) held += matrix[i * value_size + j] * key[i];
          const double rate = beta[static_cast<size_t>(step * betas + (betas == 1 ? 0 : h))];
          written[static_cast<size_t>(j)] = rate * (value[j] - held);
        }
        for (int64_t i = 0; i < key_size; ++i) {
          for (int64_t j = 0; j < value_size; ++j)
            matrix[i * value_size + j] += key[i] * written[static_cast<size_t>(j)];
        }
        for (int64_t g = 0; g < group; ++g) {
          const int64_t head = step * heads.queries + h * group + g;
          const double* query = q.data() + head * key_size;
          for (int64_t j = 0; j < value_size; ++j) {
            double sum = 0;
            for (int64_t i = 0; i < key_size; ++i) sum += query[i] * matrix[i * value_size + j];
            y[static_cast<size_t>(head * value_size + j)] = scale * sum;
          }
        }
      }
    }
  }
  store_doubles(ctx.output(0, ctx.input(0).dtype(), y_dims), y);
  if (!ctx.has_output(1)) return;
  const DType dtype = ctx.has_input(3) ? ctx.input(3).dtype() : ctx.input(0).dtype();
  store_doubles(ctx.output(1, dtype, state_dims), state);
}

// The state is read and written a few times per step.
Work linear_attention_work(const Node& node) {
  const Value* q = node.input(0);
  const Value* state = node.output(1);
  if (!q || !state || !q->shape().has_rank() || !state->shape().has_rank()) return {0, operand_bytes(node)};
  return {Dim(8) * q->shape()[1] * state->shape().element_count(), operand_bytes(node)};
}

}  // namespace

void add_linear_attention_ops(OpRegistry& ops) {
  ops.add({.name = "LinearAttention",
           .min_inputs = 3,
           .max_inputs = 6,
           .max_outputs = 2,
           .infer = infer_linear_attention,
           .reference = reference_linear_attention,
           .work = linear_attention_work});
}

}  // namespace neo
