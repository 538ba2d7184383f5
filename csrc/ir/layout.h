#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/shape.h"

namespace neo {

// How a tensor's elements lie in memory: an order of the logical axes, outermost first, then blocks split off axes,
// outermost first. NCHW16c of a 4-D tensor: order {0,1,2,3}, blocks {(1,16)}; its physical axes are N, C/16, H, W, 16.
// A blocked axis is padded to a multiple of its block; padding lanes hold zero.
class Layout {
 public:
  struct Block {
    int axis = 0;
    int64_t size = 1;
    friend bool operator==(const Block&, const Block&) = default;
  };

  Layout() = default;
  static Layout plain(int rank);
  static Layout permuted(std::vector<int> order);
  // Plain with axis 1 split into blocks of `block`: NCW8c, NCHW16c, NCDHW16c.
  static Layout channel_blocked(int rank, int64_t block);
  Layout(std::vector<int> order, std::vector<Block> blocks);

  int rank() const { return static_cast<int>(order_.size()); }
  const std::vector<int>& order() const { return order_; }
  const std::vector<Block>& blocks() const { return blocks_; }
  bool is_plain() const;
  bool is_blocked() const { return !blocks_.empty(); }
  int64_t block_of(int axis) const;  // the product of the blocks of an axis, 1 where there is none

  Dims physical_dims(const Dims& dims) const;
  bool has_padding(const Dims& dims) const;

  // Letters by rank: NCHW, NCW, NCDHW for 4, 3 and 5 axes of channel layouts, else ABC...; NCHW16c, NHWC. "scalar" for
  // rank 0.
  std::string to_string() const;
  static Layout parse(std::string_view text);
  friend bool operator==(const Layout&, const Layout&) = default;

 private:
  std::vector<int> order_;
  std::vector<Block> blocks_;
};

}  // namespace neo
