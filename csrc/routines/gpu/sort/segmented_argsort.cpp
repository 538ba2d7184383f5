#include "base/check.h"
#include "routines/gpu/sort/keys.h"
#include "routines/gpu/sort/programs.h"

namespace neo::gpu {

using namespace kernel;  // NOLINT: kernels read like the algorithm

namespace {

constexpr int kSegmentedSortThreads = 64;

class SegmentedArgsort final : public Program {
 public:
  SegmentedArgsort(bool falling, const SortSchedule& schedule) : sort_(DType::Int64, schedule, kernels_) {
    flatten_ = static_cast<int>(kernels_.size());
    kernels_.push_back(flatten_kernel(falling));
    kernels_.push_back(copy_kernel());
  }

  const std::vector<Kernel>& kernels() const override { return kernels_; }

  Launches launches(std::span<const Dims> shapes) const override {
    const int64_t n = shapes[0][0], segments = shapes[1][0] - 1;
    Launches out;
    if (n == 0) return out;
    int64_t halvings = 1;
    while ((int64_t{1} << (halvings - 1)) <= segments) ++halvings;
    out.temporaries.push_back(n * 8);
    out.launches.push_back({flatten_, {n, segments, halvings, Operand{0}, Operand{1}, Temporary{0}}});
    const int order = sort_.append(out, 0, 1, n, n);
    out.launches.push_back({flatten_ + 1, {n, Temporary{order}, Operand{2}}});
    return out;
  }

 private:
  // The number of an element's segment is found by halving; empty ones have no elements.
  static Kernel flatten_kernel(bool falling) {
    Builder b(std::string("flatten_segments_float32") + (falling ? "_falling" : ""));
    const Expr n = b.size("n", 1, kMaxElements), segments = b.size("segments", 1, kMaxElements);
    const Expr halvings = b.size("halvings", 1, 32);
    const Array x = b.input("x", DType::Float32, n), offsets = b.input("offsets", DType::Int32, segments + 1);
    const Array keys = b.output("keys", DType::Int64, n);
    const Expr i = b.let("i", b.group(0, "group", ceildiv(n, kSegmentedSortThreads)) * kSegmentedSortThreads +
                                  b.local(0, "thread", kSegmentedSortThreads));
    b.when(i < n, [&] {
      // The last segment that starts at i or before.
      const Array low = b.registers("low", kInt, 1), high = b.registers("high", kInt, 1);
      low[0] = 0;
      high[0] = segments;
      b.loop("halving", 0, halvings, [&](Expr) {
        const Expr half = b.let("half", (low[0] + high[0] + 1) >> 1);
        b.when(low[0] < high[0] && half >= 0 && half < segments + 1, [&] {
          b.when(
              offsets[half] <= i, [&] { low[0] = half; }, [&] { high[0] = half - 1; });
        });
      });
      const Expr value = b.let("value", x[i]);
      const Expr key = cast(bitcast(ordered_key(value, falling), DType::UInt32) ^
                                bitcast(make(kernel::Op::BitNot, {Expr(kLastKey)}), DType::UInt32),
                            DType::Int64);
      keys[i] = (cast(low[0], DType::Int64) << integer(32, {DType::Int64, 1})) | key;
    });
    return b.finish();
  }

  static Kernel copy_kernel() {
    Builder b("segmented_order");
    const Expr n = b.size("n", 1, kMaxElements);
    const Array from = b.input("from", DType::Int32, n), to = b.output("to", DType::Int32, n);
    const Expr i = b.let("i", b.group(0, "group", ceildiv(n, kSegmentedSortThreads)) * kSegmentedSortThreads +
                                  b.local(0, "thread", kSegmentedSortThreads));
    b.when(i < n, [&] { to[i] = from[i]; });
    return b.finish();
  }

  std::vector<Kernel> kernels_;
  Argsort sort_;
  int flatten_ = 0;
};

}  // namespace

std::unique_ptr<Program> make_segmented_argsort(bool falling, const SortSchedule& schedule) {
  return std::make_unique<SegmentedArgsort>(falling, schedule);
}

}  // namespace neo::gpu
