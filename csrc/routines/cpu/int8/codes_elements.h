#pragma once

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/int_math.h"
#include "exec/step.h"
#include "routines/routine.h"

namespace neo {

// The elements of dense operands that are held alike.
struct DenseElements {
  int64_t count = 0;
  // Channel blocks with padding lanes: pixels of the last block of each image, which lie `image` elements apart.
  int64_t images = 0, image = 0, last = 0, pixels = 0, lanes = 0, valid = 0;

  static DenseElements of(std::span<const Arg> args) {
    for (const Arg& a : args) NEO_ASSERT(a.is_dense(), "an operand of codes is not dense");
    const Arg& y = args.back();
    DenseElements e;
    const Dims physical = y.layout.physical_dims(y.dims);
    e.count = element_count(physical);
    if (!y.layout.is_blocked()) return e;
    e.lanes = physical.back();
    e.valid = y.dims[1] % e.lanes;
    e.images = e.valid > 0 ? y.dims[0] : 0;
    e.pixels = 1;
    for (size_t i = 2; i < y.dims.size(); ++i) e.pixels *= y.dims[i];
    e.image = physical[1] * e.pixels * e.lanes;
    e.last = (physical[1] - 1) * e.pixels * e.lanes;
    return e;
  }

  // apply(first, count) in parts, then padding lanes of the result become zero.
  template <class Apply>
  void run(Team& team, std::byte* y, int64_t item, const Apply& apply) const {
    constexpr int64_t kChunk = 16384, kSerial = 65536;
    const auto part = [&](int64_t begin, int64_t end, int) {
      apply(begin * kChunk, std::min(count, end * kChunk) - begin * kChunk);
    };
    if (count <= kSerial) {
      part(0, ceil_div(count, kChunk), 0);
    } else {
      team.parallel_for(ceil_div(count, kChunk), part);
    }
    for (int64_t n = 0; n < images; ++n) clear_lanes(y + (n * image + last) * item, item);
  }

 private:
  // Words of a pixel are masked, of which the first may have lanes that exist: a call of memset takes longer.
  void clear_lanes(std::byte* pixel, int64_t item) const {
    constexpr int64_t kWord = 4;
    const int64_t words = lanes * item / kWord, first = valid * item / kWord;
    const uint32_t kept = (uint32_t{1} << (8 * (valid * item % kWord))) - 1;
    for (int64_t p = 0; p < pixels; ++p, pixel += lanes * item) {
      for (int64_t i = first; i < words; ++i) {
        uint32_t word;
        std::memcpy(&word, pixel + i * kWord, kWord);
        word &= i == first ? kept : 0;
        std::memcpy(pixel + i * kWord, &word, kWord);
      }
    }
  }
};

// Candidates that hold every run-time operand plain, or in blocks of channels.
inline std::vector<Candidate> held_alike(Candidate plain, const Shape& shape, const Target& target) {
  std::vector<Candidate> all{plain};
  if (shape.rank() < 3 || !shape[1].is_constant() || shape[1].value() < 2) return all;
  const Layout layout = Layout::channel_blocked(shape.rank(), target.lanes());
  for (auto& schema : plain.inputs) {
    if (schema) schema->layout = layout;
  }
  plain.outputs.front().layout = layout;
  // Padding lanes are computed too.
  plain.cost.time_us *= static_cast<double>(ceil_div(shape[1].value(), int64_t{target.lanes()}) * target.lanes()) /
                        static_cast<double>(shape[1].value());
  all.push_back(std::move(plain));
  return all;
}

}  // namespace neo
