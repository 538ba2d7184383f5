#include "routines/gpu/channels.h"

#include <algorithm>
#include <vector>

#include "base/check.h"

namespace neo::gpu {

std::string channels_tag(int64_t together) {
  if (together == kAllChannels) return "nhwc";
  return together == 1 ? "nchw" : str("nchw", together, "c");
}

Layout channels_layout(int rank, int64_t together, int axis) {
  const Layout plain = Layout::plain(rank);
  if (together == 1) return plain;
  std::vector<int> order = plain.order();
  if (together != kAllChannels) return Layout(std::move(order), {{axis, together}});
  std::rotate(order.begin() + axis, order.begin() + axis + 1, order.end());
  return Layout::permuted(std::move(order));
}

}  // namespace neo::gpu
