#pragma once

#include "ir/dtype.h"

namespace neo::gpu {

// An integer type of so many bytes: for what is only moved.
inline DType moved_dtype(int64_t bytes) {
  switch (bytes) {
    case 1:
      return DType::UInt8;
    case 2:
      return DType::UInt16;
    case 4:
      return DType::Int32;
    default:
      return DType::Int64;
  }
}

}  // namespace neo::gpu
