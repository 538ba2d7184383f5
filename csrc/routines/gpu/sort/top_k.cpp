#include "base/check.h"
#include "routines/gpu/sort/lines.h"
#include "routines/gpu/sort/programs.h"

namespace neo::gpu {

using namespace kernel;  // NOLINT: kernels read like the algorithm

namespace {

constexpr int kTopKThreads = 64;

std::string name_of(const char* kernel, const TopKChoice& c) {
  return std::string(kernel) + "_" + std::string(neo::name(c.dtype)) + (c.largest ? "_largest" : "_smallest") +
         (c.values && c.indices ? ""
          : c.values            ? "_values"
                                : "_indices");
}

class TopK final : public Program {
 public:
  TopK(const TopKChoice& choice, const SortSchedule& schedule)
      : choice_(choice), sort_(key_dtype(choice.dtype), schedule, kernels_) {
    NEO_ASSERT(has_key(choice.dtype) && (choice.values || choice.indices), "for ", neo::name(choice.dtype));
    make_keys_ = static_cast<int>(kernels_.size());
    kernels_.push_back(keys_kernel());
    kernels_.push_back(pick_kernel());
  }

  const std::vector<Kernel>& kernels() const override { return kernels_; }

  Launches launches(std::span<const Dims> shapes) const override {
    const Lines lines = Lines::of(shapes[0], choice_.axis);
    const int64_t k = shapes[1][static_cast<size_t>(choice_.axis)], n = lines.count * lines.size;
    Launches out;
    if (n == 0 || k == 0) return out;
    out.temporaries.push_back(n * item_bytes(key_dtype(choice_.dtype)));
    out.launches.push_back({make_keys_, {n, lines.size, lines.inner, Operand{0}, Temporary{0}}});
    const int order = sort_.append(out, 0, lines.count, lines.size, k);
    KernelLaunch pick{make_keys_ + 1, {n, lines.size, lines.inner, k, lines.count * k, Temporary{order}}};
    int operand = 1;
    if (choice_.values) {
      pick.arguments.insert(pick.arguments.end(), {Operand{0}, Operand{operand++}});
    }
    if (choice_.indices) pick.arguments.emplace_back(Operand{operand});
    out.launches.push_back(std::move(pick));
    return out;
  }

 private:
  Kernel keys_kernel() const {
    Builder b(name_of("top_k_keys", choice_));
    const Expr n = b.size("n", 1, kMaxElements), size = b.size("size", 1, kMaxElements);
    const Expr inner = b.size("inner", 1, kMaxElements);
    const Array x = b.input("x", choice_.dtype, n), keys = b.output("keys", key_dtype(choice_.dtype), n);
    const Expr i =
        b.let("i", b.group(0, "group", ceildiv(n, kTopKThreads)) * kTopKThreads + b.local(0, "thread", kTopKThreads));
    b.when(i < n, [&] {
      const Expr from = unproven(b, "from", line_place(i / size, i % size, size, inner));
      within(b, from, n, [&] {
        const Expr value = b.let("value", x[from]);
        keys[i] = ordered_key(value, choice_.largest);
      });
    });
    return b.finish();
  }

  Kernel pick_kernel() const {
    Builder b(name_of("top_k_pick", choice_));
    const Expr n = b.size("n", 1, kMaxElements), size = b.size("size", 1, kMaxElements);
    const Expr inner = b.size("inner", 1, kMaxElements), k = b.size("k", 1, kMaxElements);
    const Expr wanted = b.size("wanted", 1, kMaxElements);
    const Array order = b.input("order", DType::Int32, n);
    std::vector<Array> values, indices;
    if (choice_.values) {
      values.push_back(b.input("x", choice_.dtype, n));
      values.push_back(b.output("values", choice_.dtype, wanted));
    }
    if (choice_.indices) indices.push_back(b.output("indices", DType::Int64, wanted));
    const Expr i = b.let(
        "i", b.group(0, "group", ceildiv(wanted, kTopKThreads)) * kTopKThreads + b.local(0, "thread", kTopKThreads));
    b.when(i < wanted, [&] {
      const Expr line = b.let("line", i / k), rank = b.let("rank", i % k);
      const Expr ranked = unproven(b, "ranked", line * size + rank);
      const Expr to = unproven(b, "to", line_place(line, rank, k, inner));
      b.when(ranked >= 0 && ranked < n && to >= 0 && to < wanted, [&] {
        const Expr position = b.let("position", order[ranked]);
        if (choice_.indices) indices[0][to] = cast(position, DType::Int64);
        if (!choice_.values) return;
        const Expr from = unproven(b, "from", line_place(line, position, size, inner));
        within(b, from, n, [&] { values[1][to] = values[0][from]; });
      });
    });
    return b.finish();
  }

  TopKChoice choice_;
  std::vector<Kernel> kernels_;
  Argsort sort_;
  int make_keys_ = 0;
};

}  // namespace

std::unique_ptr<Program> make_top_k(const TopKChoice& choice, const SortSchedule& schedule) {
  return std::make_unique<TopK>(choice, schedule);
}

}  // namespace neo::gpu
