#include "routines/gpu/target_model.h"

#include <algorithm>
#include <utility>

namespace neo::gpu {

DeviceModel model_of(const Target& target) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"mali", "mali_t860"}, {"intel_graphics", "intel_hd505"}, {"cuda", "nvidia_ampere"}};
  const auto* found =
      std::find_if(std::begin(kNames), std::end(kNames), [&](const auto& pair) { return pair.first == target.name; });
  const DeviceModel* known = find_device_model(found == std::end(kNames) ? target.name : found->second);
  DeviceModel m = known ? *known : *find_device_model("pocl");
  const DeviceFigures& f = target.figures;
  m.cache_gbps *= f.gflops / m.gflops;
  m.matrix_gflops *= f.has_matrices ? f.gflops / m.gflops : 0;
  m.gflops = f.gflops;
  m.gbps = f.gbps;
  m.launch_us = f.launch_us;
  m.image_texels = f.image_texels;
  return m;
}

}  // namespace neo::gpu
