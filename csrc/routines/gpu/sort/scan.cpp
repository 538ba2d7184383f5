#include "routines/gpu/sort/scan.h"

#include "base/check.h"
#include "routines/gpu/sort/keys.h"

namespace neo::gpu {

using namespace kernel;  // NOLINT: kernels read like the algorithm

namespace {

// A sum, and whether a segment starts within it: (f, x) then (g, y) is (f | g, g ? y : x + y).
struct Pair {
  Expr flag, sum;
};

// The threads' pairs, scanned in local memory (Hillis and Steele).
class GroupScan {
 public:
  GroupScan(Builder& b, DType dtype)
      : b_(b),
        dtype_(dtype),
        flags_(b.shared("group_flags", DType::Int32, kScanThreads)),
        sums_(b.shared("group_sums", dtype, kScanThreads)) {}

  // The pair of all threads before this one.
  Pair before(const Expr& thread, const Pair& mine) const {
    flags_[thread] = mine.flag;
    sums_[thread] = mine.sum;
    b_.barrier();
    const Array flag = b_.registers("pair_flag", kInt, 1), sum = b_.registers("pair_sum", {dtype_, 1}, 1);
    for (int distance = 1; distance < kScanThreads; distance *= 2) {
      flag[0] = flags_[thread];
      sum[0] = sums_[thread];
      b_.when(thread >= distance, [&] {
        b_.when(flag[0] == 0, [&] { sum[0] = sums_[thread - distance] + sum[0]; });
        flag[0] = flag[0] | flags_[thread - distance];
      });
      b_.barrier();
      flags_[thread] = flag[0];
      sums_[thread] = sum[0];
      b_.barrier();
    }
    flag[0] = 0;
    sum[0] = 0;
    b_.when(thread >= 1, [&] {
      flag[0] = flags_[thread - 1];
      sum[0] = sums_[thread - 1];
    });
    return {b_.let("before_flag", flag[0]), b_.let("before_sum", sum[0])};
  }
  Pair all() const { return {flags_[kScanThreads - 1], sums_[kScanThreads - 1]}; }

 private:
  Builder& b_;
  DType dtype_;
  Array flags_, sums_;
};

}  // namespace

void scan_blocks(Builder& b, const Expr& n, const ScanKernel& scan, const Array& totals, const Array* flags) {
  NEO_ASSERT((flags != nullptr) == (scan.starts != nullptr), "segments have starts");
  const Expr block = b.group(0, "block", ceildiv(n, kScanBlock)), thread = b.local(0, "thread", kScanThreads);
  const GroupScan group(b, scan.dtype);
  const Expr first = b.let("first", min(block * kScanBlock + thread * kScanEach, n));
  const Expr last = b.let("last", min(first + kScanEach, n));
  const Array flag = b.registers("flag", kInt, 1), sum = b.registers("sum", {scan.dtype, 1}, 1);
  flag[0] = 0;
  sum[0] = 0;
  const auto start = [&](const Expr& i) {
    if (!scan.starts) return;
    b.when(scan.starts(i), [&] {
      flag[0] = 1;
      sum[0] = 0;
    });
  };
  b.loop("i", first, last, [&](Expr i) {
    start(i);
    sum[0] = sum[0] + scan.load(i);
  });
  const Pair before = group.before(thread, {flag[0], sum[0]});
  sum[0] = before.sum;
  b.loop("i", first, last, [&](Expr i) {
    start(i);
    const Expr earlier = b.let("earlier", sum[0]), now = b.let("now", earlier + scan.load(i));
    sum[0] = now;
    scan.store(i, scan.exclusive ? earlier : now);
  });
  b.when(thread == 0, [&] {
    totals[block] = group.all().sum;
    if (flags != nullptr) (*flags)[block] = group.all().flag;
  });
}

Kernel scan_totals(DType dtype, bool segmented) {
  Builder b(std::string("scan_totals_") + std::string(neo::name(dtype)) + (segmented ? "_segmented" : ""));
  const Expr blocks = b.size("blocks", 1, kMaxElements);
  const Array totals = b.inout("totals", dtype, blocks);
  std::vector<Array> flags;
  if (segmented) flags.push_back(b.input("flags", DType::Int32, blocks));
  const Array all = b.output("sum", dtype, 1);
  const Expr thread = b.local(0, "thread", kScanThreads);
  const GroupScan group(b, dtype);
  const Expr each = b.let("each", ceildiv(blocks, kScanThreads));
  const Expr first = b.let("first", min(thread * each, blocks)), last = b.let("last", min(first + each, blocks));
  const Array flag = b.registers("flag", kInt, 1), sum = b.registers("running", {dtype, 1}, 1);
  flag[0] = 0;
  sum[0] = 0;
  const auto step = [&](const Expr& i) {
    const Expr total = b.let("total", totals[i]);
    if (!segmented) {
      sum[0] = sum[0] + total;
      return;
    }
    const Expr start = b.let("start", flags[0][i]);
    b.when(
        start != 0, [&] { sum[0] = total; }, [&] { sum[0] = sum[0] + total; });
    flag[0] = flag[0] | start;
  };
  b.loop("i", first, last, step);
  const Pair before = group.before(thread, {flag[0], sum[0]});
  sum[0] = before.sum;
  b.loop("i", first, last, [&](Expr i) {
    const Expr carried = b.let("carried", sum[0]);
    step(i);
    totals[i] = carried;
  });
  b.when(thread == kScanThreads - 1, [&] { all[0] = sum[0]; });
  return b.finish();
}

}  // namespace neo::gpu
