#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/check.h"
#include "base/int_math.h"
#include "routines/cost/step_cost.h"
#include "routines/cpu/tasks.h"
#include "routines/families.h"
#include "routines/patterns/epilogue.h"
#include "routines/patterns/movement.h"

namespace neo {
namespace {

// DepthToSpace [, Slice of rows and columns], where neighbouring channels of a phase of the block stay neighbours.
struct DepthToSpace {
  const Value* x = nullptr;
  const Value* y = nullptr;
  int64_t block = 0, channels = 0;  // the latter of y
  int64_t cut[2] = {0, 0};          // rows and columns before the first one that the Slice takes

  static std::optional<DepthToSpace> read(const Workload& workload, std::string* why) {
    const auto reject = [&](const char* reason) {
      if (why) *why = reason;
      return std::nullopt;
    };
    const Node& node = *workload.nodes.front();
    DepthToSpace p;
    p.x = node.inputs[0];
    p.y = workload.outputs.front();
    p.block = node.int_attr("blocksize", 1);
    if (node.op != "DepthToSpace") return reject("nothing is unfolded");
    if (node.string_attr("mode", "DCR") != "DCR") return reject("neighbouring channels part");
    if (!p.x->type.is_tensor() || !p.x->shape().has_rank() || p.x->shape().rank() != 4 || !p.y->shape().has_rank() ||
        !p.x->shape()[1].is_constant())
      return reject("the channels are not known");
    if (p.x->dtype() == DType::String) return reject("elements are strings");
    p.channels = p.x->shape()[1].value() / (p.block * p.block);
    if (p.channels == 0) return reject("there are no channels");
    if (&workload.root() == &node) return p;
    const auto ranges = slice_ranges(workload.root());
    if (!ranges) return reject("the Slice is not known");
    for (const SliceRange& range : *ranges) {
      if (range.step != 1 || range.axis < 2 || range.start < 0) return reject("the Slice takes more than an edge off");
      p.cut[range.axis - 2] = range.start;
    }
    return p;
  }

  // Channels that are copied at once.
  int64_t run(int64_t lanes) const { return std::gcd(channels, lanes); }
};

struct DepthToSpaceCall {
  int64_t images = 0, blocks = 0, rows = 0, columns = 0;  // of y
  int64_t x_columns = 0, x_batch = 0, x_block = 0, y_batch = 0, y_block = 0;
  TaskSplit split;
};

template <int64_t kBytes>
void copy_pixels(std::byte* to, int64_t to_step, const std::byte* from, int64_t from_step, int64_t count) {
  for (int64_t i = 0; i < count; ++i, to += to_step, from += from_step) std::memcpy(to, from, kBytes);
}

class DepthToSpaceStep final : public KernelStep {
 public:
  DepthToSpaceStep(const DepthToSpace& p, const Target& target)
      : block_(p.block),
        channels_(p.channels),
        cut_{p.cut[0], p.cut[1]},
        lanes_(target.lanes()),
        item_(item_bytes(p.x->dtype())),
        run_(p.run(target.lanes())) {}

  Prepared prepare(std::span<const Arg> args) const override {
    const Arg &x = args[0], &y = args[1];
    NEO_ASSERT(x.strides.back() == 1 && x.strides[3] == lanes_ && x.strides[2] == x.dims[3] * lanes_ &&
                   y.strides[3] == lanes_ && y.strides[2] == y.dims[3] * lanes_,
               "the pixels of an image are not dense");
    DepthToSpaceCall call;
    call.images = y.dims[0];
    call.blocks = ceil_div(channels_, lanes_);
    call.rows = y.dims[2];
    call.columns = y.dims[3];
    call.x_columns = x.dims[3];
    call.x_batch = x.strides[0];
    call.x_block = x.strides[1];
    call.y_batch = y.strides[0];
    call.y_block = y.strides[1];
    const int64_t bytes = call.images * call.blocks * call.rows * call.columns * lanes_ * item_;
    call.split = TaskSplit::of(call.images * call.blocks * call.rows, kOperationsOfByte * bytes);
    return Prepared::of(call);
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte*, Team& team) const override {
    const auto& call = *reinterpret_cast<const DepthToSpaceCall*>(prepared);
    run_tasks(team, call.split, [&](int64_t begin, int64_t end, int) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t row = task % call.rows, block = task / call.rows % call.blocks;
        move_row(call, args, task / call.rows / call.blocks, block, row);
      }
    });
  }

