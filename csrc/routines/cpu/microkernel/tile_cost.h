#pragma once

#include "routines/cost/target.h"
#include "routines/cpu/microkernel/tile.h"

namespace neo {

// Share of the FMA peak that register blocks of this many rows and vectors reach while they sum; `panel_bytes` are the
// weights that every block reads.
double tile_efficiency(double rows, double vectors, double panel_bytes, const Target& target);

// The same for a convolution over blocks of `ic_block` input channels: few of them make short loops, narrow blocks of
// output channels read the pixels more often.
double blocked_efficiency(double rows, double vectors, double panel_bytes, int64_t ic_block, const Target& target);

// Microseconds of `flops` operations at `efficiency` of the peak, in tasks of equal size, that read and write `bytes`
// once, and constants.
double tasks_us(double flops, double efficiency, int64_t tasks, double bytes, const Target& target,
                double constant_bytes = 0);

}  // namespace neo
