#include "routines/cpu/microkernel/used_kernels.h"
#include "routines/cpu/tier.h"

namespace neo {

thread_local const TileKernels& (*replace_tile_kernels)(const TileKernels&) = nullptr;
thread_local const StrassenKernels& (*replace_strassen_kernels)(const StrassenKernels&) = nullptr;

const TileKernels& tile_kernels_of(Isa isa) {
  const TileKernels& kernels = NEO_PICK_TIER(isa, tile_kernels)();
  return replace_tile_kernels ? replace_tile_kernels(kernels) : kernels;
}

const StrassenKernels& strassen_kernels_of(Isa isa) {
  const StrassenKernels& kernels = NEO_PICK_TIER(isa, strassen_kernels)();
  return replace_strassen_kernels ? replace_strassen_kernels(kernels) : kernels;
}

}  // namespace neo
