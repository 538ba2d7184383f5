#include "routines/gpu/gemm/gemm.h"

#include <algorithm>

#include "base/check.h"
#include "routines/cpu/gemm/split.h"
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
constexpr Parameter<GemmSchedule> kParameters[] = {
    {"lanes", &GemmSchedule::lanes},       {"vectors", &GemmSchedule::vectors}, {"rows", &GemmSchedule::rows},
    {"inner", &GemmSchedule::inner},       {"order", &GemmSchedule::order},     {"tm", &GemmSchedule::threads_row},
    {"tn", &GemmSchedule::threads_column}, {"split", &GemmSchedule::split}};

}  // namespace

GemmSchedule GemmSchedule::of(const Schedule& schedule) {
  return read_schedule(kParameters, schedule);
}

GemmSchedule GemmSchedule::of(std::span<const int64_t> values) {
  return read_point(kParameters, values);
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

int64_t packed_columns(const GemmSchedule& schedule, int64_t n) {
  return ceil_div(n, static_cast<int64_t>(schedule.panel())) * schedule.panel();
}

int64_t packed_b_size(const GemmForm& form, const GemmSchedule& schedule, const Dims& b) {
  const BMatrix m = b_matrix(form.geometry, MatrixView::dense(b));
  return matrices_of(b) * m.k * packed_columns(schedule, m.n);
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

void pack_columns(const GemmSchedule& schedule, int64_t n, float scale, std::span<const float> from, float* to) {
  for (int64_t i = 0; i < packed_columns(schedule, n); ++i) {
    const auto at = static_cast<size_t>(from.size() == 1 ? 0 : i);
    to[i] = i < n ? scale * from[at] : 0.0f;
  }
}

GemmProgram::GemmProgram(GemmForm form, const GemmSchedule& schedule) : form_(std::move(form)), schedule_(schedule) {
  NEO_ASSERT(reject_gemm_schedule(schedule_) == nullptr, reject_gemm_schedule(schedule_));
  kernels_.push_back(gemm_kernel(form_, schedule_));
  if (!form_.packs_b) kernels_.push_back(gemm_pack_kernel(form_, schedule_));
}

Launches GemmProgram::launches(std::span<const Dims> shapes) const {
  const Dims& a = shapes[static_cast<size_t>(form_.a)];
  const Dims& c = shapes[static_cast<size_t>(form_.c)];
  const Dims& b = form_.packs_b ? form_.b_dims : shapes[static_cast<size_t>(form_.b)];
  const bool adds = form_.result.has_residual;
  GemmArgs g;
  const MatrixView residual = adds ? MatrixView::dense(shapes[static_cast<size_t>(form_.residual)]) : MatrixView{};
  const GemmShape s = form_.geometry.bind(MatrixView::dense(a), packed_view(form_.geometry, b), MatrixView::dense(c),
                                          adds ? &residual : nullptr, g);
  Launches out;
  if (elements_of(c) == 0) return out;
  const int64_t panels = ceil_div(s.n, static_cast<int64_t>(schedule_.panel())), matrices = matrices_of(b);
  LaunchArgument packed = Packed{0};
  if (!form_.packs_b) {
    const BMatrix m = b_matrix(form_.geometry, MatrixView::dense(b));
    out.temporaries.push_back(packed_b_size(form_, schedule_, b) * 4);
    packed = Temporary{0};
    KernelLaunch pack{1, {m.n, m.k, panels, matrices, m.row, m.column, elements_of(b), ceil_div(m.k, kPackedRows)}};
    pack.arguments.insert(pack.arguments.end(),
                          {static_cast<double>(form_.geometry.alpha), Operand{form_.b}, Temporary{0}});
    out.launches.push_back(std::move(pack));
  }
  const int last = kGemmBatchAxes - 1, next = last - 1;
  int64_t outer = 1;
  for (int axis = 0; axis < next; ++axis) outer *= s.batch[axis];
  for (int64_t i = 0; i < outer; ++i) {
    int64_t a_base = 0, b_base = 0, c_base = 0, r_base = 0, rest = i;
    for (int axis = next - 1; axis >= 0; --axis) {
      const int64_t at = rest % s.batch[axis];
      rest /= s.batch[axis];
      a_base += at * g.a_batch[axis];
      b_base += at * g.b_batch[axis];
      c_base += at * g.c_batch[axis];
      r_base += at * g.residual_batch[axis];
    }
    KernelLaunch launch;
    std::vector<LaunchArgument>& all = launch.arguments;
    all = {s.m,
           s.n,
           s.k,
           panels,
           matrices,
           s.batch[next],
           s.batch[last],
           ceil_div(s.m, static_cast<int64_t>(schedule_.rows) * schedule_.threads_row),
           ceil_div(panels, static_cast<int64_t>(schedule_.threads_column)),
           elements_of(a),
           elements_of(c),
           g.a_row};
    if (form_.geometry.transpose_a) all.emplace_back(g.a_column);
    all.insert(all.end(), {g.c_row, a_base, g.a_batch[next], g.a_batch[last], b_base, g.b_batch[next], g.b_batch[last],
                           c_base, g.c_batch[next], g.c_batch[last], Operand{form_.a}, packed, Operand{form_.c}});
    if (adds) {
      all.insert(all.end(), {elements_of(residual.dims), g.residual_row, g.residual_column, r_base,
                             g.residual_batch[next], g.residual_batch[last], static_cast<double>(form_.geometry.beta)});
    }
    append_result_arguments(form_.result, Packed{form_.packs_b ? 1 : 0}, Operand{form_.residual}, all);
    out.launches.push_back(std::move(launch));
  }
  return out;
}

}  // namespace neo::gpu
