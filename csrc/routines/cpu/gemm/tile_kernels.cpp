#include "routines/cpu/gemm/tile_use.h"
#include "routines/cpu/tier.h"

namespace neo {

thread_local const TileKernels& (*replace_tile_kernels)(const TileKernels&) = nullptr;

const TileKernels& tile_kernels_of(Isa isa) {
  const TileKernels& kernels = NEO_PICK_TIER(isa, tile_kernels)();
  return replace_tile_kernels ? replace_tile_kernels(kernels) : kernels;
}

}  // namespace neo
