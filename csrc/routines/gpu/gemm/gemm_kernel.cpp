#include "base/check.h"
#include "base/function_ref.h"
#include "routines/gpu/gemm/gemm.h"
#include "routines/gpu/remember.h"

namespace neo::gpu {
namespace {

using kernel::Array;
using kernel::Builder;
using kernel::Expr;
using kernel::kFloat;
using kernel::kInt;

constexpr int64_t kMaxGemmElements = kernel::kMaxBufferElements;

std::string kernel_name(const GemmForm& f, const GemmSchedule& s) {
  return str("gemm_", f.result.tag(), f.geometry.transpose_a ? "_at" : "_an", "_l", s.lanes, "v", s.vectors, "r",
             s.rows, "i", s.inner, "o", s.order, "_t", s.threads_row, "x", s.threads_column, "x", s.split);
}

class GemmKernel : ProductKernel {
 public:
  GemmKernel(const GemmForm& form, const GemmSchedule& schedule)
      : ProductKernel(form, kernel_name(form, schedule)), s_(schedule) {}

  kernel::Kernel run() {
    declare();
    const int blocks = s_.rows * s_.vectors;
    const Array sums = b_.registers("sum", {DType::Float32, s_.lanes}, blocks);
    b_.unroll("i", blocks, [&](Expr i) { sums[i] = 0.0f; });
    // The extents by strides are checked here once; that each access lies inside follows from it.
    const Expr inside = row_ < m_ && panel_ < panels_ &&
                        a_first_ + (m_ - 1) * a_row_ + (k_ - 1) * a_column_ < a_elements_ && b_first_ < matrices_;
    b_.when(inside, [&] { accumulate(sums); });
    if (s_.split > 1) add_parts(sums);
    Expr stores = inside && results_inside();
    if (s_.split > 1) stores = part_ == 0 && stores;
    b_.when(stores, [&] {
      const Expr column = panel_ * s_.panel();
      b_.when(
          column + s_.panel() <= n_ && row_ + s_.rows <= m_, [&] { store_all(sums, true); },
          [&] { store_all(sums, false); });
    });
    return b_.finish();
  }

 private:
  void declare() {
    declare_sizes();
    panels_ = count("panels");
    matrices_ = count("matrices");
    declare_operands(matrices_ * panels_ * k_ * s_.panel(), panels_ * s_.panel(), int64_t{s_.rows} * s_.threads_row,
                     int64_t{s_.panel()} * s_.threads_column);
    declare_groups(s_.order);
    // The threads of a split lie along the first axis, beside nothing else.
    if (s_.split > 1) part_ = b_.local(0, "part", s_.split);
    const auto thread = [&](const Expr& group, int dimension, const char* name, int extent) {
      return extent == 1 || s_.split > 1 ? group : group * extent + b_.local(dimension, name, extent);
    };
    const int row_at = s_.order == 0 ? 0 : 1;
    row_ = opaque("row", thread(group_row_, row_at, "lm", s_.threads_row) * s_.rows);
    panel_ = opaque("panel", thread(group_column_, 1 - row_at, "ln", s_.threads_column));
    find_matrices();
  }

  void accumulate(const Array& sums) {
    const Expr first = b_.let("b_first", (b_first_ * panels_ + panel_) * k_ * s_.panel());
    const auto step = [&](const Expr& at, int count) {
      const bool wide = dense_a() && count > 1;
      const Array left = b_.registers("left", {DType::Float32, wide ? count : 1}, s_.rows * (wide ? 1 : count));
      b_.unroll("r", s_.rows, [&](Expr r) {
        const Expr from = a_first_ + min(row_ + r, m_ - 1) * a_row_;
        if (wide) {
          left[r] = a_->at(from + at, count);
        } else {
          b_.unroll("u", count, [&](Expr u) { left[r * count + u] = (*a_)[from + (at + u) * a_column_]; });
        }
      });
      for (int u = 0; u < count; ++u) {
        const Array right = b_.registers("right", {DType::Float32, s_.lanes}, s_.vectors);
        b_.unroll("v", s_.vectors,
                  [&](Expr v) { right[v] = w_->at(first + (at + u) * s_.panel() + v * s_.lanes, s_.lanes); });
        b_.unroll("r", s_.rows, [&](Expr r) {
          const Expr x = wide ? kernel::lane(Expr(left[r]), u) : Expr(left[r * count + u]);
          b_.unroll("v", s_.vectors,
                    [&](Expr v) { sums[r * s_.vectors + v] = fma(x, right[v], sums[r * s_.vectors + v]); });
        });
      }
    };
    const Expr steps = k_ / (s_.inner * s_.split);  // of the whole group
    b_.loop("step", 0, steps, [&](Expr i) { step((s_.split > 1 ? i * s_.split + part_ : i) * s_.inner, s_.inner); });
    if (s_.inner * s_.split == 1) return;
    const Expr rest = steps * (s_.inner * s_.split);
    b_.loop("rest", rest, k_, [&](Expr at) {
      if (s_.split == 1) return step(at, 1);
      b_.when((at - rest) % s_.split == part_, [&] { step(at, 1); });
    });
  }

