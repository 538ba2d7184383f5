#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "conv_reference.h"
#include "host_tiers.h"
#include "routines/cpu/conv/im2col/im2col_conv.h"

namespace neo::testing {
namespace {

std::string describe(const Im2colConvShape& s) {
  std::ostringstream out;
  out << (s.transposed ? "deconv" : "conv") << " n" << s.n << " g" << s.groups << " c" << s.ic << " k" << s.oc;
  for (int i = 0; i < 3; ++i) {
    out << " [in" << s.in[i] << " out" << s.out[i] << " f" << s.kernel[i] << " s" << s.stride[i] << " p" << s.pad[i]
        << " d" << s.dilation[i] << "]";
  }
  return out.str();
}

bool draw_axis(Random& random, Im2colConvShape& s, int i, int64_t max_kernel, int64_t max_image) {
  s.kernel[i] = random.range(1, max_kernel);
  s.in[i] = random.range(1, max_image);
  s.stride[i] = random.range(1, 3);
  s.dilation[i] = random.chance(0.7) ? 1 : random.range(2, 3);
  s.pad[i] = random.chance(0.4) ? 0 : random.range(0, s.kernel[i]);
  const int64_t end = random.range(0, s.kernel[i]), reach = (s.kernel[i] - 1) * s.dilation[i] + 1;
  s.out[i] = s.transposed
                 ? (s.in[i] - 1) * s.stride[i] + reach - s.pad[i] - end + random.range(0, s.stride[i] - 1)
                 : (s.in[i] + s.pad[i] + end - reach >= 0 ? (s.in[i] + s.pad[i] + end - reach) / s.stride[i] + 1 : 0);
  return s.out[i] > 0;
}

// Adds every product to the output it belongs to; both directions of the operator from their definitions.
Reference convolve(const Im2colConvShape& s, const std::vector<float>& src, const std::vector<float>& weight) {
  Reference r;
  const int64_t group_ic = s.group_ic(), group_oc = s.group_oc();
  r.value.assign(s.n * s.oc * s.out_size(), 0.0);
  r.magnitude = r.value;
  // The strided side is the input of a convolution and the output of its transpose.
  const int64_t* fine = s.transposed ? s.out : s.in;
  const int64_t* coarse = s.transposed ? s.in : s.out;
  int64_t q[3], t[3];
  for (int64_t n = 0; n < s.n; ++n) {
    for (int64_t oc = 0; oc < s.oc; ++oc) {
      for (int64_t c = 0; c < group_ic; ++c) {
        const int64_t group = oc / group_oc, ic = group * group_ic + c;
        const int64_t filter = s.transposed ? ic * group_oc + oc % group_oc : oc * group_ic + c;
        for (q[0] = 0; q[0] < coarse[0]; ++q[0])
          for (q[1] = 0; q[1] < coarse[1]; ++q[1])
            for (q[2] = 0; q[2] < coarse[2]; ++q[2])
              for (t[0] = 0; t[0] < s.kernel[0]; ++t[0])
                for (t[1] = 0; t[1] < s.kernel[1]; ++t[1])
                  for (t[2] = 0; t[2] < s.kernel[2]; ++t[2]) {
                    int64_t at = 0, tap = 0, other = 0;
                    bool inside = true;
                    for (int i = 0; i < 3; ++i) {
                      const int64_t x = q[i] * s.stride[i] - s.pad[i] + t[i] * s.dilation[i];
                      inside &= x >= 0 && x < fine[i];
                      at = at * fine[i] + x;
                      other = other * coarse[i] + q[i];
                      tap = tap * s.kernel[i] + t[i];
                    }
                    if (!inside) continue;
                    const int64_t from = (n * s.ic + ic) * s.in_size() + (s.transposed ? other : at);
                    const int64_t to = (n * s.oc + oc) * s.out_size() + (s.transposed ? at : other);
                    const double product = double(src[from]) * weight[filter * s.taps() + tap];
                    r.value[to] += product;
                    r.magnitude[to] += std::fabs(product);
                  }
      }
    }
  }
  return r;
}

class Im2colConv : public ::testing::TestWithParam<HostTier<TileKernels>> {
 protected:
  void check(Random& random, const Im2colConvShape& s) {
    const std::string name = describe(s);
    SCOPED_TRACE(name);
    const TileKernels& kernels = *GetParam().table;
    const RowKernels* rows = nullptr;
    for (const auto& tier : NEO_HOST_TIERS(row_kernels)) {
      if (std::string(tier.name) == GetParam().name) rows = tier.table;
    }
    const PackKernels* pack = nullptr;
    for (const auto& tier : NEO_HOST_TIERS(pack_kernels)) {
      if (std::string(tier.name) == GetParam().name) pack = tier.table;
    }
    const Im2colConvPlan plan = plan_im2col_conv(s, {}, kernels);
    const std::vector<float> src = random.floats(s.n * s.ic * s.in_size());
    const std::vector<float> weight = random.floats(im2col_conv_weight_size(plan));
    const std::vector<float> bias = random.floats(s.oc);
    const int64_t gap = random.range(0, 9), dst_channel = s.out_size() + gap;
    std::vector<float> packed(weight.size()), workspace(2 * plan.workspace_size, NAN);
    std::vector<float> dst(s.n * s.oc * dst_channel, NAN);
    const std::vector<float> residual = random.floats(dst.size());
    if (s.transposed) pack_im2col_conv_weight(plan, weight.data(), packed.data(), {0, s.oc});
    ConvOperands args;
    args.src = src.data();
    args.src_channel = s.in_size();
    args.src_batch = s.ic * s.in_size();
    args.weight = s.transposed ? packed.data() : weight.data();
    if (random.chance(0.6)) args.bias = bias.data();
    if (random.chance(0.5)) {
      args.residual = random.chance(0.5) ? dst.data() : residual.data();
      if (args.residual == dst.data()) dst = residual;
    }
    args.residual_channel = args.dst_channel = dst_channel;
    args.residual_batch = args.dst_batch = s.oc * dst_channel;
    args.dst = dst.data();
    args.lo = random.pick<float>({-INFINITY, 0.0f});
    args.hi = random.pick<float>({INFINITY, 0.5f});
    run_as_team(random, plan.tasks, [&](int64_t begin, int64_t end, int member) {
      run_im2col_conv(plan, kernels, *pack, *rows, args, begin, end, workspace.data() + member * plan.workspace_size);
    });
    Reference expected = convolve(s, src, weight);
    for (int64_t i = 0; i < s.n * s.oc; ++i) {
      for (int64_t p = 0; p < s.out_size(); ++p) {
        double sum = expected.value[i * s.out_size() + p], magnitude = expected.magnitude[i * s.out_size() + p];
        if (args.bias) sum += bias[i % s.oc], magnitude += std::fabs(bias[i % s.oc]);
        if (args.residual) sum += residual[i * dst_channel + p], magnitude += std::fabs(residual[i * dst_channel + p]);
        expect_near(dst[i * dst_channel + p], std::clamp<double>(sum, args.lo, args.hi), magnitude, name);
        if (HasFatalFailure()) return;
      }
      for (int64_t p = s.out_size(); p < dst_channel; ++p) {
        const float around = dst[i * dst_channel + p];
        ASSERT_TRUE(std::isnan(around) || around == residual[i * dst_channel + p]) << "written outside";
      }
    }
  }

