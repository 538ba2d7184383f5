#include <atomic>
#include <mutex>

#include "base/check.h"
#include "ops/families.h"
#include "ops/register.h"

namespace neo {
namespace {

const OpRegistry& own_ops() {
  static const OpRegistry ops = [] {
    OpRegistry all;
#define NEO_ADD(name) add_##name##_ops(all);
    NEO_OP_FILES(NEO_ADD)
#undef NEO_ADD
    return all;
  }();
  return ops;
}

std::atomic<const OpRegistry*>& current_ops() {
  static std::atomic<const OpRegistry*> current{&own_ops()};
  return current;
}

}  // namespace

const OpRegistry& standard_ops() {
  return *current_ops().load(std::memory_order_acquire);
}

void register_op(Op op) {
  static std::mutex mutex;
  static auto* const tables =
      new std::vector<std::unique_ptr<const OpRegistry>>();  // steps refer to them until the end
  NEO_CHECK(own_ops().find(op.name) == nullptr, Model, "register_op", "the name must not be an operator of neo. Got \"",
            op.name, "\"");
  const std::lock_guard lock(mutex);
  auto grown = std::make_unique<OpRegistry>();
  for (const Op* known : standard_ops().all()) {
    if (known->name != op.name) grown->add(*known);
  }
  grown->add(std::move(op));
  tables->push_back(std::move(grown));
  current_ops().store(tables->back().get(), std::memory_order_release);
}

std::string_view op_family(std::string_view op) {
#define NEO_FIND(name)                 \
  {                                    \
    OpRegistry family;                 \
    add_##name##_ops(family);          \
    if (family.find(op)) return #name; \
  }
  NEO_OP_FILES(NEO_FIND)
#undef NEO_FIND
  fail(ErrorKind::Unsupported, "export",
       str("an exported operator must be neo's own. Got \"", op, "\", which a program registered"));
}

}  // namespace neo
