#pragma once

namespace neo {

// What estimates need to know of a core beyond its instruction set and the sizes of its caches.
struct Core {
  // Of 512 bits per cycle. One, by most cores that have them, by two halves or by two units of 256 bits together; two,
  // by those of servers. 0 without such instructions.
  int wide_fmas = 0;
  // Cores on a mesh reach the last cache through it, several times as slowly as those of small groups around one.
  bool has_mesh = false;
};

// This host's; measured at the first call, in less than a millisecond.
const Core& host_core();

}  // namespace neo
