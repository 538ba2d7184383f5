#include <algorithm>

#include "base/check.h"
#include "routines/families.h"
#include "routines/patterns/movement.h"

namespace neo {
namespace {

constexpr std::string_view kReshapes[] = {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose"};

constexpr const char* kOuterAxis = "an outer axis has more than one element";

bool is_reshape(std::string_view op) {
  return std::find(std::begin(kReshapes), std::end(kReshapes), op) != std::end(kReshapes);
}

// A Transpose that only moves axes of size 1 keeps every element where it is.
bool keeps_order(const Node& node) {
  const Shape& shape = node.inputs.front()->shape();
  std::vector<int64_t> kept;
  for (int64_t axis : transpose_axes(node)) {
    if (!shape[static_cast<int>(axis)].is(1)) kept.push_back(axis);
  }
  return std::is_sorted(kept.begin(), kept.end());
}

bool outer_axes_are_one(const Shape& shape, int axis) {
  for (int i = 0; i < axis; ++i) {
    if (!shape[i].is(1)) return false;
  }
  return true;
}

Dim inner_elements(const Shape& shape, int axis) {
  Dim count = 1;
  for (int i = axis + 1; i < shape.rank(); ++i) count = count * shape[i];
  return count;
}

bool is_ranked_tensor(const Value* v) {
  return v->type.is_tensor() && v->shape().has_rank();
}

// Where the only part that a Gather takes begins along its axis; none where that, or whether there is one, is not
// known.
std::optional<int64_t> gathered_part(const Node& node) {
  const Value* index = node.inputs[1];
  const Shape& shape = node.inputs.front()->shape();
  const Dim& size = shape[normalized_axis(node, shape.rank())];
  if (!index->constant || index->constant->is_absent() || index->constant->size() != 1 || !size.is_constant())
    return std::nullopt;
  const int64_t given = load_ints(*index->constant).front(), part = given < 0 ? given + size.value() : given;
  return part >= 0 && part < size.value() ? std::optional(part) : std::nullopt;
}

// Reshapes, and slices, splits and single parts along the outermost axis that counts: the same memory under another
// shape.
class ViewRoutine final : public RoutineOf<ViewRoutine> {
 public:
  std::string_view name() const override { return "cpu/view"; }
  std::vector<std::string_view> roots() const override {
    return {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Slice", "Split", "Gather"};
  }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    const Node& node = workload.root();
    const Value* input = workload.root().inputs.front();
    if (!is_ranked_tensor(input)) return "the rank is not known";
    for (const Value* v : workload.outputs) {
      if (!is_ranked_tensor(v)) return "the rank of the result is not known";
    }
    if (input->is_constant()) return "the input is a constant";
    if (makes_sizes(node)) return "the size of the result is only known when it runs";
    if (node.op == "Transpose" && !keeps_order(node)) return "axes of more than one element move";
    if (is_reshape(node.op)) return std::nullopt;
    if (node.op == "Gather") {
      if (!gathered_part(node)) return "where the part begins is not known";
      const Shape& shape = input->shape();
      return outer_axes_are_one(shape, normalized_axis(node, shape.rank())) ? std::nullopt
                                                                            : std::optional<std::string>(kOuterAxis);
    }
    const auto ranges = slice_ranges(node);
    if (!ranges) return "where the parts begin is not known";
    for (const SliceRange& r : *ranges) {
      if (r.step != 1) return "the step is not 1";
      if (r.whole) continue;
      if (!outer_axes_are_one(input->shape(), r.axis)) return kOuterAxis;
    }
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const Node& node = workload.root();
    const Value* input = node.inputs.front();
    Candidate c = Candidate::reading(workload, {input});
    c.kind = Candidate::Kind::View;
    if (is_reshape(node.op)) {
      c.offsets = {Dim(0)};
      std::vector<Candidate> all{c};
      if (auto relabel = blocked_vector(c, input->shape(), target)) all.push_back(std::move(*relabel));
      return all;
    }
    if (node.op == "Gather") {
      const int axis = normalized_axis(node, input->shape().rank());
      c.offsets = {Dim(*gathered_part(node)) * inner_elements(input->shape(), axis)};
      return {std::move(c)};
    }
    const auto ranges = *slice_ranges(node);
    if (node.op == "Slice") {
      Dim offset = 0;
      for (const SliceRange& r : ranges) offset = offset + Dim(r.start) * inner_elements(input->shape(), r.axis);
      c.offsets = {offset};
    } else {
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        if (node.outputs[i]) c.offsets.push_back(Dim(ranges[i].start) * inner_elements(input->shape(), ranges[i].axis));
      }
    }
    return {std::move(c)};
  }

  static std::unique_ptr<Step> make_step(const Candidate&, const Target&, const OpRegistry&, PackedStore&) {
    NEO_ASSERT(false, "a view has no step");
    return nullptr;
  }

 private:
  // [N, C, 1, 1] held in channel blocks without padding is a plain [N, C].
  static std::optional<Candidate> blocked_vector(Candidate c, const Shape& shape, const Target& target) {
    if (shape.rank() < 3 || !shape[1].is_constant() || shape[1].value() % target.lanes() != 0) return std::nullopt;
    for (int i = 2; i < shape.rank(); ++i) {
      if (!shape[i].is(1)) return std::nullopt;
    }
    c.inputs.front()->layout = Layout::channel_blocked(shape.rank(), target.lanes());
    return c;
  }
};

// Whether routines hold a dtype in blocks of channels: float32, and codes of 8 bits.
bool is_blockable(DType dtype) {
  return dtype == DType::Float32 || dtype == DType::UInt8 || dtype == DType::Int8;
}

// Concat whose pieces are contiguous in the result: producers write them in place.
class ConcatInPlaceRoutine final : public RoutineOf<ConcatInPlaceRoutine> {
 public:
  std::string_view name() const override { return "cpu/concat_in_place"; }
  std::vector<std::string_view> roots() const override { return {"Concat"}; }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    const Node& node = workload.root();
    const Value* output = node.outputs.front();
    if (!is_ranked_tensor(output)) return "the rank is not known";
    if (output->dtype() == DType::String) return "strings have owners of their own";
    for (const Value* v : node.inputs) {
      if (!is_ranked_tensor(v)) return "the rank of an input is not known";
    }
    if (!outer_axes_are_one(output->shape(), normalized_axis(node, output->shape().rank()))) return kOuterAxis;
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const Node& node = workload.root();
    const Value* output = node.outputs.front();
    const int axis = normalized_axis(node, output->shape().rank());
    Candidate c = Candidate::plain(workload);
    c.kind = Candidate::Kind::ConcatInPlace;
    Dim offset = 0;
    bool blocks_fit = axis == 1 && output->shape().rank() >= 3 && is_blockable(output->dtype());
    for (const Value* v : node.inputs) {
      c.offsets.push_back(offset);
      offset = offset + v->shape().element_count();
      const Dim& channels = v->shape()[axis];
      blocks_fit = blocks_fit && channels.is_constant() && channels.value() % target.lanes() == 0;
    }
    std::vector<Candidate> all{c};
    if (blocks_fit) {
      const Layout blocked = Layout::channel_blocked(output->shape().rank(), target.lanes());
      for (auto& s : c.inputs) s->layout = blocked;
      c.outputs.front().layout = blocked;
      all.push_back(std::move(c));
    }
    return all;
  }

  static std::unique_ptr<Step> make_step(const Candidate&, const Target&, const OpRegistry&, PackedStore&) {
    NEO_ASSERT(false, "an assembled concatenation has no step");
    return nullptr;
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(view, ViewRoutine)
NEO_DEFINE_ROUTINE(concat_in_place, ConcatInPlaceRoutine)

}  // namespace neo
