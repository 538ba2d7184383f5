#pragma once

#include <array>
#include <string>

namespace neo {

// Options beside the compute capability that machine code depends on.
inline constexpr std::array<const char*, 2> kCudaOptions{"--std=c++17", "--fmad=false"};

// CUDA C++ to machine code for a compute capability (87 is 8.7), by NVRTC, which needs no GPU; to PTX where the
// capability is younger than NVRTC. Without NVRTC: a Resource error. The compiler's message is in the error, with its
// line.
std::string compile_cuda(const std::string& text, int capability);

}  // namespace neo
