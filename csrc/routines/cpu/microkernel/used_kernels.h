#pragma once

#include "base/isa.h"
#include "routines/cpu/microkernel/strassen_tile.h"
#include "routines/cpu/microkernel/tile.h"

namespace neo {

// The kernels of the strongest tier in `isa`.
const TileKernels& tile_kernels_of(Isa isa);
const StrassenKernels& strassen_kernels_of(Isa isa);

// A register block as a bit of what an export compiles (tile.isa.cpp, strassen_tile.isa.cpp).
constexpr uint64_t tile_bit(int vectors, int rows) {
  return uint64_t{1} << (16 * (vectors - 1) + rows);
}

// Finds out which register blocks a module runs: steps that this thread makes while one lives note down what they call.
// One at a time.
class UsedTiles {
 public:
  UsedTiles();
  ~UsedTiles();
  UsedTiles(const UsedTiles&) = delete;
  UsedTiles& operator=(const UsedTiles&) = delete;

  uint64_t rows() const;
  uint64_t columns() const;
  uint64_t strassen() const;

 private:
  const TileKernels& (*before_)(const TileKernels&);
  const StrassenKernels& (*strassen_before_)(const StrassenKernels&);
};

// Kernels that this thread's steps take in the place of a tier's; null: those.
extern thread_local const TileKernels& (*replace_tile_kernels)(const TileKernels&);
extern thread_local const StrassenKernels& (*replace_strassen_kernels)(const StrassenKernels&);

}  // namespace neo
