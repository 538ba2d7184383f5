#include <cmath>

#include "base/check.h"
#include "routines/gpu/sort/keys.h"
#include "routines/gpu/vision/programs.h"

namespace neo::gpu {

using namespace kernel;  // NOLINT: kernels read like the algorithm

namespace {

constexpr int kPriorThreads = 64;

// One thread makes the boxes of one place.
class MultiboxPrior final : public Program {
 public:
  explicit MultiboxPrior(const MultiboxPriorChoice& choice) : choice_(choice) {
    NEO_ASSERT(!choice.sizes.empty() && !choice.ratios.empty(), "no boxes");
    for (const double size : choice.sizes) add(size, choice.ratios[0]);
    for (size_t i = 1; i < choice.ratios.size(); ++i) add(choice.sizes[0], choice.ratios[i]);
    kernels_.push_back(boxes_kernel());
  }

  const std::vector<Kernel>& kernels() const override { return kernels_; }

  Launches launches(std::span<const Dims> shapes) const override {
    const int64_t height = shapes[0][2], width = shapes[0][3];
    Launches out;
    if (height * width == 0) return out;
    const auto step = [&](size_t axis, int64_t size) {
      return choice_.steps[axis] > 0 ? choice_.steps[axis] : 1.0 / static_cast<double>(size);
    };
    KernelLaunch launch{
        0, {height * width, width, step(0, height), step(1, width), choice_.offsets[0], choice_.offsets[1]}};
    for (const auto& [across, down] : halves_) {
      launch.arguments.emplace_back(across * static_cast<double>(height) / static_cast<double>(width));
      launch.arguments.emplace_back(down);
    }
    launch.arguments.emplace_back(Operand{1});
    out.launches.push_back(std::move(launch));
    return out;
  }

 private:
  void add(double size, double ratio) {
    halves_.emplace_back(size * std::sqrt(ratio) / 2, size / std::sqrt(ratio) / 2);
  }

  Kernel boxes_kernel() const {
    const auto each = static_cast<int>(halves_.size());
    Builder b("multibox_prior_" + std::to_string(each) + (choice_.clip ? "_clip" : ""));
    const Expr places = b.size("places", 1, kMaxElements / (4 * each)), width = b.size("width", 1, kMaxElements);
    const Expr step_y = b.number("step_y", DType::Float32), step_x = b.number("step_x", DType::Float32);
    const Expr offset_y = b.number("offset_y", DType::Float32), offset_x = b.number("offset_x", DType::Float32);
    std::vector<Expr> across, down;
    for (int i = 0; i < each; ++i) {
      across.push_back(b.number("across" + std::to_string(i), DType::Float32));
      down.push_back(b.number("down" + std::to_string(i), DType::Float32));
    }
    const Array y = b.output("y", DType::Float32, places * (4 * each));
    const Expr at = b.let("at", b.group(0, "group", ceildiv(places, kPriorThreads)) * kPriorThreads +
                                    b.local(0, "thread", kPriorThreads));
    b.when(at < places, [&] {
      const Expr center_y = b.let("center_y", (cast(at / width, DType::Float32) + offset_y) * step_y);
      const Expr center_x = b.let("center_x", (cast(at % width, DType::Float32) + offset_x) * step_x);
      for (size_t i = 0; i < halves_.size(); ++i) {
        const Expr sides[] = {center_x - across[i], center_y - down[i], center_x + across[i], center_y + down[i]};
        for (int k = 0; k < 4; ++k) {
          const int place = static_cast<int>(i) * 4 + k;
          y[at * (4 * each) + place] = choice_.clip ? min(max(sides[k], 0.0f), 1.0f) : sides[k];
        }
      }
    });
    return b.finish();
  }

  MultiboxPriorChoice choice_;
  std::vector<std::pair<double, double>> halves_;  // half of the width, by height / width, and of the height
  std::vector<Kernel> kernels_;
};

}  // namespace

std::unique_ptr<Program> make_multibox_prior(const MultiboxPriorChoice& choice) {
  return std::make_unique<MultiboxPrior>(choice);
}

}  // namespace neo::gpu
