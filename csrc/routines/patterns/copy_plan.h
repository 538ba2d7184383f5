#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "routines/routine.h"

namespace neo {

constexpr int kCopyAxes = 10;
constexpr int kCopyParts = 64;

// One strided copy: for every index, dst[sum i*to] = src[sum i*from].
struct CopyPart {
  int axes = 0;
  int64_t size[kCopyAxes];
  int64_t from[kCopyAxes];  // strides in elements; 0 repeats
  int64_t to[kCopyAxes];
  int64_t source = 0;       // argument it reads
  int64_t target = 0;       // argument it writes
  int64_t from_offset = 0;  // elements
  int64_t to_offset = 0;

  void add_axis(int64_t count, int64_t from_stride, int64_t to_stride);
};

// Joins neighbouring axes where both sides allow; where neither side is contiguous along the last axis of the other,
// brings the axis that is contiguous in the source beside the one that is so in the destination.
void order_axes(CopyPart& part);

struct CopyPlan {
  int64_t width = 4;  // bytes of an element
  // An output that is filled with one element before the parts are copied; -1: none.
  int64_t filled = -1;
  int64_t fill_count = 0;
  std::array<std::byte, 16> fill_element = {};
  int64_t parts = 0;
  CopyPart part[kCopyParts];
};

// Movement by strided copies of elements of a fixed size. Subclasses say which, by filling a plan that is empty but for
// the width.
class CopyPattern {
 public:
  virtual ~CopyPattern() = default;
  // The copy, with axes joined where that is possible.
  CopyPlan planned(std::span<const Arg> args) const;
  // The axis of a Concat whose first argument is its first part, and no other one; else -1.
  virtual int append_axis() const { return -1; }

 protected:
  virtual void plan(std::span<const Arg> args, CopyPlan& plan) const = 0;
};

// Why make_copy_pattern() does not take a workload.
std::optional<std::string> reject_copy(const Workload& workload);
// The copies of a Transpose, Slice, Split, Concat, Expand, Tile, DepthToSpace, SpaceToDepth, ConstantOfShape or
// Identity.
std::unique_ptr<CopyPattern> make_copy_pattern(const Workload& workload);
// The copy of a Transpose with this order of axes.
std::unique_ptr<CopyPattern> make_transpose_pattern(std::vector<int64_t> order);

}  // namespace neo
