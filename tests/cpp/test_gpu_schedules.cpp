#include <gtest/gtest.h>

#include "gpu_schedule_cases.h"
#include "routines/gpu/conv/conv_estimate.h"
#include "routines/gpu/conv/subgroup_conv.h"
#include "routines/gpu/gemm/gemm.h"
#include "routines/gpu/gemm/tf32_gemm.h"
#include "routines/gpu/search.h"

namespace neo::gpu {
namespace {

const Dims kConvPlane = {1, 64, 56, 56};

TEST(GpuSchedules, ATypicalConvolutionHasMoreThanTenThousand) {
  int64_t all = tiled_conv_space({typical(1).geometry, {}, {}, false}, kConvPlane).size();
  for (const int block : {1, 4, 8, 16}) all += direct_conv_space(typical(block), kConvPlane).size();
  EXPECT_GE(direct_conv_space(typical(16), kConvPlane).size(), 10000);
  EXPECT_GE(all, 40000);
}

TEST(GpuSchedules, EveryModelHasOneThatItCanRun) {
  for (const DeviceModel& model : device_models()) {
    const auto direct = best_direct(typical(4), kConvPlane, kConvPlane, model);
    ASSERT_FALSE(direct.empty()) << model.name;
    const DirectConvSchedule schedule = DirectConvSchedule::of(direct.front());
    EXPECT_EQ(reject_direct_schedule(typical(4), schedule), nullptr) << model.name;
    const Profile profile = direct_profile(typical(4), schedule, kConvPlane, kConvPlane);
    EXPECT_LE(profile.registers, 2 * model.registers) << model.name;
    EXPECT_LE(profile.threads, model.group_threads) << model.name;
    const TiledConv tiled{typical(1).geometry, {}, {}, false};
    const auto with_local = best_tiled(tiled, kConvPlane, kConvPlane, model);
    ASSERT_FALSE(with_local.empty()) << model.name;
    EXPECT_LE(tiled_profile(tiled, TiledConvSchedule::of(with_local.front()), kConvPlane, kConvPlane).local_bytes,
              model.local_bytes);
    // No estimate beats the arithmetic that the device has.
    const Estimate e = estimate(profile, model);
    EXPECT_FALSE(e.reject);
    EXPECT_GE(e.time_us * model.gflops * 1e3, 2.0 * 64 * 64 * 9 * 56 * 56) << model.name;
  }
}

TEST(GpuSchedules, SubgroupsAreChosenWhereTheyReadBlocks) {
  for (const DeviceModel& model : device_models()) {
    for (const int size : {8, 16}) {
      const DirectConv conv = typical(size);
      const auto best = best_subgroup(conv, kConvPlane, kConvPlane, model);
      ASSERT_NE(best.empty(), model.reads_blocks(size)) << model.name;
      if (best.empty()) continue;
      const SubgroupConvSchedule schedule = SubgroupConvSchedule::of(best.front());
      EXPECT_EQ(reject_subgroup_schedule(conv, schedule), nullptr) << model.name;
      const Estimate e = estimate(subgroup_profile(conv, schedule, kConvPlane, kConvPlane), model);
      EXPECT_GE(e.time_us * model.gflops * 1e3, 2.0 * 64 * 64 * 9 * 56 * 56) << model.name;
      const auto direct = best_direct(conv, kConvPlane, kConvPlane, model);
      ASSERT_FALSE(direct.empty()) << model.name;
      const Profile other = direct_profile(conv, DirectConvSchedule::of(direct.front()), kConvPlane, kConvPlane);
      EXPECT_LT(e.time_us, estimate(other, model).time_us) << model.name << " by " << size;
    }
  }
}

TEST(GpuSchedules, MatricesAreChosenWhereThereAreInstructions) {
  const Dims plane = {1, 256, 56, 56};
  ConvGeometry geometry = typical(1).geometry;
  geometry.ic = geometry.oc = 256;
  for (const DeviceModel& model : device_models()) {
    const TiledConv rounded{geometry, {}, {}, true}, exact{geometry, {}, {}, false};
    const auto best = best_tiled(rounded, plane, plane, model);
    ASSERT_NE(best.empty(), model.matrix_gflops > 0) << model.name;
    if (best.empty()) continue;
    const TiledConvSchedule schedule = TiledConvSchedule::of(best.front());
    EXPECT_EQ(reject_tiled_schedule(rounded, schedule), nullptr) << model.name;
    const Estimate e = estimate(tiled_profile(rounded, schedule, plane, plane), model);
    EXPECT_GE(e.time_us * model.matrix_gflops * 1e3, 2.0 * 256 * 256 * 9 * 56 * 56) << model.name;
    const TiledConvSchedule other = TiledConvSchedule::of(best_tiled(exact, plane, plane, model).front());
    EXPECT_LT(e.time_us, estimate(tiled_profile(exact, other, plane, plane), model).time_us) << model.name;
  }
}

// The shape of a product, and the schedule of the least estimate.
GemmShape product_shape(int64_t m, int64_t n, int64_t k) {
  GemmShape shape;
  shape.m = m;
  shape.n = n;
  shape.k = k;
  return shape;
}

std::vector<Schedule> best_tf32(const GemmForm& form, const GemmShape& shape, const DeviceModel& model) {
  return search_by_estimate(tf32_gemm_space(form, shape), model, [&](std::span<const int64_t> values) {
    return tf32_gemm_profile(form, Tf32GemmSchedule::of(values), shape);
  });
}

TEST(GpuSchedules, ProductsByMatricesAreChosenWhereThereAreInstructions) {
  const GemmForm form;
  for (const DeviceModel& model : device_models()) {
    for (const int64_t size : {16, 200, 2048}) {
      const GemmShape shape = product_shape(size, size, size);
      const auto best = best_tf32(form, shape, model);
      ASSERT_NE(best.empty(), model.matrix_gflops > 0) << model.name;
      if (best.empty()) continue;
      const Tf32GemmSchedule schedule = Tf32GemmSchedule::of(best.front());
      EXPECT_EQ(reject_tf32_schedule(form, schedule), nullptr) << model.name;
      const Estimate e = estimate(tf32_gemm_profile(form, schedule, shape), model);
      EXPECT_FALSE(e.reject) << model.name;
      EXPECT_GE(e.time_us * model.matrix_gflops * 1e3, 2.0 * static_cast<double>(size * size * size)) << model.name;
    }
  }
}

void expect_alike(const Profile& found, const Profile& expected) {
  EXPECT_EQ(found.threads, expected.threads);
  EXPECT_DOUBLE_EQ(found.groups, expected.groups);
  EXPECT_NEAR(found.flops, expected.flops, 0.02 * expected.flops);
  EXPECT_NEAR(static_cast<double>(found.registers) / expected.registers, 1, 0.3);
}

TEST(GpuSchedules, ProfilesOfKernelsAgreeWithThoseOfSchedules) {
  DirectConvSchedule schedule;
  schedule.lanes = 4;
  schedule.unroll = 1;
  const DirectConv conv = typical(4);
  const Profile expected = direct_profile(conv, schedule, kConvPlane, kConvPlane);
  const Profile found = found_in(DirectConvProgram(conv, schedule), {kConvPlane, kConvPlane});
  expect_alike(found, expected);
  EXPECT_NEAR(found.loaded_bytes / expected.loaded_bytes, 1, 0.05);
}

TEST(GpuSchedules, ProfilesOfSubgroupsAgreeToo) {
  SubgroupConvSchedule schedule;
  schedule.columns = 7;
  schedule.vectors = 2;
  const DirectConv conv = typical(16);
  const Profile expected = subgroup_profile(conv, schedule, kConvPlane, kConvPlane);
  const Profile found = found_in(SubgroupConvProgram(conv, schedule), {kConvPlane, kConvPlane});
  expect_alike(found, expected);
  EXPECT_EQ(found.subgroup, expected.subgroup);
  EXPECT_NEAR(found.block_bytes / expected.block_bytes, 1, 0.05);
}

TEST(GpuSchedules, ProfilesOfMatricesAgreeToo) {
  const TiledConv conv{typical(1).geometry, {}, {}, true};
  const TiledConvSchedule schedule{32, 2, 2, 32, 16, 0};
  const Profile expected = tiled_profile(conv, schedule, kConvPlane, kConvPlane);
  const Profile found = found_in(TiledConvProgram(conv, schedule), {kConvPlane, kConvPlane});
  EXPECT_EQ(found.threads, expected.threads);
  EXPECT_EQ(found.local_bytes, expected.local_bytes);
  EXPECT_DOUBLE_EQ(found.groups, expected.groups);
  EXPECT_DOUBLE_EQ(found.matrix_flops, expected.matrix_flops);
}

TEST(GpuSchedules, ProfilesOfProductsByMatricesAgreeToo) {
  GemmForm form;
  form.packs_b = false;
  form.b = 1;
  form.c = 2;
  const Tf32GemmSchedule schedule{2, 32, 2, 16, 0, 0};
  const Profile expected = tf32_gemm_profile(form, schedule, product_shape(200, 300, 400));
  const Profile found = found_in(Tf32GemmProgram(form, schedule), {{200, 400}, {400, 300}, {200, 300}});
  EXPECT_EQ(found.threads, expected.threads);
  EXPECT_EQ(found.local_bytes, expected.local_bytes);
  EXPECT_DOUBLE_EQ(found.groups, expected.groups);
  EXPECT_DOUBLE_EQ(found.matrix_flops, expected.matrix_flops);
  EXPECT_DOUBLE_EQ(found.loaded_bytes, expected.loaded_bytes);
  EXPECT_NEAR(static_cast<double>(found.registers) / expected.registers, 1, 0.3);
}

TEST(GpuSchedules, WhatADeviceCannotRunIsRejected) {
  const DeviceModel& mali = *find_device_model("mali_t860");
  Profile p;
  p.flops = 100;
  EXPECT_FALSE(estimate(p, mali).reject);
  p.threads = 512;
  EXPECT_TRUE(estimate(p, mali).reject);
  p.threads = 64;
  p.local_bytes = 64 << 10;
  EXPECT_TRUE(estimate(p, mali).reject);
  p.local_bytes = 0;
  p.registers = 1000;
  EXPECT_TRUE(estimate(p, mali).reject);
  EXPECT_EQ(find_device_model("abacus"), nullptr);
}

}  // namespace
}  // namespace neo::gpu
