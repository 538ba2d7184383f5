#include "routines/cpu/recurrent/recurrent64.h"

#include "simd/math64.h"

namespace neo::NEO_ISA {
namespace {

template <class F>
NEO_INLINE void map_doubles(double* values, int64_t count, F f) {
  for (int64_t i = 0; i < count; ++i) values[i] = f(values[i]);
}

NEO_INLINE double softplus_of(double x) {
  const double e = exp(x < 0.0 ? x : -x), u = 1.0 + e;
  // The sum's lost digits, as a share of what is left of e.
  const double rest = u == 1.0 ? e : log(u) * (e / (u == 1.0 ? 1.0 : u - 1.0));
  return (x > 0.0 ? x : 0.0) + rest;
}

// A function after the bound of its arguments.
void apply_to_doubles(const CellRules& rules, int which, double* values, int64_t count) {
  const double a = (double)rules.a[which], b = (double)rules.b[which], clip = (double)rules.clip;
  map_doubles(values, count, [=](double x) NEO_LAMBDA { return x < -clip ? -clip : x > clip ? clip : x; });
  switch (rules.functions[which]) {
    case CellFunction::Affine:
      return map_doubles(values, count, [=](double x) NEO_LAMBDA { return a * x + b; });
    case CellFunction::Clip:
      return map_doubles(values, count, [=](double x) NEO_LAMBDA { return x < a ? a : x > b ? b : x; });
    case CellFunction::Elu:
      return map_doubles(values, count, [=](double x) NEO_LAMBDA {
        const double e = a * expm1(x);
        return x < 0.0 ? e : x;
      });
    case CellFunction::HardSigmoid:
      return map_doubles(values, count, [=](double x) NEO_LAMBDA {
        const double y = a * x + b;
        return y < 0.0 ? 0.0 : y > 1.0 ? 1.0 : y;
      });
    case CellFunction::LeakyRelu:
      return map_doubles(values, count, [=](double x) NEO_LAMBDA { return x < 0.0 ? a * x : x; });
    case CellFunction::Relu:
      return map_doubles(values, count, [=](double x) NEO_LAMBDA { return x < 0.0 ? 0.0 : x; });
    case CellFunction::ScaledTanh:
      return map_doubles(values, count, [=](double x) NEO_LAMBDA { return a * tanh(b * x); });
    case CellFunction::Sigmoid:
      return map_doubles(values, count, [=](double x) NEO_LAMBDA { return sigmoid(x); });
    case CellFunction::Softplus:
      return map_doubles(values, count, [=](double x) NEO_LAMBDA { return softplus_of(x); });
    case CellFunction::Softsign:
      return map_doubles(values, count, [=](double x) NEO_LAMBDA { return x / (1.0 + (x < 0.0 ? -x : x)); });
    case CellFunction::Tanh:
      return map_doubles(values, count, [=](double x) NEO_LAMBDA { return tanh(x); });
    case CellFunction::ThresholdedRelu:
      return map_doubles(values, count, [=](double x) NEO_LAMBDA { return x >= a ? x : 0.0; });
  }
}

// The arguments of the gates [first, last), whose products begin at gate `begin`.
NEO_INLINE void add_sums(const Cell64Args& a, int64_t first, int64_t last, int64_t begin) {
  for (int64_t j = first * a.hidden; j < last * a.hidden; ++j)
    a.work[j] = a.x[j] + a.bias[j] + a.products[j - begin * a.hidden];
}

NEO_INLINE void add_peephole(const Cell64Args& a, int64_t gate) {
  if (!a.peepholes) return;
  double* w = a.work + gate * a.hidden;
  const double* p = a.peepholes + gate * a.hidden;
  for (int64_t u = 0; u < a.hidden; ++u) w[u] += p[u] * a.cell[u];
}

void finish_lstm(const Cell64Args& a) {
  const int64_t n = a.hidden;
  const CellRules& rules = *a.rules;
  double *input = a.work, *output = a.work + n, *forget = a.work + 2 * n, *candidate = a.work + 3 * n;
  add_sums(a, 0, 4, 0);
  add_peephole(a, 0);
  add_peephole(a, 2);
  apply_to_doubles(rules, 0, input, n);
  if (rules.coupled) {
    for (int64_t u = 0; u < n; ++u) forget[u] = 1.0 - input[u];
  } else {
    apply_to_doubles(rules, 0, forget, n);
  }
  apply_to_doubles(rules, 1, candidate, n);
  for (int64_t u = 0; u < n; ++u) a.cell[u] = forget[u] * a.cell[u] + input[u] * candidate[u];
  add_peephole(a, 1);
  apply_to_doubles(rules, 0, output, n);
  for (int64_t u = 0; u < n; ++u) candidate[u] = a.cell[u];
  apply_to_doubles(rules, 2, candidate, n);
  for (int64_t u = 0; u < n; ++u) a.h[u] = output[u] * candidate[u];
}

void mix_states(const Cell64Args& a, const double* update, const double* candidate) {
  for (int64_t u = 0; u < a.hidden; ++u) a.h[u] = (1.0 - update[u]) * candidate[u] + update[u] * a.h[u];
}

}  // namespace

void recurrent64_finish(const Cell64Args& a) {
  const int64_t n = a.hidden;
  double *update = a.work, *reset = a.work + n, *candidate = a.work + 2 * n;
  switch (a.kind) {
    case CellKind::Lstm:
      return finish_lstm(a);
    case CellKind::GruLinear:
      add_sums(a, 0, 2, 0);
      apply_to_doubles(*a.rules, 0, update, 2 * n);
      for (int64_t u = 0; u < n; ++u) {
        candidate[u] = a.x[2 * n + u] + a.bias[2 * n + u] + reset[u] * (a.products[2 * n + u] + a.candidate_bias[u]);
      }
      apply_to_doubles(*a.rules, 1, candidate, n);
      return mix_states(a, update, candidate);
    case CellKind::GruGates:
      add_sums(a, 0, 2, 0);
      apply_to_doubles(*a.rules, 0, update, 2 * n);
      for (int64_t u = 0; u < n; ++u) {
        a.cell[u] = update[u];
        a.reset[u] = reset[u] * a.h[u];
      }
      return;
    case CellKind::GruCandidate:
      add_sums(a, 2, 3, 2);
      apply_to_doubles(*a.rules, 1, candidate, n);
      return mix_states(a, a.cell, candidate);
    default:
      add_sums(a, 0, 1, 0);
      apply_to_doubles(*a.rules, 0, a.work, n);
      for (int64_t u = 0; u < n; ++u) a.h[u] = a.work[u];
  }
}

}  // namespace neo::NEO_ISA
