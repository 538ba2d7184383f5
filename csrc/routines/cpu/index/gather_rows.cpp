#include <cstring>

#include "base/check.h"
#include "exec/strided_step.h"
#include "routines/cpu/index/index.h"
#include "routines/families.h"
#include "routines/patterns/epilogue.h"
#include "routines/patterns/movement.h"

namespace neo {
namespace {

// The runs of elements that indices name.
struct GatheredRuns {
  int64_t outer = 1;   // batches, each with data of its own
  int64_t extent = 1;  // elements of the data of a batch
  int64_t run = 1;     // elements of a run
  int64_t count = 1;   // runs of a batch
  Dims axes;           // of data that a tuple of indices counts along
  bool shared = true;  // batches have the same indices
};

// Runs on the host, where an index outside its axis can be an error.
class GatherRowsStep final : public GatherStep {
 public:
  GatherRowsStep(const Node& node, int data, int indices) : data_(data), indices_(indices) {
    copy_outline(node, node_);
  }

  std::optional<int64_t> gathered_axis() const override {
    if (node_.op != "Gather" || data_ != 0 || indices_ != 1) return std::nullopt;
    return node_.int_attr("axis", 0);
  }

  void run(std::span<const HostValue> inputs, std::span<HostValue> outputs, Team&) const override {
    ReferenceContext ctx(node_, inputs, outputs);
    const Tensor &x = ctx.input(data_), &indices = ctx.input(indices_);
    Dims dims;
    const GatheredRuns runs =
        node_.op == "Gather" ? read_gather(ctx, x, indices, dims) : read_nd(ctx, x, indices, dims);
    const Tensor& y = ctx.output(0, x.dtype(), dims);
    if (y.size() == 0) return check_all(ctx, runs, indices);
    if (indices.dtype() == DType::Int32) {
      gather_all(ctx, runs, x, indices.as<int32_t>(), y);
    } else {
      gather_all(ctx, runs, x, indices.as<int64_t>(), y);
    }
  }

 private:
  static GatheredRuns read_gather(ReferenceContext& ctx, const Tensor& x, const Tensor& indices, Dims& dims) {
    ctx.check(x.rank() >= 1, "data must have a rank of at least 1. Got a scalar");
    const int axis = ctx.axis(ctx.node().int_attr("axis", 0), x.rank());
    dims.assign(x.dims().begin(), x.dims().begin() + axis);
    dims.insert(dims.end(), indices.dims().begin(), indices.dims().end());
    dims.insert(dims.end(), x.dims().begin() + axis + 1, x.dims().end());
    GatheredRuns runs;
    runs.outer = count_between(x.dims(), 0, axis);
    runs.extent = count_between(x.dims(), axis, x.rank());
    runs.run = count_between(x.dims(), axis + 1, x.rank());
    runs.count = indices.size();
    runs.axes = {x.dims()[static_cast<size_t>(axis)]};
    return runs;
  }

  static GatheredRuns read_nd(ReferenceContext& ctx, const Tensor& x, const Tensor& indices, Dims& dims) {
    const Dims& shape = indices.dims();
    const auto batch = static_cast<int>(ctx.node().int_attr("batch_dims", 0));
    ctx.check(!shape.empty(), "indices must have a rank of at least 1. Got a scalar");
    const auto depth = static_cast<int>(shape.back());
    if (batch + depth > x.rank() || batch >= static_cast<int>(shape.size()))
      ctx.fail(ErrorKind::Shape, str("the last axis of indices must fit data's rank. Got indices ", to_string(shape),
                                     " for ", to_string(x.dims())));
    if (!std::equal(shape.begin(), shape.begin() + batch, x.dims().begin()))
      ctx.fail(ErrorKind::Shape, str("data and indices must agree on the batch axes. Got ", to_string(x.dims()),
                                     " and ", to_string(shape)));
    dims.assign(shape.begin(), shape.end() - 1);
    dims.insert(dims.end(), x.dims().begin() + batch + depth, x.dims().end());
    GatheredRuns runs;
    runs.outer = count_between(x.dims(), 0, batch);
    runs.extent = count_between(x.dims(), batch, x.rank());
    runs.run = count_between(x.dims(), batch + depth, x.rank());
    runs.count = count_between(shape, batch, static_cast<int>(shape.size()) - 1);
    runs.axes.assign(x.dims().begin() + batch, x.dims().begin() + batch + depth);
    runs.shared = false;
    return runs;
  }

