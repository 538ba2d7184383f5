#include "routines/gpu/recurrent/recurrent.h"

#include "programs.h"
#include "routines/gpu/storage.h"

namespace neo::gpu::tests {
namespace {

const Registered kRecurrent("recurrent", [](const Choice& c) {
  const auto number = [&](const char* name, int otherwise) { return static_cast<int>(c.number(name, otherwise)); };
  const RecurrentSchedule schedule{number("lanes", 8), number("rows", 1), number("threads", 8), number("by_depth", 0)};
  RecurrentLayer l;
  l.kind = static_cast<CellKind>(c.number("kind"));
  l.input = c.number("input");
  l.hidden = c.number("hidden");
  l.directions = c.number("directions", 1);
  l.reverse = c.number("reverse", 0) != 0;
  l.batch_first = c.number("batch_first", 0) != 0;
  int next = 1;
  for (const auto& [name, place] :
       {std::pair{"initial_h", &l.initial_h}, std::pair{"initial_c", &l.initial_c}, std::pair{"y", &l.y},
        std::pair{"final_h", &l.final_h}, std::pair{"final_c", &l.final_c}}) {
    if (c.number(name, 0) != 0) *place = next++;
  }
  return stored_program(make_recurrent(l, schedule), c.number("half", 0) != 0 ? DType::Float16 : DType::Float32);
});

}  // namespace
}  // namespace neo::gpu::tests
