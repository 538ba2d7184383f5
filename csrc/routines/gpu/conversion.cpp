#include "routines/gpu/conversion.h"

#include <algorithm>

#include "base/check.h"
#include "kernel_ir/builder.h"
#include "routines/gpu/step.h"

namespace neo::gpu {
namespace {

using kernel::Builder;
using kernel::Expr;

constexpr int kThreads = 64;
constexpr int64_t kMostSize = int64_t{1} << 20;
constexpr int64_t kMostOuter = int64_t{1} << 16;

// The axis that a layout moves behind the others: blocked, or last as a whole.
struct Moved {
  int axis = -1;
  int64_t block = 0;  // 0: the whole axis
};

std::optional<Moved> moved_of(const Layout& layout) {
  const auto& order = layout.order();
  if (layout.is_blocked()) {
    if (layout.blocks().size() != 1 || !std::is_sorted(order.begin(), order.end())) return std::nullopt;
    const Layout::Block block = layout.blocks().front();
    return Moved{block.axis, block.size};
  }
  // 0, 2, 3, 1: one axis behind all others, which keep their order.
  if (order.empty()) return std::nullopt;
  std::vector<int> rest(order.begin(), order.end() - 1);
  if (!std::is_sorted(rest.begin(), rest.end())) return std::nullopt;
  return Moved{order.back(), 0};
}

// [outer, rows, columns] to [outer, columns, rows].
kernel::Kernel transpose(DType dtype) {
  Builder b(str("convert_transpose_", name(dtype)));
  const Expr outer = b.size("outer", 1, kMostOuter), rows = b.size("rows", 1, kMostSize),
             columns = b.size("columns", 1, kMostSize);
  const kernel::Array x = b.input("x", dtype, outer * rows * columns);
  const kernel::Array y = b.output("y", dtype, outer * rows * columns);
  const Expr row = b.let("row", b.group(0, "gr", ceildiv(rows, kThreads)) * kThreads + b.local(0, "lr", kThreads));
  const Expr column = b.group(1, "column", columns);
  const Expr o = b.group(2, "o", outer);
  b.when(row < rows, [&] { y[(o * columns + column) * rows + row] = x[(o * rows + row) * columns + column]; });
  return b.finish();
}

// [outer, channels, span] to [outer, blocks, span, block], padded with zeros; or back.
kernel::Kernel block_channels(DType dtype, int block, bool back) {
  Builder b(str(back ? "convert_unblock_" : "convert_block_", block, "_", name(dtype)));
  const Expr outer = b.size("outer", 1, kMostOuter), channels = b.size("channels", 1, kMostSize),
             span = b.size("span", 1, kMostSize);
  const Expr blocks = ceildiv(channels, block);
  const Expr plain_elements = outer * channels * span, blocked_elements = outer * blocks * span * block;
  const kernel::Array x = b.input("x", dtype, back ? blocked_elements : plain_elements);
  const kernel::Array y = b.output("y", dtype, back ? plain_elements : blocked_elements);
  const Expr s = b.let("s", b.group(0, "gs", ceildiv(span, kThreads)) * kThreads + b.local(0, "ls", kThreads));
  const Expr k = b.group(1, "k", blocks);
  const Expr o = b.group(2, "o", outer);
  b.when(s < span, [&] {
    b.loop("l", 0, block, [&](const Expr& l) {
      const Expr channel = k * block + l;
      const Expr plain = (o * channels + channel) * span + s;
      const Expr blocked = ((o * blocks + k) * span + s) * block + l;
      if (back) {
        b.when(channel < channels, [&] { y[plain] = x[blocked]; });
        return;
      }
      b.when(
          channel < channels, [&] { y[blocked] = x[plain]; }, [&] { y[blocked] = kernel::cast(0, dtype); });
    });
  });
  return b.finish();
}

class ConversionProgram final : public Program {
 public:
  ConversionProgram(DType dtype, const Layout& from, const Layout& to) {
    back_ = !from.is_plain();
    moved_ = *moved_of(back_ ? from : to);
    kernels_.push_back(moved_.block == 0 ? transpose(dtype)
                                         : block_channels(dtype, static_cast<int>(moved_.block), back_));
  }

  const std::vector<kernel::Kernel>& kernels() const override { return kernels_; }

  Launches launches(std::span<const Dims> shapes) const override {
    const Dims& dims = shapes.front();
    int64_t outer = 1, span = 1;
    for (size_t i = 0; i < dims.size(); ++i) {
      if (static_cast<int>(i) != moved_.axis) (static_cast<int>(i) < moved_.axis ? outer : span) *= dims[i];
    }
    const int64_t channels = dims[static_cast<size_t>(moved_.axis)];
    Launches out;
    if (outer * channels * span == 0) return out;
    // Channels last and back are the same transposition, of the sizes in another order.
    const bool swaps = moved_.block == 0 && back_;
    out.launches.push_back({0, {outer, swaps ? span : channels, swaps ? channels : span, Operand{0}, Operand{1}}});
    return out;
  }

 private:
  bool back_ = false;
  Moved moved_;
  std::vector<kernel::Kernel> kernels_;
};

}  // namespace

bool is_convertible(const Schema& from, const Schema& to) {
  if (from.dtype != to.dtype || from.scheme != to.scheme || from.layout.rank() != to.layout.rank()) return false;
  if (from.layout.is_plain() == to.layout.is_plain()) return false;
  return moved_of(from.layout.is_plain() ? to.layout : from.layout).has_value();
}

std::unique_ptr<Program> make_conversion_program(DType dtype, const Layout& from, const Layout& to) {
  return std::make_unique<ConversionProgram>(dtype, from, to);
}

std::unique_ptr<DeviceStep> make_conversion(const Type& type, const Schema& from, const Schema& to) {
  return make_step(make_conversion_program(type.dtype, from.layout, to.layout), {});
}

}  // namespace neo::gpu
