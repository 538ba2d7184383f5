#include "routines/gpu/gemm/gemm.h"

#include <algorithm>

#include "base/check.h"
#include "base/int_math.h"
#include "routines/gpu/schedule.h"

namespace neo::gpu {
namespace {

constexpr int64_t kPackedRows = 16;  // by one thread of the packing kernel

int64_t elements_of(const Dims& dims) {
  int64_t count = 1;
  for (const int64_t d : dims) count *= d;
  return count;
}

// B as packed matrices lie: a step along a batch axis is so many matrices.
MatrixView packed_view(const GemmGeometry& geometry, const Dims& b) {
  MatrixView view = MatrixView::dense(b);
  const int64_t size = std::max<int64_t>(1, b_matrix(geometry, view).k * b_matrix(geometry, view).n);
  for (size_t i = 0; i + 2 < b.size(); ++i) view.strides[i] /= size;
  return view;
}

int64_t matrices_of(const Dims& b) {
  int64_t count = 1;
  for (size_t i = 0; i + 2 < b.size(); ++i) count *= b[i];
  return count;
}

// As in its space.
constexpr Parameter<GemmSchedule> kGemmParameters[] = {
    {"lanes", &GemmSchedule::lanes},       {"vectors", &GemmSchedule::vectors}, {"rows", &GemmSchedule::rows},
    {"inner", &GemmSchedule::inner},       {"order", &GemmSchedule::order},     {"tm", &GemmSchedule::threads_row},
    {"tn", &GemmSchedule::threads_column}, {"split", &GemmSchedule::split}};

}  // namespace

GemmSchedule GemmSchedule::of(const Schedule& schedule) {
  return read_schedule(kGemmParameters, schedule);
}

GemmSchedule GemmSchedule::of(std::span<const int64_t> values) {
  return read_point(kGemmParameters, values);
}

const char* reject_gemm_schedule(const GemmSchedule& s) {
  if (s.rows * s.vectors * s.lanes > 1024) return "too many registers";
  if (s.rows * s.vectors * s.inner > 512) return "too much is written out";
  if (s.split > 1 && s.threads_row * s.threads_column > 1) return "the threads of a split share one block";
  if (s.split * s.rows * s.vectors * s.lanes > 4096) return "too much local memory";
  if (s.threads_row * s.threads_column > 256) return "too many threads";
  return nullptr;
}

Space gemm_space(const GemmForm& form, int64_t m, int64_t n, int64_t k) {
  std::vector<int64_t> rows;
  for (const int64_t r : {1, 2, 3, 4, 5, 6, 7, 8, 12, 14}) {
    if (r <= std::max<int64_t>(m, 1)) rows.push_back(r);
  }
  const auto allows = [&](std::span<const int64_t> v) {
    const GemmSchedule s = GemmSchedule::of(v);
    if (reject_gemm_schedule(s) != nullptr || s.rows * s.panel() > 512) return false;
    if (s.inner > 1 && form.geometry.transpose_a && s.inner > 4) return false;
    if (s.vectors > 1 && (s.vectors / 2) * s.lanes >= n) return false;
    if (s.split > 1 && (m > 16 || s.split * s.inner > k)) return false;
    return (s.threads_row == 1 || (s.threads_row / 2) * s.rows < m) &&
           (s.threads_column == 1 || (s.threads_column / 2) * s.panel() < n);
  };
  return Space({{"lanes", {4, 8, 16}},
                {"vectors", {1, 2, 3, 4}},
                {"rows", rows},
                {"inner", {1, 2, 4, 8}},
                {"order", {0, 1}},
                {"tm", {1, 2, 4, 8, 16}},
                {"tn", {1, 2, 4, 8, 16}},
                {"split", {1, 8, 32}}},
               allows);
}

int64_t packed_b_size(const GemmForm& form, const GemmSchedule& schedule, const Dims& b) {
  const BMatrix m = b_matrix(form.geometry, MatrixView::dense(b));
  return matrices_of(b) * m.k * padded_columns(m.n, schedule.panel());
}

void pack_b(const GemmForm& form, const GemmSchedule& schedule, const Dims& b, const float* from, float* to) {
  const BMatrix m = b_matrix(form.geometry, MatrixView::dense(b));
  const int64_t panels = ceil_div(m.n, static_cast<int64_t>(schedule.panel()));
  for (int64_t matrix = 0; matrix < matrices_of(b); ++matrix, from += m.k * m.n) {
    for (int64_t row = 0; row < panels * m.k; ++row) {
      const int64_t panel = row / m.k, k = row % m.k;
      for (int64_t lane = 0; lane < schedule.panel(); ++lane) {
        const int64_t column = panel * schedule.panel() + lane;
        *to++ = column < m.n ? form.geometry.alpha * from[k * m.row + column * m.column] : 0.0f;
      }
    }
  }
}

GemmProgram::GemmProgram(GemmForm form, const GemmSchedule& schedule) : form_(std::move(form)), schedule_(schedule) {
  NEO_ASSERT(reject_gemm_schedule(schedule_) == nullptr, reject_gemm_schedule(schedule_));
  const DType storage = form_.result.storage;
  kernels_.push_back(kernel::with_storage(gemm_kernel(form_, schedule_), storage));
  if (!form_.packs_b) kernels_.push_back(kernel::with_storage(gemm_pack_kernel(form_, schedule_), storage));
}

Launches GemmProgram::launches(std::span<const Dims> shapes) const {
  const Dims& b = form_.packs_b ? form_.b_dims : shapes[static_cast<size_t>(form_.b)];
  Launches out;
  if (elements_of(shapes[static_cast<size_t>(form_.c)]) == 0) return out;
  const BMatrix m = b_matrix(form_.geometry, MatrixView::dense(b));
  const int64_t panels = ceil_div(m.n, static_cast<int64_t>(schedule_.panel())), matrices = matrices_of(b);
  ProductB product{packed_view(form_.geometry, b), {panels, matrices}, Packed{0}};
  if (!form_.packs_b) {
    out.temporaries.push_back(packed_b_size(form_, schedule_, b) * item_bytes(form_.result.storage));
    product.memory = Temporary{0};
    KernelLaunch pack{1, {m.n, m.k, panels, matrices, m.row, m.column, elements_of(b), ceil_div(m.k, kPackedRows)}};
    pack.arguments.insert(pack.arguments.end(),
                          {static_cast<double>(form_.geometry.alpha), Operand{form_.b}, Temporary{0}});
    out.launches.push_back(std::move(pack));
  }
  for (KernelLaunch& launch : product_launches(form_, shapes, product, int64_t{schedule_.rows} * schedule_.threads_row,
                                               int64_t{schedule_.panel()} * schedule_.threads_column)) {
    out.launches.push_back(std::move(launch));
  }
  return out;
}

}  // namespace neo::gpu
