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

}  // namespace neo
