#include "routines/gpu/search.h"

#include "base/check.h"

namespace neo::gpu {

std::string key_of(const DeviceModel& m) {
  return str(m.name, " ", m.gflops, " ", m.gbps, " ", m.launch_us, " ", m.matrix_gflops, " ", m.image_texels);
}

}  // namespace neo::gpu