  void check_many(uint32_t seed, bool transposed, int axes, int64_t max_kernel, int64_t max_image) {
    Random random(seed);
    for (int done = 0; done < 120;) {
      Im2colConvShape s;
      s.transposed = transposed;
      bool valid = true;
      for (int i = 3 - axes; i < 3; ++i) valid &= draw_axis(random, s, i, max_kernel, max_image);
      if (!valid) continue;
      s.n = random.range(1, 2);
      s.groups = random.pick<int64_t>({1, 1, 2, 3, 5});
      s.ic = s.groups * random.range(1, random.chance(0.1) ? 60 : 6);
      s.oc = s.groups * random.range(1, 9);
      check(random, s);
      if (HasFatalFailure()) return;
      ++done;
    }
  }
};

TEST_P(Im2colConv, OneAxis) {
  check_many(31, false, 1, 9, 200);
}
TEST_P(Im2colConv, TwoAxes) {
  check_many(32, false, 2, 5, 20);
}
TEST_P(Im2colConv, ThreeAxes) {
  check_many(33, false, 3, 3, 8);
}
TEST_P(Im2colConv, TransposedOneAxis) {
  check_many(34, true, 1, 9, 60);
}
TEST_P(Im2colConv, TransposedTwoAxes) {
  check_many(35, true, 2, 4, 10);
}
TEST_P(Im2colConv, TransposedThreeAxes) {
  check_many(36, true, 3, 3, 5);
}

// Every output has one tap of the pixel that it lies in.
TEST_P(Im2colConv, TransposedWithoutOverlap) {
  Random random(37);
  for (int done = 0; done < 60; ++done) {
    Im2colConvShape s;
    s.transposed = true;
    for (int i = static_cast<int>(random.range(0, 2)); i < 3; ++i) {
      s.in[i] = random.range(1, i == 2 ? 40 : 8);
      s.kernel[i] = s.stride[i] = random.range(1, 5);
      s.out[i] = s.in[i] * s.stride[i];
    }
    if (done % 6 == 0) s.in[1] = s.in[2] = 32, s.out[1] = 32 * s.stride[1], s.out[2] = 32 * s.stride[2];
    s.groups = random.pick<int64_t>({1, 1, 2});
    s.ic = s.groups * (done % 10 == 0 ? 300 : random.range(1, 9));
    s.oc = s.groups * random.range(1, 9);
    ASSERT_TRUE(plan_im2col_conv(s, {}, *GetParam().table).is_pointwise);
    check(random, s);
    if (HasFatalFailure()) return;
  }
}

// So many phases of so many channels that panels are narrower.
TEST_P(Im2colConv, TransposedByLargeStrides) {
  Random random(38);
  Im2colConvShape s;
  s.transposed = true;
  s.ic = 3;
  s.oc = 300;
  s.in[2] = 70;
  s.kernel[2] = 20;
  s.stride[2] = 13;
  s.pad[2] = 4;
  s.out[2] = (s.in[2] - 1) * s.stride[2] + s.kernel[2] - 2 * s.pad[2];
  check(random, s);
}

INSTANTIATE_TEST_SUITE_P(Tiers, Im2colConv, ::testing::ValuesIn(NEO_HOST_TIERS(tile_kernels)),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace neo::testing
