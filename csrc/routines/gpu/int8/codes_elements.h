#pragma once

#include <memory>

#include "routines/gpu/program.h"
#include "routines/patterns/code_grid.h"
#include "routines/patterns/codes_eltwise.h"

// Programs over the elements of operands that are held alike, in any layout without padding lanes.
namespace neo::gpu {

// Threads of a group, and elements of a thread.
struct ElementsSchedule {
  int threads = 64;
  int elements = 4;
};

// From numbers to codes, or back.
std::unique_ptr<const Program> make_codes_linear(const CodeGrid& grid, bool quantizes,
                                                 const ElementsSchedule& schedule);
// y = table[x]; packed constants: the table.
std::unique_ptr<const Program> make_codes_table(const ElementsSchedule& schedule);
// How the channels of a value lie whose other operand has one element for each channel of each image.
enum class CodesRepeat : uint8_t { None, Planes, Last };
struct CodesBinaryForm {
  CodesEltwise of;
  CodesRepeat repeat = CodesRepeat::None;  // the other has an element for each channel of each image
  int x = 0, other = 1, y = 2;             // operands
};
std::unique_ptr<const Program> make_codes_binary(const CodesBinaryForm& form, const ElementsSchedule& schedule);

}  // namespace neo::gpu
