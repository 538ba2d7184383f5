#include "base/check.h"
#include "ops/families.h"

namespace neo {

const OpRegistry& standard_ops() {
  static const OpRegistry ops = [] {
    OpRegistry all;
#define NEO_ADD(name) add_##name##_ops(all);
    NEO_OP_FILES(NEO_ADD)
#undef NEO_ADD
    return all;
  }();
  return ops;
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
  NEO_ASSERT(false, "no family has the operator ", op);
}

}  // namespace neo
