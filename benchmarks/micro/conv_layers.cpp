// GFLOP/s of the convolution and GEMM kernels on layers of ResNet and MobileNet, one thread, and their share of the
// peak that a loop of fused multiply-adds reaches on this core. Layers whose data exceed the caches read them from
// memory, as in a network. Winograd's GFLOP/s are those of its products, its share is that of the multiplications that
// the direct method would do, and its parts are the times of the two transforms, by leaving them out.
//
//   conv_layers [scalar|avx2|avx512|neon]      the default is the widest tier that the host runs
//
// Build (from the root of the repository, after a build in build/):
//   g++ -O2 -std=c++20 -Icsrc -Itests/cpp benchmarks/micro/conv_layers.cpp -o conv_layers <libneo_routines.a and what
//   it needs>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "host_tiers.h"
#include "routines/cpu/conv/depthwise.h"
#include "routines/cpu/conv/direct_nchw.h"
#include "routines/cpu/conv/direct_nchwc.h"
#include "routines/cpu/conv/winograd.h"
#include "routines/cpu/gemm/gemm.h"

namespace neo {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Many short rounds, the shortest counts: on a shared machine a long round is always disturbed.
template <class F>
double seconds(double flops, F&& f) {
  const int repeats = static_cast<int>(std::max(1.0, 2e7 / flops));
  double best = 1e30;
  const double end = now() + 0.3;
  do {
    const double start = now();
    for (int i = 0; i < repeats; ++i) f();
    best = std::min(best, (now() - start) / repeats);
  } while (now() < end);
  return best;
}

class Buffer {
 public:
  explicit Buffer(int64_t size) : data_(size + 16) {
    for (size_t i = 0; i < data_.size(); ++i) data_[i] = static_cast<float>((i * 2654435761u >> 20) % 17) * 0.1f - 0.8f;
  }
  float* get() {
    const uintptr_t address = reinterpret_cast<uintptr_t>(data_.data());
    return reinterpret_cast<float*>((address + 63) / 64 * 64);
  }

