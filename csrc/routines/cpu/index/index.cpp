#include "routines/cpu/index/index.h"

namespace neo {

void copy_outline(const Node& node, Node& outline) {
  outline.op = node.op;
  outline.name = node.name.empty() ? node.outputs.front()->name : node.name;
  outline.attrs = node.attrs;
}

bool is_inside(int64_t index, const Dim& size) {
  const int64_t least = size.range().lo;
  return index < 0 ? index >= -least : index < least;
}

void add_index_routines(RoutineTable& table) {
  add_scatter_nd_routines(table);
  add_gather_elements_routines(table);
  add_top_k_routines(table);
}

}  // namespace neo
