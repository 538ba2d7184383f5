#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "conv_reference.h"
#include "host_tiers.h"
#include "routines/cpu/conv/depthwise/depthwise.h"
#include "routines/cpu/conv/direct/direct_nchw.h"
#include "routines/cpu/conv/direct/direct_nchwc.h"
#include "routines/cpu/conv/pack_bias.h"

namespace neo::testing {
namespace {

struct Clamp {
  float lo, hi;
};
Clamp draw_clamp(Random& random) {
  return random.pick<Clamp>({{-INFINITY, INFINITY}, {0.0f, INFINITY}, {0.0f, 0.5f}, {0.25f, 1.0f}});
}

// Everything that a convolution test draws, and the comparison at its end.
struct Problem {
  ConvShape shape;
  std::vector<float> src, weight, bias, residual;
  Clamp clamp;

  Problem(Random& random, const ConvShape& s) : shape(s), clamp(draw_clamp(random)) {
    src = random.floats(s.n * s.ic * s.ih * s.iw);
    weight = random.floats(s.oc * s.group_ic() * s.taps());
    if (random.chance(0.7)) bias = random.floats(s.oc);
    if (random.chance(0.4)) residual = random.floats(s.n * s.oc * s.oh * s.ow);
  }

  void check(BlockedTensor& dst, const std::string& where) const {
    const ConvShape& s = shape;
    const Reference expected = convolve(s, src, weight, bias, residual, clamp.lo, clamp.hi);
    const int64_t plane = s.oh * s.ow;
    for (int64_t i = 0; i < s.n * s.oc; ++i) {
      for (int64_t p = 0; p < plane; ++p) {
        expect_near(dst.at(i / s.oc, i % s.oc, p), expected.value[i * plane + p], expected.magnitude[i * plane + p],
                    where);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
    dst.check_surroundings();
  }
};

class DirectConv : public ::testing::TestWithParam<HostTier<TileKernels>> {};

void check_direct(const TileKernels& kernels, const ConvShape& s, const DirectSchedule& schedule, Random& random) {
  std::ostringstream where;
  where << describe(s) << " {ic_bn=" << schedule.ic_bn << " oc_bn=" << schedule.oc_bn << " reg_n=" << schedule.reg_n
        << " oc_vectors=" << schedule.oc_vectors << "}";
  SCOPED_TRACE(where.str());
  ASSERT_EQ(reject_direct(s, schedule, kernels.lanes), nullptr);
  const Problem problem(random, s);
  const DirectPlan plan = plan_direct(s, schedule, kernels);
  BlockedTensor src(s.n, s.ic, s.ih * s.iw, schedule.ic_bn, random.chance(0.3));
  BlockedTensor dst(s.n, s.oc, s.oh * s.ow, schedule.oc_bn, random.chance(0.3));
  BlockedTensor residual(s.n, s.oc, s.oh * s.ow, schedule.oc_bn, random.chance(0.3));
  src.fill(problem.src);
  std::vector<float> weight(direct_weight_size(plan)), bias(packed_bias_size(plan));
  pack_direct_weight(plan, problem.weight.data(), weight.data());
  ConvOperands args;
  if (!problem.bias.empty()) {
    pack_bias(plan, problem.bias.data(), bias.data());
    args.bias = bias.data();
  }
  args.src = src.base();
  args.src_batch = src.batch_stride;
  args.src_channel = src.block_stride;
  args.weight = weight.data();
  args.dst = dst.base();
  args.dst_batch = dst.batch_stride;
  args.dst_channel = dst.block_stride;
  if (!problem.residual.empty()) {
    BlockedTensor& from = random.chance(0.5) ? dst : residual;
    from.fill(problem.residual);
    args.residual = from.base();
    args.residual_batch = from.batch_stride;
    args.residual_channel = from.block_stride;
  }
  args.lo = problem.clamp.lo;
  args.hi = problem.clamp.hi;
  run_as_team(random, plan.tasks,
              [&](int64_t begin, int64_t end, int) { run_direct(plan, kernels, args, begin, end); });
  problem.check(dst, where.str());
}

DirectSchedule draw_schedule(Random& random, int64_t lanes) {
  DirectSchedule schedule;
  schedule.ic_bn = random.pick<int64_t>({lanes, 2 * lanes, 16, 8, 4, 3});
  schedule.oc_bn = lanes * random.range(1, 3);
  schedule.reg_n = random.chance(0.5) ? 0 : random.range(1, 14);
  schedule.oc_vectors = random.range(1, 4);
  return schedule;
}

TEST_P(DirectConv, AgreesWithPlainLoopsOnOddShapes) {
  const TileKernels& kernels = *GetParam().table;
  Random random(1);
  for (int i = 0; i < 400; ++i) {
    ConvShape s;
    draw_window(random, s, random.chance(0.2) ? 7 : 3, 20);
    s.n = random.range(1, 2);
    s.ic = random.range(1, 40);
    s.oc = random.range(1, 70);
    check_direct(kernels, s, draw_schedule(random, kernels.lanes), random);
    if (HasFatalFailure()) return;
  }
}

TEST_P(DirectConv, AgreesWithPlainLoopsOnPointwiseShapes) {
  const TileKernels& kernels = *GetParam().table;
  Random random(2);
  for (int i = 0; i < 100; ++i) {
    ConvShape s;
    s.ih = s.oh = random.range(1, 15);
    s.iw = s.ow = random.range(1, 15);
    s.ic = random.range(1, 90);
    s.oc = random.range(1, 150);
    check_direct(kernels, s, draw_schedule(random, kernels.lanes), random);
    if (HasFatalFailure()) return;
  }
}

TEST_P(DirectConv, AgreesWithPlainLoopsOnGroups) {
  const TileKernels& kernels = *GetParam().table;
  const int64_t lanes = kernels.lanes;
  Random random(3);
  for (int i = 0; i < 100; ++i) {
    ConvShape s;
    draw_window(random, s, 3, 10);
    s.groups = random.pick<int64_t>({2, 3, 4});
    s.oc = s.groups * lanes * random.range(1, 3);
    DirectSchedule schedule = draw_schedule(random, lanes);
    schedule.ic_bn = schedule.oc_bn = lanes;
    const int64_t group_ic = random.chance(0.5) ? lanes * random.range(1, 2) : lanes / random.pick<int64_t>({1, 2, 4});
    s.ic = s.groups * group_ic;
    check_direct(kernels, s, schedule, random);
    if (HasFatalFailure()) return;
  }
}

TEST_P(DirectConv, GivesTheSameBitsForEveryPartOfATeam) {
  const TileKernels& kernels = *GetParam().table;
  ConvShape s;
  s.n = 2;
  s.ic = s.oc = 64;
  s.ih = s.iw = s.oh = s.ow = 28;
  s.kh = s.kw = 3;
  s.pad_top = s.pad_left = 1;
  DirectSchedule schedule;
  schedule.ic_bn = schedule.oc_bn = kernels.lanes;
  const DirectPlan plan = plan_direct(s, schedule, kernels);
  ASSERT_GT(plan.tasks, 5);
  Random random(4);
  const std::vector<float> src = random.floats(s.n * s.ic * s.ih * s.iw),
                           weight = random.floats(direct_weight_size(plan));
  std::vector<float> whole(s.n * s.oc * s.oh * s.ow), pieces(whole.size());
  ConvOperands args;
  args.src = src.data();
  args.src_channel = args.dst_channel = s.oh * s.ow * kernels.lanes;
  args.src_batch = args.dst_batch = s.oc * s.oh * s.ow;
  args.weight = weight.data();
  args.lo = -INFINITY;
  args.hi = INFINITY;
  args.dst = whole.data();
  run_direct(plan, kernels, args, 0, plan.tasks);
  args.dst = pieces.data();
  run_as_team(random, plan.tasks,
              [&](int64_t begin, int64_t end, int) { run_direct(plan, kernels, args, begin, end); });
  EXPECT_EQ(whole, pieces);
}

TEST_P(DirectConv, HandsNanAndInfinityOn) {
  const TileKernels& kernels = *GetParam().table;
  ConvShape s;
  s.ic = s.oc = 5;
  s.ih = s.iw = s.oh = s.ow = 9;
  DirectSchedule schedule;
  schedule.ic_bn = schedule.oc_bn = kernels.lanes;
  const DirectPlan plan = plan_direct(s, schedule, kernels);
  BlockedTensor src(1, 5, 81, schedule.ic_bn, false), dst(1, 5, 81, schedule.oc_bn, false);
  std::vector<float> x(5 * 81, 1.0f), weight(25, 1.0f), packed(direct_weight_size(plan));
  x[7] = NAN;
  x[9] = INFINITY;
  src.fill(x);
  pack_direct_weight(plan, weight.data(), packed.data());
  ConvOperands args;
  args.src = src.base();
  args.src_channel = src.block_stride;
  args.dst = dst.base();
  args.dst_channel = dst.block_stride;
  args.weight = packed.data();
  args.lo = 0.0f;
  args.hi = 6.0f;
  run_direct(plan, kernels, args, 0, plan.tasks);
  for (int c = 0; c < 5; ++c) {
    EXPECT_TRUE(std::isnan(dst.at(0, c, 7)));
    EXPECT_EQ(dst.at(0, c, 9), 6.0f);
    EXPECT_EQ(dst.at(0, c, 0), 5.0f);
  }
  dst.check_surroundings();
}

TEST_P(DirectConv, SaysWhyItDeclines) {
  const int64_t lanes = GetParam().table->lanes;
  ConvShape s;
  DirectSchedule schedule;
  schedule.ic_bn = lanes;
  schedule.oc_bn = lanes + 1;
  EXPECT_NE(reject_direct(s, schedule, lanes), nullptr);
  schedule.oc_bn = lanes;
  EXPECT_EQ(reject_direct(s, schedule, lanes), nullptr);
  s.groups = 2;
  s.ic = 2;
  s.oc = 2;
  EXPECT_NE(reject_direct(s, schedule, lanes), nullptr);
  s.groups = 1;
  s.kw = 400;
  EXPECT_NE(reject_direct(s, schedule, lanes), nullptr);
}

TEST_P(DirectConv, DirectNchwAgreesWithPlainLoops) {
  const TileKernels& kernels = *GetParam().table;
  const std::string name = GetParam().name;
  const RowKernels* rows = nullptr;
  for (const auto& tier : NEO_HOST_TIERS(row_kernels)) {
    if (name == tier.name) rows = tier.table;
  }
  ASSERT_NE(rows, nullptr);
  Random random(5);
  for (int i = 0; i < 300; ++i) {
    ConvShape s;
    draw_window(random, s, random.chance(0.3) ? 7 : 4, 40);
    s.stride_w = random.chance(0.2) ? 4 : s.stride_w;
    s.ow = std::max<int64_t>(1, (s.ow - 1) / s.stride_w + 1);
    s.n = random.range(1, 2);
    s.ic = random.range(1, 4);
    s.oc = random.range(1, 70);
    DirectNchwSchedule schedule;
    schedule.oc_bn = kernels.lanes * random.range(1, 2);
    schedule.oc_vectors = random.range(1, 4);
    schedule.reg_n = random.chance(0.7) ? 0 : random.range(1, 14);
    SCOPED_TRACE(describe(s));
    ASSERT_EQ(reject_direct_nchw(s, schedule, kernels.lanes), nullptr);
    const Problem problem(random, s);
    const DirectNchwPlan plan = plan_direct_nchw(s, schedule, kernels);
    BlockedTensor dst(s.n, s.oc, s.oh * s.ow, schedule.oc_bn, random.chance(0.3));
    std::vector<float> weight(direct_nchw_weight_size(plan)), bias(plan.vectors * plan.lanes);
    std::vector<float> workspace(2 * plan.workspace_size, NAN);
    pack_direct_nchw_weight(plan, problem.weight.data(), weight.data());
    std::copy(problem.bias.begin(), problem.bias.end(), bias.begin());
    ConvOperands args;
    args.src = problem.src.data();
    args.src_batch = s.ic * s.ih * s.iw;
    args.src_channel = s.ih * s.iw;
    args.weight = weight.data();
    if (!problem.bias.empty()) args.bias = bias.data();
    if (!problem.residual.empty()) {
      dst.fill(problem.residual);
      args.residual = dst.base();
      args.residual_batch = dst.batch_stride;
      args.residual_channel = dst.block_stride;
    }
    args.dst = dst.base();
    args.dst_batch = dst.batch_stride;
    args.dst_channel = dst.block_stride;
    args.lo = problem.clamp.lo;
    args.hi = problem.clamp.hi;
    run_as_team(random, plan.tasks, [&](int64_t begin, int64_t end, int member) {
      run_direct_nchw(plan, kernels, *rows, args, begin, end, workspace.data() + member * plan.workspace_size);
    });
    problem.check(dst, describe(s));
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, DirectConv, ::testing::ValuesIn(NEO_HOST_TIERS(tile_kernels)),
                         [](const auto& info) { return std::string(info.param.name); });

class DepthwiseConv : public ::testing::TestWithParam<HostTier<DepthwiseKernels>> {};

TEST_P(DepthwiseConv, AgreesWithPlainLoops) {
  const DepthwiseKernels& kernels = *GetParam().table;
  Random random(6);
  for (int i = 0; i < 300; ++i) {
    ConvShape s;
    draw_window(random, s, random.chance(0.3) ? 7 : 3, 40);
    s.n = random.range(1, 2);
    s.groups = s.ic = s.oc = random.range(1, 40);
    const int64_t block = kernels.lanes;
    SCOPED_TRACE(describe(s));
    ASSERT_EQ(reject_depthwise(s), nullptr);
    const Problem problem(random, s);
    const DepthwisePlan plan = plan_depthwise(s, block);
    BlockedTensor src(s.n, s.ic, s.ih * s.iw, block, random.chance(0.3));
    BlockedTensor dst(s.n, s.oc, s.oh * s.ow, block, random.chance(0.3));
    src.fill(problem.src);
    std::vector<float> weight(depthwise_weight_size(plan)), bias(dst.blocks * block);
    pack_depthwise_weight(plan, problem.weight.data(), weight.data());
    std::copy(problem.bias.begin(), problem.bias.end(), bias.begin());
    ConvOperands args;
    args.src = src.base();
    args.src_batch = src.batch_stride;
    args.src_channel = src.block_stride;
    args.weight = weight.data();
    if (!problem.bias.empty()) args.bias = bias.data();
    if (!problem.residual.empty()) {
      dst.fill(problem.residual);
      args.residual = dst.base();
      args.residual_batch = dst.batch_stride;
      args.residual_channel = dst.block_stride;
    }
    args.dst = dst.base();
    args.dst_batch = dst.batch_stride;
    args.dst_channel = dst.block_stride;
    args.lo = problem.clamp.lo;
    args.hi = problem.clamp.hi;
    run_as_team(random, plan.tasks, [&](int64_t begin, int64_t end, int) { kernels.run(plan, args, begin, end); });
    problem.check(dst, describe(s));
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, DepthwiseConv, ::testing::ValuesIn(NEO_HOST_TIERS(depthwise_kernels)),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace neo::testing
