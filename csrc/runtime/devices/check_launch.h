#pragma once

#include <string_view>

#include "exec/device.h"

namespace neo {

// Refuses programs and launches that a device cannot run, more clearly than a driver would: Unsupported errors.
void check_program(const DeviceInfo& info, std::string_view where, const ProgramSource& source);
void check_launch(const DeviceInfo& info, std::string_view where, const Launch& launch);
// A buffer of so many bytes can be on the device: a Memory error.
void check_allocation(const DeviceInfo& info, std::string_view where, int64_t bytes);
// A compiler's error: its log, with the source's line that it names first.
[[noreturn]] void fail_to_compile(std::string_view where, const std::string& text, const std::string& log);

}  // namespace neo
