#pragma once

#include "routines/cost/target.h"

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

// Whether a core's private cache keeps so many bytes while others pass by.
bool is_cache_resident(double bytes, const Target& target);

// What a thread that computes waits for bytes that it reads again from beyond its private cache, in microseconds.
double stream_us(double bytes);

// What a thread waits longer for constants that it reads `times` times, again only those that its private cache does
// not keep, where estimates count one reading by the whole team: through caches as near as on the machines that their
// figures come from, reading again costs nothing more.
double far_us(double bytes, double times, const Target& target);
// That of one byte that is not kept.
double far_byte_us(const Target& target);

// Steps that move this much or less do not wake the team.
constexpr double kSerialBytes = 131072;

// Microseconds of one thread in so many cycles, one of which is a vector FMA.
double cycles_us(double cycles, const Target& target);

}  // namespace neo
