#pragma once

#include "routines/target.h"

namespace neo {

// What a step does, for an estimate.
struct StepLoad {
  double arithmetic_us = 0;   // on one thread, while data moves
  double also_us = 0;         // on one thread, beside that
  double bytes = 0;           // that are read and written once
  double constant_bytes = 0;  // that are read once
  double tasks = 1;           // of equal size; 1: the calling thread does it all
};

// Microseconds on the target's team.
double step_us(const StepLoad& load, const Target& target);

// What a thread waits longer than estimates say that leave the caches beyond its own out, which is nothing on the
// machines that their figures come from: it reads so many bytes `times` times, again only what its own does not keep.
double far_us(double bytes, double times, const Target& target);

// Steps that move this much or less do not wake the team.
constexpr double kSerialBytes = 131072;

// Microseconds of one thread in so many cycles, one of which is a vector FMA.
double cycles_us(double cycles, const Target& target);

}  // namespace neo
