#include "programs.h"
#include "routines/gpu/conv/depthwise_conv.h"
#include "routines/gpu/conv/direct_conv.h"
#include "routines/gpu/conv/subgroup_conv.h"
#include "routines/gpu/conv/tiled_conv.h"
#include "routines/gpu/conv/winograd_conv.h"

namespace neo::gpu::tests {
namespace {

ConvGeometry geometry_of(const Choice& c) {
  ConvGeometry g;
  g.axes = static_cast<int>(c.number("axes", 2));
  g.groups = c.number("groups", 1);
  g.ic = c.number("ic");
  g.oc = c.number("oc");
  g.transposed = c.number("transposed", 0) != 0;
  const char* names[] = {"d", "h", "w"};
  for (int axis = 3 - g.axes; axis < 3; ++axis) {
    const std::string suffix = names[axis];
    g.kernel[axis] = c.number("k" + suffix, 1);
    g.window.strides.push_back(c.number("s" + suffix, 1));
    g.window.dilations.push_back(c.number("d" + suffix, 1));
    g.output_padding.push_back(0);
  }
  for (const char* end : {"b", "e"}) {
    for (int axis = 3 - g.axes; axis < 3; ++axis) {
      g.window.pads.push_back(c.number(std::string("p") + names[axis] + end, 0));
    }
  }
  return g;
}

ResultForm result_of(const Choice& c, Places& places) {
  ResultForm r;
  if (c.number("half", 0) != 0) r.storage = DType::Float16;
  r.has_bias = c.number("bias", 0) != 0;
  r.has_residual = c.number("residual", 0) != 0;
  r.has_clamp = c.number("relu", 0) != 0;
  if (r.has_clamp) r.lo = 0;
  if (c.number("activation", -1) >= 0) {
    EltwiseStep step;
    step.op = static_cast<EltwiseOp>(c.number("activation"));
    step.p = 1.0f;
    r.activation = step;
  }
  if (r.has_residual) {
    places.residual = 1;
    places.y = 2;
  }
  return r;
}

const Registered direct("conv_direct", [](const Choice& c) {
  DirectConv conv;
  conv.geometry = geometry_of(c);
  conv.in_block = static_cast<int>(c.number("in_block", 1));
  conv.out_block = static_cast<int>(c.number("out_block", 1));
  conv.in_last = c.number("in_last", 0) != 0;
  conv.out_last = c.number("out_last", 0) != 0;
  conv.flat = c.number("flat", 0) != 0;
  conv.result = result_of(c, conv.places);
  return std::make_unique<DirectConvProgram>(conv, DirectConvSchedule::of(c.schedule()));
});

const Registered depthwise("conv_depthwise", [](const Choice& c) {
  DepthwiseConv conv;
  conv.geometry = geometry_of(c);
  conv.block = static_cast<int>(c.number("block", 1));
  conv.last = c.number("last", 0) != 0;
  conv.result = result_of(c, conv.places);
  return std::make_unique<DepthwiseProgram>(conv, DepthwiseSchedule::of(c.schedule()));
});

const Registered winograd("conv_winograd", [](const Choice& c) {
  WinogradConv conv;
  conv.geometry = geometry_of(c);
  conv.block = static_cast<int>(c.number("block"));
  conv.result = result_of(c, conv.places);
  return std::make_unique<WinogradProgram>(conv, WinogradSchedule::of(c.schedule()));
});

const Registered subgroup("conv_subgroup", [](const Choice& c) {
  DirectConv conv;
  conv.geometry = geometry_of(c);
  conv.in_block = conv.out_block = static_cast<int>(c.number("size"));
  conv.flat = c.number("flat", 0) != 0;
  conv.result = result_of(c, conv.places);
  return std::make_unique<SubgroupConvProgram>(conv, SubgroupConvSchedule::of(c.schedule()));
});

const Registered tiled("conv_tiled", [](const Choice& c) {
  TiledConv conv;
  conv.geometry = geometry_of(c);
  conv.result = result_of(c, conv.places);
  conv.by_matrices = c.number("by_matrices", 0) != 0;
  if (c.number("runtime_weights", 0) != 0) {
    conv.places.weight = conv.places.y++;
    if (conv.result.has_bias) conv.places.bias = conv.places.y++;
  }
  return std::make_unique<TiledConvProgram>(conv, TiledConvSchedule::of(c.schedule()));
});

}  // namespace
}  // namespace neo::gpu::tests
