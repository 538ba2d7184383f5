#pragma once

#include <optional>
#include <span>
#include <vector>

#include "exec/growth.h"

namespace neo {

// The carried values of one loop that grow in place, inside one frame of its body. Their memory is kept for later
// calls.
class GrowingValues {
 public:
  // Before the first iteration of at most `trips`.
  void begin(const LoopItem& loop, int64_t trips);
  // Before a region is bound: room for what its steps append.
  void measure(const Block& body, size_t region, std::span<const HostValue> values, const SymbolValues& symbols);
  // Once it is bound: brings the past to the memory with room, and gives the value of the growth `index`.
  Tensor place(size_t index, const Tensor& past, DType dtype, const Dims& dims);
  // The parts of the growth's value that `indices` name, in memory with room; none where an index lies outside.
  std::optional<Tensor> gather(size_t index, const Tensor& whole, const Tensor& indices);
  // After the last iteration: replaces what lies in memory with room by dense tensors, where the loop has a result.
  void end(std::vector<HostValue>& carried, std::span<const int> results) const;

  const std::vector<Growth>& growths() const { return growths_; }
  int64_t bytes() const;

 private:
  struct Memory {
    Tensor bytes, other;    // `other`: gathered parts are written there, and the two change places
    int64_t held_room = 0;  // the room by which it holds the value of the loop that runs; 0: it does not
  };

  bool has_looked_ = false;
  int64_t trips_ = 0;
  std::vector<Growth> growths_;
  std::vector<Memory> memory_;  // by growth
};

}  // namespace neo
