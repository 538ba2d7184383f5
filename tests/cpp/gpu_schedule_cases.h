#pragma once

#include <map>
#include <string>
#include <vector>

#include "routines/gpu/conv/direct_conv.h"
#include "routines/gpu/device_model.h"

namespace neo::gpu {

// A 3x3 convolution of 64 channels, padded; NCHW[block]c.
inline DirectConv typical(int block) {
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

// What the first kernel of a program does.
inline Profile found_in(const Program& program, const std::vector<Dims>& shapes) {
  const KernelLaunch launch = program.launches(shapes).launches.front();
  const kernel::Kernel& k = program.kernels().front();
  std::map<std::string, int64_t, std::less<>> sizes;
  for (size_t i = 0; i < k.parameters.size(); ++i) {
    const auto* scalar = std::get_if<kernel::ScalarParameter>(&k.parameters[i]);
    const auto* size = std::get_if<int64_t>(&launch.arguments[i]);
    if (scalar != nullptr && size != nullptr) sizes[scalar->variable->name] = *size;
  }
  return profile_of(k, sizes);
}

}  // namespace neo::gpu
