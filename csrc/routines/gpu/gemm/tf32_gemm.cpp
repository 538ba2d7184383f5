#include "routines/gpu/gemm/tf32_gemm.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "routines/gpu/device_model.h"
#include "routines/gpu/remember.h"
#include "routines/gpu/schedule.h"

namespace neo::gpu {
namespace {

using kernel::Array;
using kernel::Expr;

// As in its space.
constexpr Parameter<Tf32GemmSchedule> kTf32GemmParameters[] = {
    {"subgroups", &Tf32GemmSchedule::subgroups}, {"rows", &Tf32GemmSchedule::rows},
    {"columns", &Tf32GemmSchedule::columns},     {"depth", &Tf32GemmSchedule::depth},
    {"unroll", &Tf32GemmSchedule::unroll},       {"order", &Tf32GemmSchedule::order}};

std::string kernel_name(const GemmForm& f, const Tf32GemmSchedule& s) {
  return str("gemm_tf32_", f.result.tag(), f.geometry.transpose_a ? "_at" : "_an", f.geometry.transpose_b ? "bt" : "bn",
             "_s", s.subgroups, "r", s.rows, "c", s.columns, "d", s.depth, "u", s.unroll, "o", s.order);
}

// The tiles of A and of B: what lies beside each other in memory is read by threads beside each other, and lies so in
// local memory.
struct Tiles {
  BlockTile a, b;

  Tiles(const GemmForm& form, const BlockShape& block)
      : a(block, block.all_rows(), !form.geometry.transpose_a),
        b(block, block.all_columns(), form.geometry.transpose_b) {}
  int64_t size() const { return a.size + b.size; }
};

class Tf32GemmKernel : ProductKernel {
 public:
  Tf32GemmKernel(const GemmForm& form, const Tf32GemmSchedule& schedule)
      : ProductKernel(form, kernel_name(form, schedule)),
        s_(schedule),
        block_(schedule.block()),
        tiles_(form, block_) {}

  kernel::Kernel run() {
    declare();
    const Array tile_a = b_.shared("tile_a", DType::Float32, tiles_.a.size);
    const Array tile_b = b_.shared("tile_b", DType::Float32, tiles_.b.size);
    BlockProduct product(b_, block_, lx_, ly_);
    const bool dense_b = !f_.geometry.transpose_b;
    const Lines a{*a_, a_first_, a_elements_, a_row_, a_column_, row_, m_};
    const Lines b{*w_,     b_first_, b_elements_, dense_b ? Expr(1) : b_stride_, dense_b ? b_stride_ : Expr(1),
                  column_, n_};
    b_.loop("step", 0, ceildiv(k_, s_.depth), [&](Expr step) {
      load(product, a, tile_a, tiles_.a, block_.all_rows(), dense_a(), step * s_.depth);
      load(product, b, tile_b, tiles_.b, block_.all_columns(), !dense_b, step * s_.depth);
      b_.barrier();
      product.add(tile_a, tiles_.a, tile_b, tiles_.b);
      b_.barrier();
    });
    b_.when(results_inside(), [&] {
      product.each([&](const Expr& row, const Expr& column, const Expr& sum) {
        b_.when(row_ + row < m_ && column_ + column < n_, [&] { store(row_ + row, column_ + column, alpha_ * sum); });
      });
    });
    return b_.finish();
  }

 private:
  // One of the two, in lines: rows of A, columns of B.
  struct Lines {
    const Array& from;
    Expr first, elements;
    Expr line_stride, depth_stride;
    Expr line, lines;  // the first of the group; of the matrix
  };

  void declare() {
    declare_sizes();
    b_elements_ = elements("b_elements");
    b_stride_ = stride("b_stride");
    alpha_ = b_.number("alpha", DType::Float32);
    declare_operands(b_elements_, n_, block_.all_rows(), block_.all_columns());
    declare_groups(s_.order);
    lx_ = b_.local(0, "lx", kMatrixThreads);
    ly_ = b_.local(1, "ly", s_.subgroups);
    row_ = b_.let("row", first_line(group_row_, block_.all_rows()));
    column_ = b_.let("column", first_line(group_column_, block_.all_columns()));
    find_matrices();
    b_stride_ = known_at_run_time("stride_of_b", b_stride_);
    thread_ = b_.let("thread", ly_ * kMatrixThreads + lx_);
  }

  // A matrix has at most 2^24 lines.
  static Expr first_line(const Expr& group, int lines) { return (group & ((1 << 24) / lines - 1)) * lines; }

