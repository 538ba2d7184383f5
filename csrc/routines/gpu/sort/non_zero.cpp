#include "base/check.h"
#include "routines/gpu/sort/lines.h"
#include "routines/gpu/sort/programs.h"
#include "routines/gpu/sort/scan.h"

namespace neo::gpu {

using namespace kernel;  // NOLINT: kernels read like the algorithm

namespace {

constexpr int kNonZeroThreads = 64;

// A first stage that counts what is wanted before each element of a block.
Kernel count_blocks(DType dtype) {
  Builder b("count_blocks_" + std::string(neo::name(dtype)));
  const Expr n = b.size("n", 1, kMaxElements);
  const Array x = b.input("x", dtype, n), places = b.output("places", DType::Int32, n);
  const Array totals = b.output("totals", DType::Int32, ceildiv(n, kScanBlock));
  ScanKernel scan;
  scan.exclusive = true;
  scan.load = [&](const Expr& i) {
    const Expr value = b.let("value", x[i]);
    const Expr zero = is_float(dtype) ? real(0, {dtype, 1}) : integer(0, {dtype, 1});
    return select(value != zero, Expr(1), Expr(0));
  };
  scan.store = [&](const Expr& i, const Expr& value) { places[i] = value; };
  scan_blocks(b, n, scan, totals, nullptr);
  return b.finish();
}

// The wanted elements before element i: within its block, and in the blocks before.
Expr place_of(Builder& b, const Expr& i, const Expr& n, const Array& places, const Array& before) {
  const Expr blocks = ceildiv(n, kScanBlock), block = b.let("block", i / kScanBlock);
  const Array place = b.registers("place_held", kInt, 1);
  place[0] = places[i];
  within(b, block, blocks, [&] { place[0] = place[0] + before[block]; });
  return b.let("place", place[0]);
}

// Sets the count where there is nothing to count.
Kernel count_none() {
  Builder b("count_none");
  const Array count = b.output("count", DType::Int32, 1);
  const Expr thread = b.local(0, "thread", 1);
  b.when(thread == 0, [&] { count[0] = 0; });
  return b.finish();
}

class NonZero final : public DataDependentProgram {
 public:
  NonZero(DType dtype, int rank) : rank_(rank) {
    kernels_.push_back(count_blocks(dtype));
    kernels_.push_back(scan_totals(DType::Int32, false));
    kernels_.push_back(place_kernel(dtype));
    kernels_.push_back(count_none());
  }

  const std::vector<Kernel>& kernels() const override { return kernels_; }
  int counts() const override { return 1; }

  Launches count(std::span<const Dims> inputs) const override {
    const int64_t n = element_count(inputs[0]), blocks = blocks_of(n, kScanBlock);
    Launches out{temporaries(n), {}};
    if (n == 0) {
      out.launches.push_back({3, {Operand{1}}});
      return out;
    }
    out.launches.push_back({0, {n, Operand{0}, Temporary{0}, Temporary{1}}});
    out.launches.push_back({1, {blocks, Temporary{1}, Operand{1}}});
    return out;
  }

  std::vector<Dims> sizes(std::span<const Dims>, std::span<const int32_t> counts) const override {
    return {{rank_, counts[0]}};
  }

  Launches launches(std::span<const Dims> shapes) const override {
    const int64_t n = element_count(shapes[0]), found = shapes[1][1];
    Launches out{temporaries(n), {}};
    if (found == 0 || rank_ == 0) return out;
    KernelLaunch place{2, {n, found}};
    for (const int64_t d : shapes[0]) place.arguments.emplace_back(d);
    place.arguments.insert(place.arguments.end(), {Operand{0}, Temporary{0}, Temporary{1}, Operand{1}});
    out.launches.push_back(std::move(place));
    return out;
  }

 private:
  // Counts of wanted elements before each element of a block, and before each block.
  static std::vector<int64_t> temporaries(int64_t n) { return {n * 4, blocks_of(n, kScanBlock) * 4}; }

  Kernel place_kernel(DType dtype) const {
    Builder b("non_zero_place_" + std::string(neo::name(dtype)) + "_" + std::to_string(rank_));
    const Expr n = b.size("n", 1, kMaxElements);
    const Expr found = b.size("found", 1, kMaxElements / std::max(rank_, 1));
    std::vector<Expr> dims;
    for (int i = 0; i < rank_; ++i) dims.push_back(b.size("d" + std::to_string(i), 1, kMaxElements));
    const Array x = b.input("x", dtype, n), places = b.input("places", DType::Int32, n);
    const Array before = b.input("before", DType::Int32, ceildiv(n, kScanBlock));
    const Expr elements = found * std::max(rank_, 1);
    const Array y = b.output("y", DType::Int64, elements);
    const Expr i = b.let("i", b.group(0, "group", ceildiv(n, kNonZeroThreads)) * kNonZeroThreads +
                                  b.local(0, "thread", kNonZeroThreads));
    b.when(i < n, [&] {
      const Expr value = b.let("value", x[i]);
      const Expr zero = is_float(dtype) ? real(0, {dtype, 1}) : integer(0, {dtype, 1});
      b.when(value != zero, [&] {
        const Expr place = place_of(b, i, n, places, before);
        const Array rest = b.registers("rest", kInt, 1);
        rest[0] = i;
        within(b, place, found, [&] {
          for (int a = rank_ - 1; a >= 0; --a) {
            const Expr left = b.let("left", rest[0]);
            y[found * a + place] = cast(left % dims[static_cast<size_t>(a)], DType::Int64);
            rest[0] = left / dims[static_cast<size_t>(a)];
          }
        });
      });
    });
    return b.finish();
  }

