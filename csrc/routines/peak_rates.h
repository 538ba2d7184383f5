#pragma once

#include "base/isa.h"
#include "exec/team.h"
#include "routines/cost/machine.h"

namespace neo {

// The highest rates of a team with the kernels of an instruction set.
struct PeakRates {
  double gflops = 0;  // float32 multiply-adds on registers, two operations each
  double gbps = 0;    // reading from memory far larger than the caches
};

// Measured in about a tenth of a second: the best of a few rounds, so that other programs lower it little.
PeakRates measure_peak_rates(Isa isa, Team& team);

// The figures of this machine for estimates: the best of a few rounds of each, in about a second. Its cores are those
// of the team.
Machine measure_machine(Isa isa, Team& team);

}  // namespace neo