  // Elements beyond the matrix are zero.
  void load(const BlockProduct& product, const Lines& operand, const Array& to, const BlockTile& tile, int lines,
            bool along_depth, const Expr& first) {
    const int count = lines * s_.depth;
    b_.unroll("i", count / block_.threads(), [&](Expr i) {
      const Expr at = i * block_.threads() + thread_;
      const Expr place = along_depth ? at / s_.depth : at % lines, d = along_depth ? at % s_.depth : at / lines;
      const Expr line = b_.let("line", operand.line + place), k = b_.let("k_at", first + d);
      const Array value = b_.registers("value", kernel::kFloat, 1);
      value[0] = 0.0f;
      const Expr last = operand.first + (operand.lines - 1) * operand.line_stride + (k_ - 1) * operand.depth_stride;
      b_.when(line < operand.lines && k < k_ && last < operand.elements,
              [&] { value[0] = operand.from[operand.first + line * operand.line_stride + k * operand.depth_stride]; });
      to[d * tile.depth_step + place * tile.line_step] = product.operand(value[0]);
    });
  }

  const Tf32GemmSchedule& s_;
  BlockShape block_;
  Tiles tiles_;
  Expr b_elements_, b_stride_, alpha_, lx_, ly_, thread_, row_, column_;
};

}  // namespace

Tf32GemmSchedule Tf32GemmSchedule::of(const Schedule& schedule) {
  return read_schedule(kTf32GemmParameters, schedule);
}

Tf32GemmSchedule Tf32GemmSchedule::of(std::span<const int64_t> values) {
  return read_point(kTf32GemmParameters, values);
}

const char* reject_tf32_schedule(const GemmForm& form, const Tf32GemmSchedule& s) {
  return reject_block(s.block(), Tiles(form, s.block()).size());
}

Space tf32_gemm_space(const GemmForm& form, const GemmShape& shape) {
  const auto allows = [&](std::span<const int64_t> v) {
    const Tf32GemmSchedule s = Tf32GemmSchedule::of(v);
    if (reject_tf32_schedule(form, s) != nullptr) return false;
    return (s.subgroups == 1 || s.subgroups * s.rows / 2 < shape.m) && (s.rows == 16 || s.rows / 2 < shape.m) &&
           (s.columns == 1 || kMatrixThreads * s.columns / 2 < shape.n) && (s.depth == 8 || s.depth / 2 < shape.k);
  };
  return Space({{"subgroups", {1, 2, 4, 8}},
                {"rows", {16, 32, 64}},
                {"columns", {1, 2, 4}},
                {"depth", {8, 16, 32}},
                {"unroll", {0, 1}},
                {"order", {0, 1}}},
               allows);
}

Profile tf32_gemm_profile(const GemmForm& form, const Tf32GemmSchedule& s, const GemmShape& shape) {
  const auto m = static_cast<double>(shape.m), n = static_cast<double>(shape.n), k = static_cast<double>(shape.k);
  const auto batches = static_cast<double>(shape.batches());
  const BlockShape block = s.block();
  const double passes = parts(k, s.depth);
  Profile p = block_profile(block, passes, Tiles(form, block).size());
  p.groups = batches * parts(m, block.all_rows()) * parts(n, block.all_columns());
  const double loads = passes * s.depth * (block.all_rows() + block.all_columns()) / block.threads();
  p.loads += loads;
  const auto item = static_cast<double>(item_bytes(form.result.storage));
  p.loaded_bytes = item * loads;
  p.other += loads * 6;
  p.registers += 36;  // addresses
  p.unique_bytes = item * batches * (m * (k + n * (form.result.has_residual ? 2 : 1)) + k * n);
  return p;
}

Tf32GemmProgram::Tf32GemmProgram(GemmForm form, const Tf32GemmSchedule& schedule)
    : form_(std::move(form)), schedule_(schedule) {
  const char* why = reject_tf32_schedule(form_, schedule_);
  NEO_ASSERT(why == nullptr, why);
  const kernel::Kernel made =
      remember_kernel(kernel_name(form_, schedule_), [&] { return Tf32GemmKernel(form_, schedule_).run(); });
  kernels_.push_back(kernel::with_storage(made, form_.result.storage));
}

Launches Tf32GemmProgram::launches(std::span<const Dims> shapes) const {
  const MatrixView b = MatrixView::dense(form_.packs_b ? form_.b_dims : shapes[static_cast<size_t>(form_.b)]);
  const BMatrix matrix = b_matrix(form_.geometry, b);
  Launches out;
  const Dims& c = shapes[static_cast<size_t>(form_.c)];
  if (std::find(c.begin(), c.end(), 0) != c.end()) return out;
  const BlockShape block = schedule_.block();
  int64_t elements = 1;
  for (const int64_t d : b.dims) elements *= d;
  const ProductB product{
      b,
      {elements, form_.geometry.transpose_b ? matrix.column : matrix.row, static_cast<double>(form_.geometry.alpha)},
      form_.packs_b ? LaunchArgument(Packed{0}) : LaunchArgument(Operand{form_.b})};
  out.launches = product_launches(form_, shapes, product, block.all_rows(), block.all_columns());
  return out;
}

}  // namespace neo::gpu