  static constexpr int64_t kOperationsOfByte = 2;  // as a measure of what is worth sharing

 private:
  void move_row(const DepthToSpaceCall& call, std::byte* const* args, int64_t image, int64_t block, int64_t row) const {
    const int64_t pixel = lanes_ * item_, line = (row + cut_[0]) / block_, row_phase = (row + cut_[0]) % block_;
    const std::byte* x = args[0] + image * call.x_batch * item_ + line * call.x_columns * pixel;
    std::byte* y = args[1] + (image * call.y_batch + block * call.y_block) * item_ + row * call.columns * pixel;
    if (channels_ - block * lanes_ < lanes_) std::memset(y, 0, static_cast<size_t>(call.columns * pixel));
    for (int64_t phase = 0; phase < block_; ++phase) {
      // Columns of x whose column of this phase y has.
      const int64_t begin = std::max<int64_t>(0, ceil_div(cut_[1] - phase, block_));
      const int64_t end = ceil_div(call.columns + cut_[1] - phase, block_);
      for (int64_t c = 0; c < std::min(lanes_, channels_ - block * lanes_); c += run_) {
        const int64_t channel = (row_phase * block_ + phase) * channels_ + block * lanes_ + c;
        const std::byte* from = x + channel / lanes_ * call.x_block * item_ + channel % lanes_ * item_ + begin * pixel;
        std::byte* to = y + (begin * block_ + phase - cut_[1]) * pixel + c * item_;
        copy_columns(to, from, pixel, end - begin);
      }
    }
  }

  void copy_columns(std::byte* to, const std::byte* from, int64_t pixel, int64_t count) const {
    switch (run_ * item_) {
      case 16:
        return copy_pixels<16>(to, block_ * pixel, from, pixel, count);
      case 8:
        return copy_pixels<8>(to, block_ * pixel, from, pixel, count);
      case 4:
        return copy_pixels<4>(to, block_ * pixel, from, pixel, count);
      default:
        for (int64_t i = 0; i < count; ++i)
          std::memcpy(to + i * block_ * pixel, from + i * pixel, static_cast<size_t>(run_ * item_));
    }
  }

  int64_t block_, channels_, cut_[2], lanes_, item_, run_;
};

// Channels that become pixels, in blocks of channels.
class DepthToSpaceRoutine final : public RoutineOf<DepthToSpaceRoutine> {
 public:
  std::string_view name() const override { return "cpu/depth_to_space_nchwc"; }
  std::vector<std::string_view> roots() const override { return {"DepthToSpace", "Slice"}; }

  std::vector<Workload> matches(const Node& root, const Graph::Users& users, const Graph& graph) const override {
    if (root.op == "DepthToSpace") return {Workload::of(root)};
    const Node* source = root.inputs[0]->producer;
    if (!source || source->op != "DepthToSpace" || !read_only_by_one(root.inputs[0], users, graph)) return {};
    return {Workload::of({source, &root})};
  }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    std::string why;
    return DepthToSpace::read(workload, &why) ? std::nullopt : std::optional(why);
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const DepthToSpace p = *DepthToSpace::read(workload, nullptr);
    Candidate c = Candidate::reading(workload, {p.x});
    const Layout layout = Layout::channel_blocked(4, target.lanes());
    c.inputs[static_cast<size_t>(workload.input_index(p.x))]->layout = layout;
    c.outputs.front().layout = layout;
    constexpr double kRunCycles = 3;
    const double elements = static_cast<double>(element_count(p.y->shape().hint_dims()));
    UnfittedLoad load;
    load.arithmetic_us = cycles_us(kRunCycles * elements / static_cast<double>(p.run(target.lanes())), target);
    // Lanes of padding are written, too.
    load.bytes = elements * static_cast<double>(item_bytes(p.x->dtype())) + schema_bytes(p.y->type, c.outputs.front());
    c.cost.time_us = unfitted_us(load, target);
    return {std::move(c)};
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore&) {
    return std::make_unique<DepthToSpaceStep>(*DepthToSpace::read(*candidate.workload, nullptr), target);
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(depth_to_space, DepthToSpaceRoutine)

}  // namespace neo