  // Indices must lie inside their axes where nothing is copied, too.
  static void check_all(const ReferenceContext& ctx, const GatheredRuns& runs, const Tensor& indices) {
    if (runs.outer == 0) return;
    const auto depth = static_cast<int64_t>(runs.axes.size());
    for (int64_t i = 0; i < indices.size(); ++i) {
      const int64_t index = indices.dtype() == DType::Int32 ? indices.as<int32_t>()[i] : indices.as<int64_t>()[i];
      index_inside(ctx, index, runs.axes[static_cast<size_t>(i % depth)]);
    }
  }

  template <class Index>
  static void gather_all(const ReferenceContext& ctx, const GatheredRuns& runs, const Tensor& x, const Index* indices,
                         const Tensor& y) {
    const int64_t item = item_bytes(x.dtype()), run = runs.run * item;
    const auto* from = x.as<std::byte>();
    auto* to = y.as<std::byte>();
    with_width(run, [&](auto width) {
      for (int64_t o = 0; o < runs.outer; ++o) {
        const Index* next = runs.shared ? indices : indices + o * runs.count * std::ssize(runs.axes);
        gather<width>(ctx, runs, from + o * runs.extent * item, next, run, to + o * runs.count * run);
      }
    });
  }

  // `width`: bytes of a run; 0: as many as `bytes` says.
  template <int64_t width, class Index>
  static void gather(const ReferenceContext& ctx, const GatheredRuns& runs, const std::byte* from, const Index* next,
                     int64_t bytes, std::byte* to) {
    const int64_t step = width > 0 ? width : bytes;
    for (int64_t i = 0; i < runs.count; ++i, to += step) {
      int64_t at = 0;
      for (const int64_t size : runs.axes) at = at * size + index_inside(ctx, *next++, size);
      std::memcpy(to, from + at * step, static_cast<size_t>(step));
    }
  }

  Node node_;
  int data_;
  int indices_;
};

// Gather and GatherND with indices that only running tells.
class GatherRowsRoutine final : public RoutineOf<GatherRowsRoutine> {
 public:
  std::string_view name() const override { return "cpu/gather_rows"; }
  std::vector<std::string_view> roots() const override { return {"Gather", "GatherND"}; }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    const Node& node = workload.root();
    for (const Value* v : workload.inputs) {
      if (!v->type.is_tensor() || !v->shape().has_rank()) return "the rank of an input is not known";
    }
    if (!workload.outputs.front()->shape().has_rank()) return "the rank of the result is not known";
    if (node.inputs[0]->dtype() == DType::String) return "strings have owners of their own";
    const DType index = node.inputs[1]->dtype();
    if (index != DType::Int64 && index != DType::Int32) return "the indices are neither int32 nor int64";
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const Value* output = workload.outputs.front();
    Candidate c = Candidate::plain(workload);
    c.kind = Candidate::Kind::Host;
    const double bytes = schema_bytes(output->type, c.outputs.front());
    price(c, workload, {StepFamily::GatherRows, 0, gathered_runs(workload.root()), 1, bytes, bytes}, target);
    return {std::move(c)};
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target&, const OpRegistry&, PackedStore&) {
    const Node& node = candidate.workload->root();
    return std::make_unique<GatherRowsStep>(node, argument_of(candidate, node.inputs[0]),
                                            argument_of(candidate, node.inputs[1]));
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(gather_rows, GatherRowsRoutine)

}  // namespace neo