  void add_parts(const Array& sums) {
    const int blocks = s_.rows * s_.vectors, size = blocks * s_.lanes;
    const Array parts = b_.shared("parts", DType::Float32, s_.split * size);
    b_.unroll("i", blocks, [&](Expr i) { parts.at(part_ * size + i * s_.lanes, s_.lanes) = sums[i]; });
    b_.barrier();
    b_.when(part_ == 0, [&] {
      b_.loop("p", 1, s_.split, [&](Expr p) {
        b_.unroll("i", blocks, [&](Expr i) { sums[i] = sums[i] + parts.at(p * size + i * s_.lanes, s_.lanes); });
      });
    });
  }

  void store_all(const Array& sums, bool whole) {
    const auto when = [&](const Expr& condition, FunctionRef<void()> body) {
      if (whole) return body();
      b_.when(condition, body);
    };
    const bool vectors = whole && !f_.result.has_residual;
    b_.unroll("r", s_.rows, [&](Expr r) {
      when(row_ + r < m_, [&] {
        b_.unroll("v", s_.vectors, [&](Expr v) {
          const Expr value = sums[r * s_.vectors + v], column = panel_ * s_.panel() + v * s_.lanes;
          if (vectors) {
            c_->at(c_first_ + (row_ + r) * c_row_ + column, s_.lanes) =
                result_->shape(value + result_->bias(column, s_.lanes));
            return;
          }
          for (int lane = 0; lane < s_.lanes; ++lane) {
            when(column + lane < n_, [&] { store(row_ + r, column + lane, kernel::lane(value, lane)); });
          }
        });
      });
    });
  }

  const GemmSchedule& s_;
  Expr panels_, matrices_, row_, panel_, part_;
};

}  // namespace

kernel::Kernel gemm_kernel(const GemmForm& form, const GemmSchedule& schedule) {
  return remember_kernel(kernel_name(form, schedule), [&] { return GemmKernel(form, schedule).run(); });
}

kernel::Kernel gemm_pack_kernel(const GemmForm&, const GemmSchedule& s) {
  Builder b(str("gemm_pack_p", s.panel()));
  const Expr n = b.size("n", 1, 1 << 24), k = b.size("k", 1, 1 << 24), panels = b.size("panels", 1, 1 << 24);
  const Expr matrices = b.size("matrices", 1, 1 << 24);
  const Expr row = b.size("row", 0, kMaxGemmElements), column = b.size("column", 0, kMaxGemmElements);
  const Expr elements = b.size("elements", 1, kMaxGemmElements), rows = b.size("rows", 1, 1 << 24);
  const Expr alpha = b.number("alpha", DType::Float32);
  const Array from = b.input("from", DType::Float32, elements);
  const Array to = b.output("to", DType::Float32, matrices * panels * k * s.panel());
  constexpr int kRows = 16;  // of one thread
  const Expr first = b.let("first", (b.group(0, "gx", rows) & ((1 << 26) - 1)) * kRows);
  const Expr panel = b.group(1, "gy", panels), matrix = b.group(2, "gz", matrices);
  const Array held = b.registers("held", kInt, 1);
  b.loop("r", first, min(first + kRows, k), [&](Expr r) {
    b.loop("c", 0, s.panel(), [&](Expr c) {
      const Array value = b.registers("value", kFloat, 1);
      held[0] = matrix * n * k + r * row + (panel * s.panel() + c) * column;
      const Expr at = b.let("at", held[0]);
      value[0] = 0.0f;
      b.when(panel * s.panel() + c < n && at >= 0 && at < elements, [&] { value[0] = alpha * from[at]; });
      to[((matrix * panels + panel) * k + r) * s.panel() + c] = value[0];
    });
  });
  return b.finish();
}

}  // namespace neo::gpu
