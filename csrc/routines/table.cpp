#include <algorithm>

#include "base/check.h"
#include "routines/routine.h"

namespace neo {

void RoutineTable::add(std::unique_ptr<Routine> routine) {
  NEO_ASSERT(!find(routine->name()), "two routines are called ", routine->name());
  routines_.push_back(std::move(routine));
}

const Routine* RoutineTable::find(std::string_view name) const {
  for (const auto& r : routines_) {
    if (r->name() == name) return r.get();
  }
  return nullptr;
}

std::vector<const Routine*> RoutineTable::for_root(std::string_view op) const {
  std::vector<const Routine*> found;
  std::vector<const Routine*> any;
  for (const auto& r : routines_) {
    const auto roots = r->roots();
    if (roots.empty()) {
      any.push_back(r.get());
    } else if (std::find(roots.begin(), roots.end(), op) != roots.end()) {
      found.push_back(r.get());
    }
  }
  found.insert(found.end(), any.begin(), any.end());
  return found;
}

}  // namespace neo
