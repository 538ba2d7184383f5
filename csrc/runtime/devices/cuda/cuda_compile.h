#pragma once

#include <string>

namespace neo {

// CUDA C++ to machine code for a compute capability (87 is 8.7), by NVRTC, which needs no GPU. Without NVRTC: a
// Resource error. The compiler's message is in the error, with its line.
std::string compile_cuda(const std::string& text, int capability);

}  // namespace neo
