#include "routines/gpu/gemm/product.h"

namespace neo::gpu {

using kernel::Array;
using kernel::Expr;

int64_t padded_columns(int64_t n, int64_t panel) {
  return ceil_div(n, panel) * panel;
}

void pack_columns(int64_t n, int64_t panel, float scale, std::span<const float> from, float* to) {
  for (int64_t i = 0; i < padded_columns(n, panel); ++i) {
    const auto at = static_cast<size_t>(from.size() == 1 ? 0 : i);
    to[i] = i < n ? scale * from[at] : 0.0f;
  }
}

void ProductKernel::declare_sizes() {
  m_ = count("m");
  n_ = count("n");
  k_ = count("k");
}

ProductKernel::Batch ProductKernel::declare_batch(const std::string& operand) {
  const Expr base = stride(operand + "_base"), outer = stride(operand + "_batch0");
  return {base, outer, stride(operand + "_batch1")};
}

void ProductKernel::declare_operands(const Expr& b_elements, const Expr& biases, int64_t rows, int64_t columns) {
  const bool adds = f_.result.has_residual;
  batch0_ = count("batch0");
  batch1_ = count("batch1");
  groups_row_ = count("groups_m", rows);
  groups_column_ = count("groups_n", columns);
  a_elements_ = elements("a_elements");
  c_elements_ = elements("c_elements");
  a_row_ = stride("a_row");
  a_column_ = dense_a() ? Expr(1) : stride("a_column");
  c_row_ = stride("c_row");
  a_batch_ = declare_batch("a");
  b_batch_ = declare_batch("b");
  c_batch_ = declare_batch("c");
  a_ = b_.input("a", DType::Float32, a_elements_);
  w_ = b_.input("b", DType::Float32, b_elements);
  c_ = b_.output("c", DType::Float32, c_elements_);
  if (adds) {
    r_elements_ = elements("r_elements");
    r_row_ = stride("r_row");
    r_column_ = stride("r_column");
    r_batch_ = declare_batch("r");
    beta_ = b_.number("beta", DType::Float32);
  }
  result_.emplace(b_, f_.result, biases, adds ? r_elements_ : c_elements_);
}

void ProductKernel::declare_groups(int order) {
  const int row_at = order == 0 ? 0 : 1;
  group_row_ = b_.group(row_at, "gm", groups_row_);
  group_column_ = b_.group(1 - row_at, "gn", groups_column_);
  z_ = b_.group(2, "gz", batch0_ * batch1_);
}

Expr ProductKernel::known_at_run_time(const char* name, const Expr& value) {
  const Array held = b_.registers(name, kernel::kInt, 1);
  held[0] = value;
  return b_.let(name, held[0] & INT32_MAX);
}

void ProductKernel::find_matrices() {
  a_row_ = known_at_run_time("row_of_a", a_row_);
  if (!dense_a()) a_column_ = known_at_run_time("column_of_a", a_column_);
  c_row_ = known_at_run_time("row_of_c", c_row_);
  const Expr outer = b_.let("outer", z_ / batch1_), inner = b_.let("inner", z_ % batch1_);
  const auto first = [&](const char* name, const Batch& batch) {
    return known_at_run_time(name, batch.base + outer * batch.outer + inner * batch.inner);
  };
  a_first_ = first("a_first", a_batch_);
  b_first_ = first("b_first", b_batch_);
  c_first_ = first("c_first", c_batch_);
  if (!f_.result.has_residual) return;
  r_row_ = known_at_run_time("row_of_r", r_row_);
  r_column_ = known_at_run_time("column_of_r", r_column_);
  r_first_ = first("r_first", r_batch_);
}

void ProductKernel::store(const Expr& row, const Expr& column, Expr sum) {
  sum = sum + result_->bias(column, 1);
  if (f_.result.has_residual) {
    const Expr at = r_first_ + row * r_row_ + column * r_column_;
    sum = sum + beta_ * result_->residual(min(at, r_elements_ - 1), 1);
  }
  (*c_)[c_first_ + row * c_row_ + column] = result_->shape(sum);
}

std::vector<KernelLaunch> product_launches(const GemmForm& form, std::span<const Dims> shapes, const ProductB& b,
                                           int64_t rows, int64_t columns) {
  constexpr int kLast = kGemmBatchAxes - 1, kNext = kLast - 1;  // the axes that one launch covers
  const MatrixView a = MatrixView::dense(shapes[static_cast<size_t>(form.a)]);
  const MatrixView c = MatrixView::dense(shapes[static_cast<size_t>(form.c)]);
  const bool adds = form.result.has_residual;
  const MatrixView residual = adds ? MatrixView::dense(shapes[static_cast<size_t>(form.residual)]) : MatrixView{};
  const auto elements_of = [](const MatrixView& view) {
    int64_t count = 1;
    for (const int64_t d : view.dims) count *= d;
    return count;
  };
  GemmStrides g;
  const GemmShape s = form.geometry.bind(a, b.view, c, adds ? &residual : nullptr, g);
  int64_t outer = 1;
  for (int axis = 0; axis < kNext; ++axis) outer *= s.batch[axis];
  std::vector<KernelLaunch> out;
  for (int64_t i = 0; i < outer; ++i) {
    int64_t a_base = 0, b_base = 0, c_base = 0, r_base = 0, rest = i;
    for (int axis = kNext - 1; axis >= 0; --axis) {
      const int64_t at = rest % s.batch[axis];
      rest /= s.batch[axis];
      a_base += at * g.a_batch[axis];
      b_base += at * g.b_batch[axis];
      c_base += at * g.c_batch[axis];
      r_base += at * g.residual_batch[axis];
    }
    KernelLaunch launch;
    std::vector<LaunchArgument>& all = launch.arguments;
    all = {s.m, s.n, s.k};
    all.insert(all.end(), b.sizes.begin(), b.sizes.end());
    all.insert(all.end(), {s.batch[kNext], s.batch[kLast], ceil_div(s.m, rows), ceil_div(s.n, columns), elements_of(a),
                           elements_of(c), g.a_row});
    if (form.geometry.transpose_a) all.emplace_back(g.a_column);
    all.insert(all.end(),
               {g.c_row, a_base, g.a_batch[kNext], g.a_batch[kLast], b_base, g.b_batch[kNext], g.b_batch[kLast], c_base,
                g.c_batch[kNext], g.c_batch[kLast], Operand{form.a}, b.memory, Operand{form.c}});
    if (adds) {
      all.insert(all.end(), {elements_of(residual), g.residual_row, g.residual_column, r_base, g.residual_batch[kNext],
                             g.residual_batch[kLast], static_cast<double>(form.geometry.beta)});
    }
    append_result_arguments(form.result, Packed{form.packs_b ? 1 : 0}, Operand{form.residual}, all);
    out.push_back(std::move(launch));
  }
  return out;
}

}  // namespace neo::gpu
