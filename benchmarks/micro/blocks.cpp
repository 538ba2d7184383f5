// Times direct convolutions of blocked layouts: for each line of standard input, a convolution, and each pair of blocks
// of input and output channels, the least microseconds of one thread over the register blocks.
//
//   blocks      lines "ic ih iw oc oh ow kh kw stride_h stride_w pad_top pad_left dilation_h dilation_w"
//
// benchmarks/blocks.py builds and feeds it.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/int_math.h"
#include "base/isa.h"
#include "routines/cpu/conv/direct/direct_nchwc.h"
#include "routines/cpu/microkernel/used_kernels.h"

namespace neo {
namespace {

constexpr int64_t kMaxChannels = 64;
constexpr double kRoundSeconds = 0.004;
constexpr int kRounds = 3;

// One schedule with its operands in memory.
struct Trial {
  DirectPlan plan;
  std::vector<float> weight;
  ConvOperands args;

  double round_us(const TileKernels& kernels) const {
    using Clock = std::chrono::steady_clock;
    int calls = 0;
    const auto begin = Clock::now();
    double seconds = 0;
    do {
      run_direct(plan, kernels, args, 0, plan.tasks);
      ++calls;
      seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    } while (seconds < kRoundSeconds);
    return seconds * 1e6 / calls;
  }
};

// All pairs of blocks take turns, so that none has the better minutes of a shared machine.
void measure(const ConvShape& s, const TileKernels& kernels) {
  std::vector<float> src(static_cast<size_t>(round_up(s.ic, kMaxChannels) * s.ih * s.iw), 0.5f);
  std::vector<float> dst(static_cast<size_t>(round_up(s.oc, kMaxChannels) * s.oh * s.ow));
  std::map<std::pair<int64_t, int64_t>, std::vector<Trial>> trials;
  for (int64_t x = kernels.lanes / 2; x <= kMaxChannels && x <= s.ic; x *= 2) {
    for (int64_t y = kernels.lanes; y <= kMaxChannels && y <= round_up(s.oc, kernels.lanes); y *= 2) {
      for (int64_t vectors = 1; vectors <= 4 && vectors * kernels.lanes <= round_up(s.oc, kernels.lanes); ++vectors) {
        DirectSchedule schedule;
        schedule.ic_bn = x;
        schedule.oc_bn = y;
        schedule.oc_vectors = vectors;
        if (reject_direct(s, schedule, kernels.lanes) != nullptr) continue;
        Trial trial;
        trial.plan = plan_direct(s, schedule, kernels);
        trial.weight.assign(static_cast<size_t>(direct_weight_size(trial.plan)), 0.25f);
        trial.args.src_channel = s.ih * s.iw * x;
        trial.args.dst_channel = s.oh * s.ow * y;
        trial.args.lo = -std::numeric_limits<float>::infinity();
        trial.args.hi = std::numeric_limits<float>::infinity();
        trials[{x, y}].push_back(std::move(trial));
      }
    }
  }
  std::map<std::pair<int64_t, int64_t>, double> best;
  for (int round = 0; round < kRounds; ++round) {
    for (auto& [blocks, of_blocks] : trials) {
      for (Trial& trial : of_blocks) {
        trial.args.src = src.data();
        trial.args.dst = dst.data();
        trial.args.weight = trial.weight.data();
        const double us = trial.round_us(kernels);
        const auto found = best.emplace(blocks, us).first;
        found->second = std::min(found->second, us);
      }
    }
  }
  for (const auto& [blocks, us] : best)
    std::printf("%lld:%lld:%.3f ", (long long)blocks.first, (long long)blocks.second, us);
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace
}  // namespace neo

int main() {
  using namespace neo;
  const TileKernels& kernels = tile_kernels_of(host_isa());
  std::printf("lanes %lld\n", (long long)kernels.lanes);
  ConvShape s;
  while (std::cin >> s.ic >> s.ih >> s.iw >> s.oc >> s.oh >> s.ow >> s.kh >> s.kw >> s.stride_h >> s.stride_w >>
         s.pad_top >> s.pad_left >> s.dilation_h >> s.dilation_w) {
    measure(s, kernels);
  }
}
