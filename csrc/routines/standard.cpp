#include "routines/families.h"

namespace neo {

const RoutineTable& standard_routines() {
  static const RoutineTable table = [] {
    RoutineTable t;
#define NEO_ADD(name) t.add(make_##name##_routine());
    NEO_ROUTINES(NEO_ADD)
#undef NEO_ADD
    return t;
  }();
  return table;
}

std::vector<std::string_view> standard_routine_makers() {
#define NEO_NAME(name) #name,
  return {NEO_ROUTINES(NEO_NAME)};
#undef NEO_NAME
}

}  // namespace neo
