#pragma once

namespace neo {

// From now on memory that is new is NaN, or is not, so that tests find what reads what nobody wrote. While nothing
// runs.
void poison_new_memory(bool on);

}  // namespace neo