 private:
  std::vector<float> data_;
};

struct Tier {
  std::string name;
  const TileKernels* tiles;
  const PackKernels* pack;
  const RowKernels* rows;
  const DepthwiseKernels* depthwise;
  const WinogradKernels* winograd;
};

std::vector<Tier> host_tiers() {
  std::vector<Tier> tiers;
  const auto tiles = NEO_HOST_TIERS(tile_kernels);
  const auto pack = NEO_HOST_TIERS(pack_kernels);
  const auto rows = NEO_HOST_TIERS(row_kernels);
  const auto depthwise = NEO_HOST_TIERS(depthwise_kernels);
  const auto winograd = NEO_HOST_TIERS(winograd_kernels);
  for (size_t i = 0; i < tiles.size(); ++i) {
    tiers.push_back(
        {tiles[i].name, tiles[i].table, pack[i].table, rows[i].table, depthwise[i].table, winograd[i].table});
  }
  return tiers;
}

// What the widest register block reaches on data in the first-level cache: the 100 % line, within two percent of a loop
// of nothing but multiply-adds.
double measure_peak(const Tier& tier) {
  double peak = 0.0;
  for (int vectors = 1; vectors <= kTileVectors; ++vectors) {
    const int rows = tier.tiles->max_rows[vectors];
    constexpr int64_t kDepth = 128;
    Buffer a(kTileRows * kDepth), b(kDepth * vectors * tier.tiles->lanes), c(kTileRows * 64);
    const TileTap tap;
    Tile tile;
    tile.src = a.get();
    tile.step = kTileRows;
    tile.block_size = tile.last_size = kDepth;
    tile.taps = &tap;
    tile.tap_count = 1;
    tile.weight = b.get();
    tile.weight_step = tile.dst_row = vectors * tier.tiles->lanes;
    for (int v = 0; v < vectors; ++v) tile.dst_vector[v] = v * tier.tiles->lanes;
    tile.dst = c.get();
    tile.lo = -INFINITY;
    tile.hi = INFINITY;
    const double flops = 2.0 * rows * vectors * tier.tiles->lanes * kDepth;
    peak = std::max(peak, flops / seconds(flops, [&] { tier.tiles->columns[vectors][rows](tile); }));
  }
  return peak;
}

void report(const std::string& what, double flops, double time, double peak) {
  std::printf("%-44s %9.1f us %8.1f GFLOP/s %5.0f %%\n", what.c_str(), time * 1e6, flops / time * 1e-9,
              100.0 * flops / time / peak);
}

ConvShape square(int64_t ic, int64_t oc, int64_t image, int64_t kernel, int64_t stride) {
  ConvShape s;
  s.ic = ic;
  s.oc = oc;
  s.ih = s.iw = image;
  s.kh = s.kw = kernel;
  s.stride_h = s.stride_w = stride;
  s.pad_top = s.pad_left = kernel / 2;
  s.oh = s.ow = (image + 2 * (kernel / 2) - kernel) / stride + 1;
  return s;
}

// Stride 1, the output as large as the input.
ConvShape same(int64_t ic, int64_t oc, int64_t image, int64_t kh, int64_t kw) {
  ConvShape s;
  s.ic = ic;
  s.oc = oc;
  s.ih = s.iw = s.oh = s.ow = image;
  s.kh = kh;
  s.kw = kw;
  s.pad_top = kh / 2;
  s.pad_left = kw / 2;
  return s;
}

std::string describe(const char* kind, const ConvShape& s) {
  char text[96];
  std::snprintf(text, sizeof text, "%-10s c%-4d k%-4d hw%-3d f%dx%d s%d", kind, int(s.ic), int(s.oc), int(s.ih),
                int(s.kh), int(s.kw), int(s.stride_h));
  return text;
}

void bench_direct(const Tier& tier, double peak, const ConvShape& s) {
  DirectSchedule schedule;
  schedule.ic_bn = schedule.oc_bn = std::max(16, tier.tiles->lanes);
  const DirectPlan plan = plan_direct(s, schedule, *tier.tiles);
  const int64_t block = schedule.ic_bn, ic = (s.ic + block - 1) / block * block,
                oc = (s.oc + block - 1) / block * block;
  Buffer src(ic * s.ih * s.iw), dst(oc * s.oh * s.ow), weight(direct_weight_size(plan)), bias(direct_bias_size(plan));
  ConvOperands args;
  args.src = src.get();
  args.src_channel = s.ih * s.iw * block;
  args.weight = weight.get();
  args.bias = bias.get();
  args.dst = dst.get();
  args.dst_channel = s.oh * s.ow * block;
  args.hi = INFINITY;
  report(describe("direct", s), s.flops(),
         seconds(s.flops(), [&] { run_direct(plan, *tier.tiles, args, 0, plan.tasks); }), peak);
}

void bench_winograd(const Tier& tier, double peak, const ConvShape& s, int64_t tile, int64_t block) {
  const int64_t lanes = tier.tiles->lanes;
  WinogradSchedule schedule;
  schedule.tile = tile;
  schedule.panels = (s.oc + kTileVectors * lanes - 1) / (kTileVectors * lanes);
  schedule.block = block;
  const WinogradPlan plan = plan_winograd(s, schedule, lanes);
  Buffer src(plan.ic_vectors * lanes * s.ih * s.iw), dst(plan.oc_vectors * lanes * s.oh * s.ow);
  Buffer weight(winograd_weight_size(plan)), bias(plan.oc_vectors * lanes), workspace(plan.workspace_size);
  ConvOperands args;
  args.src = src.get();
  args.src_channel = s.ih * s.iw * lanes;
  args.weight = weight.get();
  args.bias = bias.get();
  args.dst = dst.get();
  args.dst_channel = s.oh * s.ow * lanes;
  args.hi = INFINITY;
  const auto time = [&](const WinogradKernels& kernels) {
    return seconds(s.flops(), [&] {
      WinogradMember member;
      member.workspace = workspace.get();
      run_winograd(plan, kernels, *tier.tiles, args, 0, plan.tasks, member);
    });
  };
  const double whole = time(*tier.winograd);
  WinogradKernels without_input = *tier.winograd, without_output = *tier.winograd;
  for (auto& kernel : without_input.input[1]) kernel = [](const WinogradPass&) {};
  for (auto& row : without_output.output[1]) {
    for (auto& kernel : row) kernel = [](const WinogradPass&) {};
  }
  const double input = whole - time(without_input), output = whole - time(without_output);
  const double products = 2.0 * static_cast<double>(plan.products() * s.ic * plan.oc_vectors * lanes);
  std::printf(
      "%-32s m%d b%-3d %9.1f us %8.1f GFLOP/s %5.0f %% of direct, input %2.0f %%, output %2.0f %%, products %.0f %% of "
      "peak\n",
      describe("winograd", s).c_str(), int(tile), int(block), whole * 1e6, products / (whole - input - output) * 1e-9,
      100.0 * s.flops() / whole / peak, 100 * input / whole, 100 * output / whole,
      100 * products / (whole - input - output) / peak);
}

void bench_first(const Tier& tier, double peak, const ConvShape& s) {
  DirectNchwSchedule schedule;
  schedule.oc_bn = std::max(16, tier.tiles->lanes);
  const DirectNchwPlan plan = plan_direct_nchw(s, schedule, *tier.tiles);
  Buffer src(s.ic * s.ih * s.iw), dst(plan.vectors * plan.lanes * s.oh * s.ow), weight(direct_nchw_weight_size(plan));
  Buffer workspace(plan.workspace_size);
  ConvOperands args;
  args.src = src.get();
  args.src_channel = s.ih * s.iw;
  args.weight = weight.get();
  args.dst = dst.get();
  args.dst_channel = s.oh * s.ow * schedule.oc_bn;
  args.hi = INFINITY;
  args.workspace = workspace.get();
  report(describe("first", s), s.flops(),
         seconds(s.flops(), [&] { run_direct_nchw(plan, *tier.tiles, *tier.rows, args, 0, plan.tasks, 0); }), peak);
}

void bench_depthwise(const Tier& tier, double peak, int64_t channels, int64_t image, int64_t kernel, int64_t stride) {
  ConvShape s = square(channels, channels, image, kernel, stride);
  s.groups = channels;
  const int64_t block = tier.tiles->lanes;
  const DepthwisePlan plan = plan_depthwise(s, block);
  const int64_t padded = (channels + block - 1) / block * block;
  Buffer src(padded * s.ih * s.iw), dst(padded * s.oh * s.ow), weight(depthwise_weight_size(plan));
  ConvOperands args;
  args.src = src.get();
  args.src_channel = s.ih * s.iw * block;
  args.weight = weight.get();
  args.dst = dst.get();
  args.dst_channel = s.oh * s.ow * block;
  args.hi = 6.0f;
  report(describe("depthwise", s), s.flops(),
         seconds(s.flops(), [&] { tier.depthwise->run(plan, args, 0, plan.tasks); }), peak);
}

void bench_gemm(const Tier& tier, double peak, int64_t m, int64_t n, int64_t k, bool packed_b) {
  GemmShape shape;
  shape.m = m;
  shape.n = n;
  shape.k = k;
  GemmSchedule schedule;
  schedule.packed_b = packed_b;
  const GemmPlan plan = plan_gemm(shape, schedule, *tier.tiles);
  Buffer a(m * k), b(packed_b ? gemm_packed_size(plan) : n * k), c(m * n), workspace(plan.workspace_size);
  GemmArgs args;
  args.a = a.get();
  args.a_row = k;
  args.b = b.get();
  args.b_row = n;
  args.c = c.get();
  args.c_row = n;
  args.lo = -INFINITY;
  args.hi = INFINITY;
  args.workspace = workspace.get();
  char text[96];
  std::snprintf(text, sizeof text, "%-10s m%-4d n%-4d k%-4d %s", "gemm", int(m), int(n), int(k),
                packed_b ? "packed B" : "plain B");
  const double flops = 2.0 * m * n * k;
  report(text, flops, seconds(flops, [&] { run_gemm(plan, *tier.tiles, *tier.pack, args, 0, plan.tasks, 0); }), peak);
}

int run(const std::string& name) {
  const std::vector<Tier> tiers = host_tiers();
  const Tier* tier = name.empty() ? &tiers.back() : nullptr;
  for (const Tier& t : tiers) {
    if (t.name == name) tier = &t;
  }
  if (!tier) {
    std::fprintf(stderr, "this host does not run the tier %s\n", name.c_str());
    return 1;
  }
  const double peak = measure_peak(*tier);
  std::printf("%s: one thread, peak %.1f GFLOP/s\n", tier->name.c_str(), peak * 1e-9);
  bench_first(*tier, peak, square(3, 64, 224, 7, 2));
  bench_first(*tier, peak, square(3, 32, 224, 3, 2));
  bench_direct(*tier, peak, square(64, 64, 56, 3, 1));
  bench_direct(*tier, peak, square(128, 128, 28, 3, 1));
  bench_direct(*tier, peak, square(256, 256, 14, 3, 1));
  bench_direct(*tier, peak, square(512, 512, 7, 3, 1));
  bench_direct(*tier, peak, square(128, 128, 56, 3, 2));
  bench_direct(*tier, peak, square(64, 256, 56, 1, 1));
  bench_direct(*tier, peak, square(256, 64, 56, 1, 1));
  bench_direct(*tier, peak, square(1024, 256, 14, 1, 1));
  bench_direct(*tier, peak, square(2048, 512, 7, 1, 1));
  bench_direct(*tier, peak, square(256, 512, 56, 1, 2));
  bench_direct(*tier, peak, square(24, 144, 56, 1, 1));
  bench_direct(*tier, peak, square(96, 576, 14, 1, 1));
  for (int64_t tile : {2, 4, 6}) {
    bench_winograd(*tier, peak, same(64, 64, 56, 3, 3), tile, 28);
    bench_winograd(*tier, peak, same(128, 128, 28, 3, 3), tile, 28);
    bench_winograd(*tier, peak, same(256, 256, 14, 3, 3), tile, 28);
    bench_winograd(*tier, peak, same(512, 512, 7, 3, 3), tile, 28);
    bench_winograd(*tier, peak, same(192, 192, 17, 1, 7), tile, 28);
    bench_winograd(*tier, peak, same(192, 192, 17, 7, 1), tile, 28);
    bench_winograd(*tier, peak, same(384, 384, 8, 1, 3), tile, 28);
  }
  for (int64_t tile : {2, 4}) {
    bench_winograd(*tier, peak, same(48, 64, 35, 5, 5), tile, 28);
    bench_winograd(*tier, peak, same(32, 128, 14, 5, 5), tile, 28);
  }
  bench_depthwise(*tier, peak, 32, 112, 3, 1);
  bench_depthwise(*tier, peak, 96, 112, 3, 2);
  bench_depthwise(*tier, peak, 384, 14, 3, 1);
  bench_depthwise(*tier, peak, 240, 28, 5, 1);
  bench_gemm(*tier, peak, 128, 768, 768, true);
  bench_gemm(*tier, peak, 128, 768, 768, false);
  bench_gemm(*tier, peak, 1, 1000, 2048, true);
  return 0;
}

}  // namespace
}  // namespace neo

int main(int argc, char** argv) {
  return neo::run(argc > 1 ? argv[1] : "");
}
