#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/isa.h"

namespace neo {

// A middling core of one tier. Estimates need the ratios of these figures, not their values.
struct CoreFigures {
  Isa isa;
  int lanes = 0;         // float32 of one vector
  double ghz = 0;        // clock at work
  double gflops = 0;     // float32 operations, 10^9 per second, two per multiply-add
  double l2_gbps = 0;    // 10^9 bytes per second that a product reads from the second cache
  int64_t l2_bytes = 0;  // of the second cache
};
// The arithmetic of cores that start two 512-bit multiply-adds per cycle.
inline constexpr double kWideGflops = 220;
// The core of the strongest tier in these instructions; as wide as the host's where `is_host`.
const CoreFigures& middling_core(Isa isa, bool is_host);

// One level of a core's memory.
struct CacheFigures {
  int64_t bytes = 0;  // of one instance
  double gbps = 0;    // 10^9 bytes per second that one core reads from it
};

// A machine as data. Estimates read these figures and never look at the host.
struct Machine {
  double ghz = 0;                     // clock of a core at work
  double gflops = 0;                  // float32 operations of a core, 10^9 per second, two per multiply-add
  std::array<CacheFigures, 3> cache;  // from the nearest on; 0 bytes: there is none
  double memory_gbps = 0;             // 10^9 bytes per second that one core reads from memory
  double shared_memory_gbps = 0;      // the same of all cores together
  double wake_us = 0;                 // to share a step with the team and to wait for its end
  double step_us = 0;                 // of every step, whatever it does

  // Figures of a middling core with these instructions; with caches of the host's sizes where `is_host`, or all of them
  // from the file that NEO_MACHINE names.
  static Machine of(Isa isa, bool is_host);

  // "ghz = 3.7" and so on, a figure a line.
  std::string to_text() const;
  // Reads to_text(); lines that begin with # are comments. A figure that is missing, not known or negative is an
  // Unsupported error that names the file, and so is 0 for the clock, the arithmetic or memory.
  static Machine parse(std::string_view text, std::string_view file);
};

}  // namespace neo
