#include <gtest/gtest.h>

#include "routines/gpu/conv/conv_estimate.h"
#include "routines/gpu/gemm/gemm.h"

namespace neo::gpu {
namespace {

DirectConv typical(int block) {
  DirectConv conv;
  ConvGeometry& g = conv.geometry;
  g.axes = 2;
  g.ic = g.oc = 64;
  g.kernel[1] = g.kernel[2] = 3;
  g.window.strides = g.window.dilations = {1, 1};
  g.window.pads = {1, 1, 1, 1};
  g.output_padding = {0, 0};
  conv.in_block = conv.out_block = block;
  return conv;
}

const Dims kPlane = {1, 64, 56, 56};

TEST(GpuSchedules, ATypicalConvolutionHasMoreThanTenThousand) {
  int64_t all = tiled_conv_space({typical(1).geometry, {}, {}, false}, kPlane).size();
  for (const int block : {1, 4, 8, 16}) all += direct_conv_space(typical(block), kPlane).size();
  EXPECT_GE(direct_conv_space(typical(16), kPlane).size(), 10000);
  EXPECT_GE(all, 40000);
}

TEST(GpuSchedules, EveryModelHasOneThatItCanRun) {
  for (const DeviceModel& model : device_models()) {
    const auto direct = best_direct(typical(4), kPlane, kPlane, model);
    ASSERT_TRUE(direct) << model.name;
    const DirectConvSchedule schedule = DirectConvSchedule::of(*direct);
    EXPECT_EQ(reject_direct_schedule(typical(4), schedule), nullptr) << model.name;
    const Profile profile = direct_profile(typical(4), schedule, kPlane, kPlane);
    EXPECT_LE(profile.registers, 2 * model.registers) << model.name;
    EXPECT_LE(profile.threads, model.group_threads) << model.name;
    const TiledConv tiled{typical(1).geometry, {}, {}, false};
    const auto with_local = best_tiled(tiled, kPlane, kPlane, model);
    ASSERT_TRUE(with_local) << model.name;
    EXPECT_LE(tiled_profile(tiled, TiledConvSchedule::of(*with_local), kPlane, kPlane).local_bytes, model.local_bytes);
    // No estimate beats the arithmetic that the device has.
    const Estimate e = estimate(profile, model);
    EXPECT_FALSE(e.reject);
    EXPECT_GE(e.time_us * model.gflops * 1e3, 2.0 * 64 * 64 * 9 * 56 * 56) << model.name;
  }
}

TEST(GpuSchedules, ProfilesOfKernelsAgreeWithThoseOfSchedules) {
  DirectConvSchedule schedule;
  schedule.lanes = 4;
  schedule.unroll = 1;
  const DirectConv conv = typical(4);
  const Profile expected = direct_profile(conv, schedule, kPlane, kPlane);
  const DirectConvProgram program(conv, schedule);
  const std::vector<Dims> shapes = {kPlane, kPlane};
  const KernelLaunch launch = program.launches(shapes).launches.front();
  const kernel::Kernel& k = program.kernels().front();
  std::map<std::string, int64_t, std::less<>> sizes;
  for (size_t i = 0; i < k.parameters.size(); ++i) {
    const auto* scalar = std::get_if<kernel::ScalarParameter>(&k.parameters[i]);
    if (scalar != nullptr) sizes[scalar->variable->name] = std::get<int64_t>(launch.arguments[i]);
  }
  const Profile found = profile_of(k, sizes);
  EXPECT_EQ(found.threads, expected.threads);
  EXPECT_DOUBLE_EQ(found.groups, expected.groups);
  EXPECT_NEAR(found.flops / expected.flops, 1, 0.02);
  EXPECT_NEAR(found.loaded_bytes / expected.loaded_bytes, 1, 0.05);
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
