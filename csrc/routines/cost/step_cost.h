#pragma once

#include "routines/cost/target.h"

namespace neo {

// The families of kernels that have a row of fitted constants each (step_rows.inc).
enum class StepFamily : uint8_t {
#define NEO_STEP_ROW(family, ...) family,
#include "routines/cost/step_rows.inc"
#undef NEO_STEP_ROW
};
inline constexpr int kStepFamilies = 0
#define NEO_STEP_ROW(...) +1
#include "routines/cost/step_rows.inc"
#undef NEO_STEP_ROW
    ;
std::string_view name(StepFamily family);

// The work of a step in counts, without microseconds.
struct StepLoad {
  StepFamily family = StepFamily::Product;
  double cycles = 0;  // of one core, by the routine's count of vector instructions
  double runs = 0;    // loops that begin anew: rows, planes, stretches of memory
  double tasks = 0;   // of equal size; 1: the calling thread does it all; 0: as many as threads where much is moved
  double reads = 0;   // bytes, lanes of padding too
  double writes = 0;
};

// The constants of a family: what a counted cycle, run and byte take.
struct StepRow {
  double cycles = 1;      // of a core, for a counted cycle
  double run_cycles = 0;  // of a core, for a run
  double traffic = 1;     // times what reading as many bytes takes
  double fixed_us = 0;    // beside Machine::step_us
};
const StepRow& step_row(StepFamily family);

// Microseconds of a step on a target's team: the one formula of all but products. With a row of the caller's, to fit.
double step_us(const StepLoad& load, const Target& target);
double step_us(const StepLoad& load, const Target& target, const StepRow& row);

// Microseconds of one member for its part of so many bytes, from the nearest caches that hold them.
double traffic_us(double bytes, double speedup, const Machine& machine);

// The work of a step without a fitted row: of products, which trees trained on this formula correct (docs/tuning.md),
// and of every other routine that has no row of its own.
struct UnfittedLoad {
  double arithmetic_us = 0;   // on one thread, while data moves
  double bytes = 0;           // that are read and written once
  double constant_bytes = 0;  // that are read once
  double tasks = 0;           // of equal size; 1: the calling thread does it all; 0: by the bytes
};

// Microseconds on the target's team.
double unfitted_us(const UnfittedLoad& load, const Target& target);

// Whether a core's private cache keeps so many bytes while others pass by.
bool is_cache_resident(double bytes, const Target& target);

// Microseconds that a computing thread waits for bytes that it reads again from beyond its private cache.
double stream_us(double bytes);

// Microseconds that a thread waits for constants beyond the one reading by the whole team that estimates count. It
// reads them `times` times, from the second time on only those that its private cache does not keep. None where the
// shared cache is as near as on the machines that the figures of estimates come from.
double far_us(double bytes, double times, const Target& target);
// That of one byte that is not kept.
double far_byte_us(const Target& target);

// Steps that move this much or less do not wake the team.
constexpr double kSerialBytes = 131072;

// Microseconds of one thread in so many cycles, one of which is a vector FMA.
double cycles_us(double cycles, const Target& target);

}  // namespace neo
