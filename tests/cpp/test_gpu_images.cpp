#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/check.h"
#include "gpu_schedule_cases.h"
#include "routines/gpu/conv/conv_estimate.h"
#include "routines/gpu/step.h"
#include "runtime/devices/check_launch.h"

namespace neo::gpu {
namespace {

const Dims kImagePlane = {1, 64, 28, 28};
constexpr int64_t kInputTexels = 64 * 28 * 28 / 4, kWeightTexels = 64 * 64 * 9 / 4;

DirectConv with_images(int64_t texels) {
  DirectConv conv = typical(4);
  conv.image_texels = texels;
  conv.input_texels = kInputTexels;
  return conv;
}

std::set<int> images_of(const DirectConv& conv) {
  std::set<int> found;
  const Space space = direct_conv_space(conv, kImagePlane);
  for (int64_t i = 0; i < space.size(); ++i) found.insert(DirectConvSchedule::of(space.values(i)).image);
  return found;
}

TEST(GpuImages, SpacesHaveWhatFitsTheDevice) {
  static_assert(kWeightTexels < kInputTexels);
  EXPECT_EQ(images_of(with_images(0)), std::set<int>({0}));
  EXPECT_EQ(images_of(with_images(100)), std::set<int>({0}));
  EXPECT_EQ(images_of(with_images(kInputTexels - 1)), std::set<int>({0, 2}));
  EXPECT_EQ(images_of(with_images(kInputTexels)), std::set<int>({0, 1, 2, 3}));
  DirectConv first = with_images(1 << 20);
  first.in_block = 1;
  EXPECT_EQ(images_of(first), std::set<int>({0, 2}));
}

TEST(GpuImages, ASpaceWithoutImagesIsWhatItWas) {
  const Space without = direct_conv_space(with_images(0), kImagePlane),
              with = direct_conv_space(with_images(1 << 20), kImagePlane);
  EXPECT_GT(with.size(), without.size());
  for (int64_t i = 0; i < without.size(); i += 97) {
    const Schedule schedule = without.at(i);
    EXPECT_EQ(schedule.count("image"), 0);
    EXPECT_TRUE(with.find(schedule));
  }
}

TEST(GpuImages, AreChosenByTheEstimate) {
  for (DeviceModel model : device_models()) {
    const auto time_us = [&](const DirectConvSchedule& s) {
      return estimate(direct_profile(with_images(0), s, kImagePlane, kImagePlane), model).time_us;
    };
    const auto best = [&](int64_t texels) {
      const auto found = best_direct(with_images(texels), kImagePlane, kImagePlane, model);
      EXPECT_EQ(found.size(), 1) << model.name;
      return DirectConvSchedule::of(found.front());
    };
    const DirectConvSchedule chosen = best(model.image_texels);
    EXPECT_EQ(reject_direct_schedule(with_images(0), chosen), nullptr) << model.name;
    EXPECT_LE(time_us(chosen), time_us(best(0))) << model.name;
    if (model.texel_gbps == 0) {  // nothing is gained
      EXPECT_EQ(chosen.image, 0) << model.name;
      continue;
    }
    model.cache_gbps /= 50;  // loads hold the device up, texture units do not
    const DirectConvSchedule held_up = best(model.image_texels);
    EXPECT_NE(held_up.image, 0) << model.name;
    EXPECT_LT(time_us(held_up), time_us(best(0))) << model.name;
  }
}

TEST(GpuImages, ADeviceWithoutThemRejectsThem) {
  DeviceModel model = *find_device_model("mali_t860");
  model.image_texels = 0;
  Profile p;
  p.texels = 1;
  EXPECT_TRUE(estimate(p, model).reject);
  p.texels = 0;
  EXPECT_FALSE(estimate(p, model).reject);

  DeviceInfo info;
  info.kind = DeviceKind::OpenCl;
  const auto lacks_images = [&] {
    const std::vector<std::string> words = info.lacks();
    return std::count(words.begin(), words.end(), "images") == 1;
  };
  ProgramSource source;
  source.needs_images = true;
  EXPECT_TRUE(lacks_images());
  EXPECT_THROW(check_program(info, "opencl", source), Error);
  info.image_texels = 1;
  EXPECT_FALSE(lacks_images());
  check_program(info, "opencl", source);
}

TEST(GpuImages, ProfilesOfKernelsAgreeWithThoseOfSchedules) {
  for (const int lanes : {4, 8}) {
    for (const int image : {1, 2, 3}) {
      DirectConvSchedule s;
      s.lanes = lanes;
      s.unroll = 1;
      s.inner = s.load = 4;
      s.image = image;
      const DirectConv conv = with_images(0);
      const Profile expected = direct_profile(conv, s, kImagePlane, kImagePlane);
      const Profile found = found_in(DirectConvProgram(conv, s), {kImagePlane, kImagePlane});
      EXPECT_NEAR(found.texels / expected.texels, 1, 0.05) << lanes << " " << image;
      EXPECT_NEAR(found.flops / expected.flops, 1, 0.02) << lanes << " " << image;
      EXPECT_DOUBLE_EQ(found.unique_bytes, expected.unique_bytes) << lanes << " " << image;
      EXPECT_EQ(found.loaded_bytes == 0, image == 3);
    }
  }
}

TEST(GpuImages, AStepSaysWhichArgumentsAreImages) {
  DirectConvSchedule s;
  s.lanes = 4;
  s.inner = s.load = 4;
  s.image = 3;
  const DirectConv conv = with_images(0);
  std::vector<Tensor> constants;
  constants.emplace_back(DType::Float32, Dims{direct_weight_size(conv, s)});
  const auto step = make_step(std::make_unique<DirectConvProgram>(conv, s), std::move(constants));
  DeviceInfo device;
  device.language = "opencl";
  const KernelSource source = step->kernel(0, device);
  EXPECT_TRUE(source.program.needs_images);
  EXPECT_NE(source.name.find("_image3"), std::string::npos);
  EXPECT_NE(source.program.text.find("__read_only image1d_buffer_t x, const int x_first"), std::string::npos);
  device.language = "c";
  EXPECT_FALSE(step->kernel(0, device).program.needs_images);
}

}  // namespace
}  // namespace neo::gpu