  int rank_;
  std::vector<Kernel> kernels_;
};

class Compress final : public DataDependentProgram {
 public:
  Compress(DType dtype, int axis) : dtype_(dtype), axis_(axis) {
    kernels_.push_back(count_blocks(DType::UInt8));
    kernels_.push_back(scan_totals(DType::Int32, false));
    kernels_.push_back(copy_kernel());
    kernels_.push_back(count_none());
  }

  const std::vector<Kernel>& kernels() const override { return kernels_; }
  int counts() const override { return 1; }

  Launches count(std::span<const Dims> inputs) const override {
    const int64_t conditions = conditions_of(inputs), blocks = blocks_of(conditions, kScanBlock);
    Launches out{temporaries(conditions), {}};
    if (conditions == 0) {
      out.launches.push_back({3, {Operand{2}}});
      return out;
    }
    out.launches.push_back({0, {conditions, Operand{1}, Temporary{0}, Temporary{1}}});
    out.launches.push_back({1, {blocks, Temporary{1}, Operand{2}}});
    return out;
  }

  std::vector<Dims> sizes(std::span<const Dims> inputs, std::span<const int32_t> counts) const override {
    if (axis_ < 0) return {{counts[0]}};
    Dims dims = inputs[0];
    dims[static_cast<size_t>(axis_)] = counts[0];
    return {dims};
  }

  Launches launches(std::span<const Dims> shapes) const override {
    const Lines lines = lines_of(shapes[0]);
    const int64_t conditions = conditions_of(shapes), elements = element_count(shapes[2]);
    Launches out{temporaries(conditions), {}};
    if (elements == 0) return out;
    const int64_t found = shapes[2][static_cast<size_t>(std::max(axis_, 0))];
    out.launches.push_back({2,
                            {lines.count * lines.size, lines.size, lines.inner, conditions, found, elements, Operand{0},
                             Operand{1}, Temporary{0}, Temporary{1}, Operand{2}}});
    return out;
  }

 private:
  Lines lines_of(const Dims& dims) const {
    const Lines lines = Lines::of(dims, axis_);
    return axis_ < 0 ? Lines{1, lines.count, 1} : lines;
  }
  int64_t conditions_of(std::span<const Dims> shapes) const { return std::min(shapes[1][0], lines_of(shapes[0]).size); }
  static std::vector<int64_t> temporaries(int64_t n) { return {n * 4, blocks_of(n, kScanBlock) * 4}; }

  Kernel copy_kernel() const {
    Builder b("compress_copy_" + std::string(neo::name(dtype_)));
    const Expr n = b.size("n", 1, kMaxElements), size = b.size("size", 1, kMaxElements);
    const Expr inner = b.size("inner", 1, kMaxElements), conditions = b.size("conditions", 1, kMaxElements);
    const Expr found = b.size("found", 1, kMaxElements), elements = b.size("elements", 1, kMaxElements);
    const Array x = b.input("x", dtype_, n), condition = b.input("condition", DType::UInt8, conditions);
    const Array places = b.input("places", DType::Int32, conditions);
    const Array before = b.input("before", DType::Int32, ceildiv(conditions, kScanBlock));
    const Array y = b.output("y", dtype_, elements);
    const Expr i = b.let("i", b.group(0, "group", ceildiv(n, kNonZeroThreads)) * kNonZeroThreads +
                                  b.local(0, "thread", kNonZeroThreads));
    b.when(i < n, [&] {
      const Expr at = b.let("at", i / inner % size);
      within(b, at, conditions, [&] {
        b.when(condition[at] != integer(0, {DType::UInt8, 1}), [&] {
          const Expr place = place_of(b, at, conditions, places, before);
          const Expr to = unproven(b, "to", (i / inner / size * found + place) * inner + i % inner);
          within(b, to, elements, [&] { y[to] = x[i]; });
        });
      });
    });
    return b.finish();
  }

  DType dtype_;
  int axis_;
  std::vector<Kernel> kernels_;
};

}  // namespace

std::unique_ptr<DataDependentProgram> make_non_zero(DType dtype, int rank) {
  return std::make_unique<NonZero>(dtype, rank);
}

std::unique_ptr<DataDependentProgram> make_compress(DType dtype, int axis) {
  return std::make_unique<Compress>(dtype, axis);
}

}  // namespace neo::gpu
