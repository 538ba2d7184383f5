#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "conv_reference.h"
#include "host_tiers.h"
#include "routines/cpu/gemm/gemm.h"

namespace neo::testing {
namespace {

const PackKernels& pack_kernels_of(const std::string& name) {
  for (const auto& tier : NEO_HOST_TIERS(pack_kernels)) {
    if (name == tier.name) return *tier.table;
  }
  return scalar::pack_kernels();
}

class Gemm : public ::testing::TestWithParam<HostTier<TileKernels>> {};

// A matrix inside poison, either way round, possibly with gaps; data is [batch][...].
struct Matrix {
  int64_t rows, columns, row, column, batch_stride;
  std::vector<float> data;

  Matrix(Random& random, int64_t batches, int64_t rows, int64_t columns, bool may_transpose, bool may_scatter)
      : rows(rows), columns(columns) {
    const bool transposed = may_transpose && random.chance(0.4);
    const int64_t inner = may_scatter && random.chance(0.2) ? 2 : 1;
    const int64_t gap = random.chance(0.4) ? random.range(1, 20) : 0;
    row = transposed ? inner : columns * inner + gap;
    column = transposed ? rows * inner + gap : inner;
    batch_stride = (transposed ? columns * column : rows * row) + random.range(0, 5);
    data.assign(std::max<int64_t>(1, batches * batch_stride), NAN);
    for (int64_t b = 0; b < batches; ++b) {
      for (int64_t i = 0; i < rows; ++i) {
        const std::vector<float> values = random.floats(columns);
        for (int64_t j = 0; j < columns; ++j) at(b, i, j) = values[j];
      }
    }
    used.assign(data.size(), false);
  }
  float& at(int64_t b, int64_t i, int64_t j) { return data[b * batch_stride + i * row + j * column]; }
  std::vector<bool> used;
};

void check_gemm(const TileKernels& kernels, const PackKernels& pack, Random& random, const GemmShape& shape,
                const GemmSchedule& schedule) {
  std::ostringstream where;
  where << "gemm m" << shape.m << " n" << shape.n << " k" << shape.k << " batch " << shape.batch[4] << "x"
        << shape.batch[5] << " vectors " << schedule.vectors << " rows " << schedule.rows << " packed "
        << schedule.packed_b;
  SCOPED_TRACE(where.str());
  const GemmPlan plan = plan_gemm(shape, schedule, kernels);
  const int64_t outer = shape.batch[4], inner = shape.batch[5];
  const bool a_shared = random.chance(0.3), b_shared = schedule.packed_b || random.chance(0.3);
  Matrix a(random, a_shared ? 1 : outer * inner, shape.m, shape.k, true, true);
  // B is one per inner batch, or one for all.
  Matrix b(random, b_shared ? 1 : inner, shape.k, shape.n, true, true);
  Matrix c(random, outer * inner, shape.m, shape.n, false, false);
  Matrix residual(random, 1, shape.m, shape.n, true, true);
  std::fill(c.data.begin(), c.data.end(), NAN);

  GemmArgs args;
  args.a = a.data.data();
  args.a_row = a.row;
  args.a_column = a.column;
  if (!a_shared) args.a_batch[4] = inner * a.batch_stride, args.a_batch[5] = a.batch_stride;
  args.alpha = random.pick<float>({1.0f, 0.125f});
  std::vector<float> packed(gemm_packed_size(plan));
  if (schedule.packed_b) {
    pack_gemm_b(plan, pack, b.data.data(), b.row, b.column, args.alpha, packed.data());
    args.b = packed.data();
  } else {
    args.b = b.data.data();
    args.b_row = b.row;
    args.b_column = b.column;
    if (!b_shared) args.b_batch[5] = b.batch_stride;
  }
  std::vector<float> column_bias(plan.vectors * plan.lanes), row_bias = random.floats(shape.m);
  const std::vector<float> bias = random.floats(shape.n);
  std::copy(bias.begin(), bias.end(), column_bias.begin());
  if (random.chance(0.5)) args.column_bias = column_bias.data();
  if (random.chance(0.3)) args.row_bias = row_bias.data();
  if (random.chance(0.4)) {
    args.residual = residual.data.data();
    args.residual_row = residual.row;
    args.residual_column = residual.column;
    args.beta = random.pick<float>({1.0f, 1.0f, -0.5f});
  }
  args.c = c.data.data();
  args.c_row = c.row;
  args.c_batch[4] = inner * c.batch_stride;
  args.c_batch[5] = c.batch_stride;
  args.lo = random.pick<float>({-INFINITY, 0.0f});
  args.hi = random.pick<float>({INFINITY, 1.0f});
  std::vector<float> workspace(2 * plan.workspace_size, NAN);
  run_as_team(random, plan.tasks, [&](int64_t begin, int64_t end, int member) {
    run_gemm(plan, kernels, pack, args, begin, end, workspace.data() + member * plan.workspace_size);
  });

  for (int64_t batch = 0; batch < outer * inner; ++batch) {
    for (int64_t i = 0; i < shape.m; ++i) {
      for (int64_t j = 0; j < shape.n; ++j) {
        double sum = 0.0, magnitude = 0.0;
        const auto add = [&](double term) { sum += term, magnitude += std::fabs(term); };
        if (args.column_bias) add(bias[j]);
        if (args.row_bias) add(row_bias[i]);
        if (args.residual) add(double(args.beta) * residual.at(0, i, j));
        for (int64_t k = 0; k < shape.k; ++k) {
          add(double(args.alpha) * a.at(a_shared ? 0 : batch, i, k) * b.at(b_shared ? 0 : batch % inner, k, j));
        }
        sum = std::clamp<double>(sum, args.lo, args.hi);
        expect_near(c.at(batch, i, j), sum, magnitude, where.str());
        if (::testing::Test::HasFatalFailure()) return;
        c.used[batch * c.batch_stride + i * c.row + j] = true;
      }
    }
  }
  for (size_t i = 0; i < c.data.size(); ++i) {
    ASSERT_TRUE(c.used[i] || std::isnan(c.data[i])) << "written outside C at " << i;
  }
}

TEST_P(Gemm, AgreesWithPlainLoopsOnOddShapes) {
  const TileKernels& kernels = *GetParam().table;
  const PackKernels& pack = pack_kernels_of(GetParam().name);
  Random random(21);
  for (int i = 0; i < 600; ++i) {
    GemmShape shape;
    shape.m = random.pick<int64_t>({0, 1, 1, 2, 7, random.range(1, 40), random.range(1, 150)});
    shape.n = random.pick<int64_t>({0, 1, 5, 16, 64, random.range(1, 70), random.range(1, 200)});
    shape.k = random.pick<int64_t>({0, 1, 3, 16, random.range(1, 80), random.range(200, 600)});
    if (random.chance(0.3)) shape.batch[4] = random.range(0, 3), shape.batch[5] = random.range(1, 3);
    GemmSchedule schedule;
    schedule.vectors = random.range(1, 4);
    schedule.rows = random.chance(0.6) ? 0 : random.range(1, 14);
    schedule.packed_b = random.chance(0.5);
    check_gemm(kernels, pack, random, shape, schedule);
    if (HasFatalFailure()) return;
  }
}

TEST_P(Gemm, GivesTheSameBitsForEveryPartOfATeam) {
  const TileKernels& kernels = *GetParam().table;
  const PackKernels& pack = pack_kernels_of(GetParam().name);
  Random random(22);
  for (const bool packed_b : {true, false}) {
    GemmShape shape;
    shape.m = 150;
    shape.n = 190;
    shape.k = 500;
    GemmSchedule schedule;
    schedule.packed_b = packed_b;
    const GemmPlan plan = plan_gemm(shape, schedule, kernels);
    ASSERT_GT(plan.tasks, 2);
    const std::vector<float> a = random.floats(shape.m * shape.k), b = random.floats(shape.k * shape.n);
    std::vector<float> packed(gemm_packed_size(plan)), workspace(2 * plan.workspace_size);
    std::vector<float> whole(shape.m * shape.n), pieces(whole.size());
    pack_gemm_b(plan, pack, b.data(), shape.n, 1, 1.0f, packed.data());
    GemmArgs args;
    args.a = a.data();
    args.a_row = shape.k;
    args.b = packed_b ? packed.data() : b.data();
    args.b_row = shape.n;
    args.c_row = shape.n;
    args.lo = -INFINITY;
    args.hi = INFINITY;
    args.c = whole.data();
    run_gemm(plan, kernels, pack, args, 0, plan.tasks, workspace.data());
    args.c = pieces.data();
    run_as_team(random, plan.tasks, [&](int64_t begin, int64_t end, int member) {
      run_gemm(plan, kernels, pack, args, begin, end, workspace.data() + member * plan.workspace_size);
    });
    EXPECT_EQ(whole, pieces);
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, Gemm, ::testing::ValuesIn(NEO_HOST_TIERS(tile_kernels)),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace neo::testing
