#include "saved/operands.h"

#include "base/check.h"

namespace neo {
namespace {

bool is_ranked(const Type& type) {
  return type.is_tensor() && type.shape.has_rank();
}

// Equal as far as both say something: what a host step gives may have sizes that only its run tells.
bool agrees(const Type& a, const Type& b) {
  if (a.kind != b.kind || a.key() != b.key()) return false;
  if (!a.is_tensor()) return agrees(*a.element, *b.element);
  if (a.dtype != b.dtype) return false;
  if (!a.shape.has_rank() || !b.shape.has_rank()) return true;
  if (a.shape.rank() != b.shape.rank()) return false;
  for (int i = 0; i < a.shape.rank(); ++i) {
    if (a.shape[i].is_constant() && b.shape[i].is_constant() && a.shape[i] != b.shape[i]) return false;
  }
  return true;
}

void check_operand(const Slot& s, const SavedStep::Operand& operand, bool is_host, bool is_output) {
  const bool is_open = is_host && is_output && s.storage == Slot::Storage::Dynamic;
  const bool fits = is_open ? agrees(s.type, operand.type) : s.type == operand.type;
  NEO_CHECK(s.device == operand.schema.device, Model, "load", "a slot must be where its step runs. Got ",
            name(s.device), ", expected ", name(operand.schema.device), " - at \"", s.name, "\"");
  NEO_CHECK(fits && s.layout == operand.schema.layout && (!s.type.is_tensor() || s.type.dtype == operand.schema.dtype),
            Model, "load", "a slot must hold what its step takes. Got ", s.type.to_string(), " as ",
            s.layout.to_string(), ", expected ", operand.type.to_string(), " as ", operand.schema.to_string(),
            " - at \"", s.name, "\"");
  NEO_CHECK(is_host || is_ranked(s.type), Model, "load", "a kernel's operand must have a rank. Got ",
            s.type.to_string(), " - at \"", s.name, "\"");
  if (!operand.is_constant) return;
  // The routine may have looked at the elements: those must be what it runs on. Floats decide over no address.
  NEO_CHECK(s.storage == Slot::Storage::Constant, Model, "load",
            "a constant operand must have a constant's slot. Got \"", s.name, "\"");
  if (is_float(s.type.dtype)) return;
  NEO_CHECK(operand.constant, Model, "load", "a constant that is not of floats must be saved with its step. Got \"",
            s.name, "\"");
  const Schema plain = plain_schema(s.type);
  const Tensor expected = operand.schema.on(DeviceKind::Cpu) == plain
                              ? *operand.constant
                              : adapt_constant(*operand.constant, plain, operand.schema);
  NEO_CHECK(identical(expected, s.constant), Model, "load",
            "a constant operand must be the constant that its step was made from. Got another - at \"", s.name, "\"");
}

}  // namespace

void check_operands(const Block& block, const StepItem& item, const SavedStep& made) {
  NEO_CHECK(item.inputs.size() == made.reads.size() && item.outputs.size() == made.writes.size(), Model, "load",
            "a step must have a slot for every operand. Got ", item.inputs.size(), " and ", item.outputs.size(),
            ", expected ", made.reads.size(), " and ", made.writes.size());
  const bool is_host = item.step->kind() == Step::Kind::Host;
  const bool allocates = is_host || made.is_data_dependent;  // its outputs
  const auto slot = [&](int index) -> const Slot& { return block.slots[static_cast<size_t>(index)]; };
  for (size_t i = 0; i < item.inputs.size(); ++i) check_operand(slot(item.inputs[i]), made.reads[i], is_host, false);
  for (size_t i = 0; i < item.outputs.size(); ++i) {
    check_operand(slot(item.outputs[i]), made.writes[i], allocates, true);
    NEO_CHECK(allocates || slot(item.outputs[i]).storage != Slot::Storage::Dynamic, Model, "load",
              "a kernel must write to planned memory. Got \"", slot(item.outputs[i]).name, "\"");
  }
}

}  // namespace neo
