#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "conv_reference.h"
#include "host_tiers.h"
#include "routines/cpu/conv/fused/fused_convs.h"

namespace neo::testing {
namespace {

// An activation that does not keep zero.
void add_immediate(const EltwiseStep& step, float* values, int64_t rows, int64_t row, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < columns; ++i) values[r * row + i] += step.p;
  }
}

// One convolution of a chain in plain layouts.
struct Link {
  ConvShape shape;
  std::vector<float> weight, bias;
  float lo = -INFINITY, hi = INFINITY;
  Activation activation;

  Link() = default;
  Link(Random& random, const ConvShape& s) : shape(s) {
    weight = random.floats(s.oc * s.group_ic() * s.taps());
    if (random.chance(0.7)) bias = random.floats(s.oc);
    if (random.chance(0.6)) lo = random.pick({0.0f, 0.25f}), hi = random.pick({1.0f, 6.0f});
    if (random.chance(0.5)) {
      activation.step.p = 0.5f;
      activation.run = add_immediate;
    }
  }
};

std::vector<float> as_floats(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

std::vector<float> padded(const std::vector<float>& bias, int64_t lanes) {
  std::vector<float> out((int64_t(bias.size()) + lanes - 1) / lanes * lanes, 0.0f);
  std::copy(bias.begin(), bias.end(), out.begin());
  return out;
}

// Packed operands of one convolution.
struct Packed {
  std::vector<float> weight, bias;

  static Packed pointwise(const Link& link, const PanelSplit& split, int64_t lanes) {
    Packed p;
    const int64_t ic = link.shape.ic * link.shape.taps();
    p.weight.resize(pointwise_weight_size(split, ic, lanes));
    pack_pointwise_weight(split, link.shape.oc, ic, lanes, link.weight.data(), p.weight.data());
    p.bias = padded(link.bias, lanes);
    return p;
  }
  static Packed strassen(const Link& link, const StrassenPlan& plan, int64_t lanes) {
    Packed p;
    p.weight.resize(strassen_weight_size(plan));
    pack_strassen_weight(plan, link.weight.data(), p.weight.data());
    p.bias = padded(link.bias, lanes);
    return p;
  }
  static Packed depthwise(const Link& link, int64_t lanes) {
    const DepthwisePlan plan = plan_depthwise(link.shape, lanes);
    Packed p;
    p.weight.resize(depthwise_weight_size(plan));
    pack_depthwise_weight(plan, link.weight.data(), p.weight.data());
    p.bias = padded(link.bias, lanes);
    return p;
  }
  ChainStage stage(const Link& link) const {
    ChainStage s;
    s.weight = weight.data();
    if (!bias.empty()) s.bias = bias.data();
    s.lo = link.lo;
    s.hi = link.hi;
    s.activation = link.activation;
    return s;
  }
};

class FusedConvs : public ::testing::TestWithParam<HostTier<TileKernels>> {
 protected:
  ChainKernels kernels() const {
    ChainKernels k;
    k.tiles = GetParam().table;
    for (const auto& tier : NEO_HOST_TIERS(depthwise_kernels)) {
      if (std::string(tier.name) == GetParam().name) k.depthwise = tier.table;
    }
    for (const auto& tier : NEO_HOST_TIERS(strassen_kernels)) {
      if (std::string(tier.name) == GetParam().name) k.strassen = tier.table;
    }
    for (const auto& tier : NEO_HOST_TIERS(row_kernels)) {
      if (std::string(tier.name) == GetParam().name) k.rows = tier.table;
    }
    return k;
  }
};

void check_chain(Random& random, const ChainKernels& kernels, Expansion expansion, bool project) {
  const int64_t lanes = kernels.tiles->lanes;
  ChainShape shape;
  shape.expansion = expansion;
  shape.project = project;
  const bool expand = shape.expands();
  ConvShape& s = shape.depthwise;
  ConvShape& first = shape.stem;
  draw_window(random, s, random.chance(0.3) ? 7 : 4, random.chance(0.2) ? 40 : 14);
  while (shape.has_stem()) {
    draw_window(random, first, 5, random.chance(0.2) ? 90 : 30);
    s.ih = first.oh;
    s.iw = first.ow;
    const int64_t h = s.ih + 2 * s.pad_top - (s.kh - 1) * s.dilation_h - 1;
    const int64_t w = s.iw + 2 * s.pad_left - (s.kw - 1) * s.dilation_w - 1;
    s.oh = h / s.stride_h + 1;
    s.ow = w / s.stride_w + 1;
    if (h >= 0 && w >= 0) break;
  }
  s.n = random.range(1, 2);
  s.groups = s.ic = s.oc = random.range(2, 3 * 16 * 2);
  shape.ic = shape.has_stem() ? random.range(1, 5) : expand ? random.range(1, 40) : s.ic;
  shape.oc = project ? random.range(1, 90) : s.oc;
  if (project && random.chance(0.4)) {
    shape.strassen = true;
    s.groups = s.ic = s.oc = 2 * lanes * random.range(1, 3);
    if (!expand) shape.ic = s.ic;
    shape.oc = 2 * lanes * random.pick({3, 4, 7});
  }
  const auto pointwise = [&](int64_t ic, int64_t oc, int64_t h, int64_t w) {
    ConvShape p;
    p.n = s.n;
    p.ic = ic;
    p.oc = oc;
    p.ih = p.oh = h;
    p.iw = p.ow = w;
    return Link(random, p);
  };
  first.n = s.n;
  first.ic = shape.ic;
  first.oc = s.ic;
  const std::string where = (shape.has_stem() ? describe(first) + ", " : "") + describe(s) +
                            (expand ? " expand " : " ") + std::to_string(shape.ic) + (project ? " project " : " ") +
                            std::to_string(shape.oc);
  SCOPED_TRACE(where);

  // The sums of the inner images are rounded to float before the next convolution reads them, here as there; their
  // rounding errors go through the weights of the later ones.
  const int64_t pixels = shape.has_stem() ? first.ih * first.iw : s.ih * s.iw;
  const std::vector<float> src = random.floats(s.n * shape.ic * pixels);
  Link links[3];
  std::vector<float> image = src;
  Reference expected;
  std::vector<float> residual;
  double gain = 1;
  const auto follow = [&](Link& link, const std::vector<float>& added) {
    expected = convolve(link.shape, image, link.weight, link.bias, added, link.lo, link.hi);
    for (double& value : expected.value) value += double(link.activation.step.p);
    image = as_floats(expected.value);
  };
  if (expand) {
    links[0] = shape.has_stem() ? Link(random, first) : pointwise(shape.ic, s.ic, s.ih, s.iw);
    follow(links[0], {});
    gain *= double(s.taps());
  }
  links[1] = Link(random, s);
  follow(links[1], {});
  if (project) {
    links[2] = pointwise(s.ic, shape.oc, s.oh, s.ow);
    if (random.chance(0.4)) residual = random.floats(s.n * shape.oc * s.oh * s.ow);
    follow(links[2], residual);
    gain *= double(s.ic);
  }

  const ChainPlan plan =
      plan_chain(shape, kernels, random.pick({1, 2, 5, 100}), random.pick({1 << 10, 1 << 16, 1 << 19}));
  BlockedTensor x(s.n, shape.ic, pixels, shape.has_stem() ? 1 : lanes, random.chance(0.3));
  BlockedTensor y(s.n, shape.oc, s.oh * s.ow, lanes, random.chance(0.3));
  x.fill(src);
  // Nothing may depend on the lanes behind the last channel.
  for (int64_t i = 0; i < x.n; ++i) {
    for (int64_t c = x.c; c < x.blocks * x.block; ++c) {
      for (int64_t p = 0; p < x.plane; ++p) x.at(i, c, p) = NAN;
    }
  }
  Packed packed[3];
  ChainArgs args;
  if (expand) {
    packed[0] = Packed::pointwise(links[0], plan.inner, lanes);
    args.expand = packed[0].stage(links[0]);
  }
  packed[1] = Packed::depthwise(links[1], lanes);
  args.depthwise = packed[1].stage(links[1]);
  if (project) {
    packed[2] = shape.strassen ? Packed::strassen(links[2], plan.strassen, lanes)
                               : Packed::pointwise(links[2], plan.outer, lanes);
    args.project = packed[2].stage(links[2]);
  }
  args.src = x.base();
  args.src_batch = x.batch_stride;
  args.src_block = x.block_stride;
  if (!residual.empty()) {
    y.fill(residual);
    args.residual = y.base();
    args.residual_batch = y.batch_stride;
    args.residual_block = y.block_stride;
  }
  args.dst = y.base();
  args.dst_batch = y.batch_stride;
  args.dst_block = y.block_stride;
  std::vector<float> workspace(2 * plan.workspace_size, NAN);
  ChainMember members[2];
  for (int i = 0; i < 2; ++i) members[i].workspace = workspace.data() + i * plan.workspace_size;
  run_as_team(random, plan.tasks, [&](int64_t begin, int64_t end, int member) {
    run_chain(plan, kernels, args, begin, end, members[member]);
  });

  const int64_t plane = s.oh * s.ow;
  for (int64_t i = 0; i < s.n * shape.oc; ++i) {
    for (int64_t p = 0; p < plane; ++p) {
      const double magnitude =
          (expected.magnitude[i * plane + p] + 1) * std::sqrt(gain) * double(shape.ic * shape.taps() + s.taps());
      expect_near(y.at(i / shape.oc, i % shape.oc, p), expected.value[i * plane + p], magnitude, where);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
  y.check_surroundings();
}

TEST_P(FusedConvs, AgreesWithPlainLoops) {
  Random random(7);
  for (int i = 0; i < 500; ++i) {
    constexpr Expansion kExpansions[] = {Expansion::None, Expansion::Pointwise, Expansion::Pointwise, Expansion::Stem,
                                         Expansion::Stem};
    check_chain(random, kernels(), kExpansions[i % 5], i % 5 == 0 || i % 2 == 0);
    if (HasFatalFailure()) return;
  }
}

// A member that does strip after strip reads a source row for one of them only: here the rows that it has expanded are
// spoiled behind it. One that begins in between expands what it needs.
TEST_P(FusedConvs, MembersExpandEveryRowOnce) {
  Random random(3);
  const int64_t lanes = kernels().tiles->lanes;
  for (const bool project : {true, false}) {
    ChainShape shape;
    shape.expansion = Expansion::Pointwise;
    shape.project = project;
    ConvShape& s = shape.depthwise;
    s.groups = s.ic = s.oc = 6 * lanes;
    s.ih = s.oh = s.iw = s.ow = 30;
    s.kh = s.kw = 3;
    s.pad_top = s.pad_left = 1;
    shape.ic = lanes;
    shape.oc = project ? lanes : s.oc;
    const ChainPlan plan = plan_chain(shape, kernels(), 2, project ? 1 << 14 : 1 << 10);
    ASSERT_GT(plan.chunks, 4);
    EXPECT_EQ(plan.ring_rows, plan.strip + 2);
    ConvShape pixels;
    pixels.ic = shape.ic;
    pixels.oc = s.ic;
    pixels.ih = pixels.oh = pixels.iw = pixels.ow = s.ih;
    const Link links[] = {Link(random, pixels), Link(random, s)};
    pixels.ic = s.ic;
    pixels.oc = shape.oc;
    const Link last(random, pixels);
    const Packed packed[] = {Packed::pointwise(links[0], plan.inner, lanes), Packed::depthwise(links[1], lanes),
                             Packed::pointwise(last, plan.outer, lanes)};
    ChainArgs args;
    args.expand = packed[0].stage(links[0]);
    args.depthwise = packed[1].stage(links[1]);
    if (project) args.project = packed[2].stage(last);
    const std::vector<float> image = random.floats(lanes * s.ih * s.iw);
    std::vector<float> src = image, workspace(plan.workspace_size, NAN);
    const auto run = [&](bool spoils, int64_t first) {
      std::vector<float> dst(round_up(shape.oc, lanes) * s.oh * s.ow);
      args.src = src.data();
      args.src_block = s.ih * s.iw * lanes;
      args.dst = dst.data();
      args.dst_block = s.oh * s.ow * lanes;
      ChainMember member{workspace.data()};
      for (int64_t i = 0; i < plan.tasks; ++i) {
        const int64_t task = (first + i) % plan.tasks;
        if (task % plan.chunks == 0) src = image;
        run_chain(plan, kernels(), args, task, task + 1, member);
        if (spoils) std::fill_n(src.begin(), member.expanded * s.iw * lanes, NAN);
      }
      src = image;
      return dst;
    };
    const std::vector<float> expected = run(false, 0);
    EXPECT_EQ(run(true, 0), expected);
    EXPECT_EQ(run(false, plan.chunks / 2), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, FusedConvs, ::testing::ValuesIn(NEO_HOST_TIERS(tile_kernels)),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace neo::testing
