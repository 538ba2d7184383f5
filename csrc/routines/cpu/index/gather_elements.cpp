#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "routines/cpu/index/index.h"
#include "routines/patterns/epilogue.h"

namespace neo {
namespace {

// Runs on the host, where an index outside its axis can be an error.
class GatherElementsStep final : public HostStep {
 public:
  GatherElementsStep(const Node& node, int data, int indices) : data_(data), indices_(indices) {
    copy_outline(node, node_);
  }

  void run(std::span<const HostValue> inputs, std::span<HostValue> outputs) const override {
    ReferenceContext ctx(node_, inputs, outputs);
    const Tensor& x = ctx.input(data_);
    const Tensor& indices = ctx.input(indices_);
    const Dims& dims = indices.dims();
    NEO_CHECK(x.rank() == indices.rank(), Shape, node_.op, "data and indices must have one rank. Got ",
              to_string(x.dims()), " and ", to_string(dims), " - at ", node_.place());
    const auto axis = static_cast<size_t>(ctx.axis(node_.int_attr("axis", 0), x.rank()));
    const Tensor& y = ctx.output(0, x.dtype(), dims);
    if (y.size() == 0) return;
    for (size_t a = 0; a < dims.size(); ++a) {
      if (a != axis) checked_index(ctx, dims[a] - 1, x.dims()[a]);
    }
    with_width(item_bytes(x.dtype()), [&](auto width) { gather<width>(ctx, x, indices, axis, y); });
  }

 private:
  // Rows of the last axis, one after the other.
  template <int64_t width>
  static void gather(const ReferenceContext& ctx, const Tensor& x, const Tensor& indices, size_t axis,
                     const Tensor& y) {
    const Dims& dims = indices.dims();
    const Dims strides = dense_strides(x.dims());
    const int64_t size = x.dims()[axis], stride = strides[axis];
    const int64_t columns = dims.back();
    const int64_t column = axis + 1 == dims.size() ? 0 : 1;
    const Dims outer(dims.begin(), dims.end() - 1);
    std::vector<int64_t> row(outer.size(), 0);
    const auto* index = indices.as<int64_t>();
    const auto* from = x.as<std::byte>();
    auto* to = y.as<std::byte>();
    do {
      int64_t base = 0;
      for (size_t a = 0; a < row.size(); ++a) {
        if (a != axis) base += row[a] * strides[a];
      }
      for (int64_t j = 0; j < columns; ++j, to += width) {
        const int64_t at = base + index_inside(ctx, *index++, size) * stride + j * column;
        std::memcpy(to, from + at * width, static_cast<size_t>(width));
      }
    } while (next_index(row, outer));
  }

  Node node_;
  int data_;
  int indices_;
};

class GatherElementsRoutine final : public Routine {
 public:
  std::string_view name() const override { return "cpu/gather_elements"; }
  std::vector<std::string_view> roots() const override { return {"GatherElements"}; }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    const Node& node = workload.root();
    for (const Value* v : workload.inputs) {
      if (!v->type.is_tensor() || !v->shape().has_rank()) return "the rank of an input is not known";
    }
    if (node.inputs[0]->shape().rank() == 0) return "the input has no axis";
    if (node.inputs[0]->dtype() == DType::String) return "strings have owners of their own";
    if (node.inputs[1]->dtype() != DType::Int64) return "the indices are not int64";
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const Value* output = workload.outputs.front();
    Candidate c = Candidate::plain(workload);
    c.kind = Candidate::Kind::Host;
    Work work;
    work.bytes = output->shape().element_count() * Dim(8 + 2 * item_bytes(output->dtype()));
    Target alone = target;
    alone.threads = 1;
    c.cost.time_us = 1 + 4 * roofline_us(work, alone, 1);
    return {std::move(c)};
  }

  std::unique_ptr<Step> make(const Candidate& candidate, const Target& target, const OpRegistry& ops,
                             PackedStore& packed) const override {
    return make_step(candidate, target, ops, packed);
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target&, const OpRegistry&, PackedStore&) {
    const Node& node = candidate.workload->root();
    return std::make_unique<GatherElementsStep>(node, argument_of(candidate, node.inputs[0]),
                                                argument_of(candidate, node.inputs[1]));
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(gather_elements, GatherElementsRoutine)

}  // namespace neo
