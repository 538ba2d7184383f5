#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/span.h"

namespace neo {

// Every environment variable that neo reads; knobs.cpp holds the one table. A knob is read each time it is
// asked for, so a change of the environment counts from the next use on; what keeps the value says so.
enum class Knob { MaxIsa, Machine, NumThreads, SpinUs, Pin, Verify, Device };

enum class KnobType {
  Bool,    // 0, 1, false, true, off, on
  Int,     // a decimal integer in [min, max]
  Choice,  // one of the words of `choices`
  Text,    // any text; empty is the same as unset
};

struct KnobInfo {
  Knob knob;
  const char* name;
  KnobType type;
  const char* default_value;
  int64_t min;          // Int only
  int64_t max;          // Int only
  const char* choices;  // Choice only: words separated by one blank
  const char* summary;  // one sentence
};

// All knobs, in the order of the enumeration.
Span<const KnobInfo> all_knobs();
const KnobInfo& get_knob_info(Knob knob);

// "bool", "int 0..1024", "off|on|auto", "text".
std::string knob_type_text(const KnobInfo& info);

// The value as the environment gives it, the default when it is unset or empty; not checked.
std::string knob_text(Knob knob);

// The checked value. The knob must be of that type (knob_string: Choice or Text);
// a bad value is an Unsupported error that names the variable, the value and what was expected.
bool knob_bool(Knob knob);
int64_t knob_int(Knob knob);
std::string knob_string(Knob knob);

}  // namespace neo
