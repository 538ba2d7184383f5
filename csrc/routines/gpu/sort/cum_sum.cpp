#include "base/check.h"
#include "routines/gpu/sort/lines.h"
#include "routines/gpu/sort/programs.h"
#include "routines/gpu/sort/scan.h"

namespace neo::gpu {

using namespace kernel;  // NOLINT: kernels read like the algorithm

namespace {

// The lines one after the other are one scan of segments of equal length.
class CumSum final : public Program {
 public:
  explicit CumSum(const CumSumChoice& choice) : choice_(choice) {
    kernels_.push_back(blocks_kernel());
    kernels_.push_back(scan_totals(choice.dtype, true));
    kernels_.push_back(add_kernel());
  }

  const std::vector<Kernel>& kernels() const override { return kernels_; }

  Launches launches(std::span<const Dims> shapes) const override {
    const Lines lines = Lines::of(shapes[0], choice_.axis);
    const int64_t n = lines.count * lines.size, blocks = blocks_of(n, kScanBlock);
    Launches out;
    if (n == 0) return out;
    out.temporaries = {blocks * item_bytes(choice_.dtype), blocks * 4, item_bytes(choice_.dtype)};
    out.launches.push_back({0, {n, lines.size, lines.inner, Operand{0}, Operand{1}, Temporary{0}, Temporary{1}}});
    if (blocks == 1) return out;
    out.launches.push_back({1, {blocks, Temporary{0}, Temporary{1}, Temporary{2}}});
    out.launches.push_back({2, {n, lines.size, lines.inner, Temporary{0}, Operand{1}}});
    return out;
  }

 private:
  std::string name_of(const char* kernel) const {
    return std::string(kernel) + "_" + std::string(neo::name(choice_.dtype)) + (choice_.exclusive ? "_exclusive" : "") +
           (choice_.reverse ? "_reverse" : "");
  }

  Expr place(Builder& b, const Expr& i, const Expr& size, const Expr& inner) const {
    const Expr line = i / size, at = i % size;
    return unproven(b, "place", line_place(line, choice_.reverse ? size - 1 - at : at, size, inner));
  }

  Kernel blocks_kernel() const {
    Builder b(name_of("cum_sum_blocks"));
    const Expr n = b.size("n", 1, kMaxElements), size = b.size("size", 1, kMaxElements);
    const Expr inner = b.size("inner", 1, kMaxElements);
    const Array x = b.input("x", choice_.dtype, n), y = b.output("y", choice_.dtype, n);
    const Array totals = b.output("totals", choice_.dtype, ceildiv(n, kScanBlock));
    const Array flags = b.output("flags", DType::Int32, ceildiv(n, kScanBlock));
    const Array read = b.registers("read", {choice_.dtype, 1}, 1);
    ScanKernel scan;
    scan.dtype = choice_.dtype;
    scan.exclusive = choice_.exclusive;
    scan.load = [&](const Expr& i) {
      const Expr from = place(b, i, size, inner);
      read[0] = 0;
      within(b, from, n, [&] { read[0] = x[from]; });
      return Expr(read[0]);
    };
    scan.starts = [&](const Expr& i) { return i % size == 0; };
    scan.store = [&](const Expr& i, const Expr& value) {
      const Expr to = place(b, i, size, inner);
      within(b, to, n, [&] { y[to] = value; });
    };
    scan_blocks(b, n, scan, totals, &flags);
    return b.finish();
  }

  // Adds what comes before a block to the elements of the line that goes on in it.
  Kernel add_kernel() const {
    Builder b(name_of("cum_sum_add"));
    const Expr n = b.size("n", 1, kMaxElements), size = b.size("size", 1, kMaxElements);
    const Expr inner = b.size("inner", 1, kMaxElements);
    const Array carried = b.input("carried", choice_.dtype, ceildiv(n, kScanBlock));
    const Array y = b.inout("y", choice_.dtype, n);
    const Expr block = b.group(0, "block", ceildiv(n, kScanBlock)), thread = b.local(0, "thread", kScanThreads);
    const Expr first = b.let("first", block * kScanBlock);
    const Expr before = b.let("before", carried[block]);
    const Expr count = b.let("count", min(min((size - first % size) % size, n - first), Expr(kScanBlock)));
    b.loop("i", 0, ceildiv(count, kScanThreads), [&](Expr i) {
      const Expr at = b.let("at", i * kScanThreads + thread);
      b.when(at < count, [&] {
        const Expr to = place(b, first + at, size, inner);
        within(b, to, n, [&] { y[to] = y[to] + before; });
      });
    });
    return b.finish();
  }

  CumSumChoice choice_;
  std::vector<Kernel> kernels_;
};

}  // namespace

std::unique_ptr<Program> make_cum_sum(const CumSumChoice& choice) {
  return std::make_unique<CumSum>(choice);
}

}  // namespace neo::gpu
