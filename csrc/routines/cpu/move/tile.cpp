#include "routines/cpu/move/tile.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "routines/cpu/move/copy_step.h"

namespace neo {
namespace {

constexpr int kMaxTileAxes = 32;

struct TileCall {
  int axes = 0;
  int64_t size[kMaxTileAxes];
  int64_t repeats[kMaxTileAxes];
  int64_t from[kMaxTileAxes];  // bytes of an element of each axis, in the input and in the result
  int64_t to[kMaxTileAxes];
  int64_t elements = 0;  // of the result

  // Axes whose elements, once repeated, are those of one longer axis become that.
  void add_axis(int64_t count, int64_t times) {
    if (count == 1 && times == 1) return;
    if (axes > 0 && times == 1) {
      size[axes - 1] *= count;
    } else if (axes > 0 && size[axes - 1] == 1) {
      size[axes - 1] = count;
      repeats[axes - 1] *= times;
    } else {
      size[axes] = count;
      repeats[axes++] = times;
    }
  }

  static TileCall of(const Dims& from, const Dims& to, int64_t width) {
    TileCall call;
    call.elements = element_count(to);
    if (call.elements == 0) return call;
    for (size_t i = 0; i < from.size(); ++i) call.add_axis(from[i], to[i] / from[i]);
    if (call.axes == 0) {
      call.size[0] = call.repeats[0] = 1;
      call.axes = 1;
    }
    int64_t inside = width, outside = width;
    for (int axis = call.axes - 1; axis >= 0; --axis) {
      call.from[axis] = inside;
      call.to[axis] = outside;
      inside *= call.size[axis];
      outside *= call.size[axis] * call.repeats[axis];
    }
    return call;
  }
};

// Copies of a block behind itself, twice as many each time.
void repeat(std::byte* block, int64_t bytes, int64_t times) {
  if (bytes == 1) {
    std::memset(block, std::to_integer<int>(*block), static_cast<size_t>(times));
    return;
  }
  for (int64_t done = 1; done < times;) {
    const int64_t more = std::min(done, times - done);
    std::memcpy(block + done * bytes, block, static_cast<size_t>(more * bytes));
    done += more;
  }
}

// All of the result from one axis on.
void fill(const TileCall& call, int axis, const std::byte* from, std::byte* to) {
  const int64_t count = call.size[axis];
  if (axis == call.axes - 1) {
    std::memcpy(to, from, static_cast<size_t>(count * call.from[axis]));
  } else {
    for (int64_t i = 0; i < count; ++i) fill(call, axis + 1, from + i * call.from[axis], to + i * call.to[axis]);
  }
  repeat(to, count * call.to[axis], call.repeats[axis]);
}

// The place in the result of the element of the first axes that has a number.
int64_t place_of(const TileCall& call, int axes, int64_t number) {
  int64_t place = 0;
  for (int axis = axes - 1; axis >= 0; --axis) {
    place += number % call.size[axis] * call.to[axis];
    number /= call.size[axis];
  }
  return place;
}

}  // namespace

int64_t tiled_rows(const Dims& from, const Dims& to) {
  const TileCall call = TileCall::of(from, to, 1);
  int64_t rows = 1;
  for (int axis = 0; axis + 1 < call.axes; ++axis) rows *= call.size[axis];
  return rows;
}

Prepared TileStep::prepare(std::span<const Arg> args) const {
  NEO_ASSERT(args[0].is_dense() && args[1].is_dense(), "it takes dense tensors");
  NEO_ASSERT(args[0].dims.size() <= kMaxTileAxes, "a tensor has few axes");
  return Prepared::of(TileCall::of(args[0].dims, args[1].dims, item_bytes(args[0].dtype)));
}

void TileStep::run(const std::byte* prepared, std::byte* const* args, std::byte*, Team& team) const {
  constexpr int64_t kTasks = 16;
  const auto& call = *reinterpret_cast<const TileCall*>(prepared);
  if (call.elements == 0) return;
  if (call.elements <= kSerialCopied) return fill(call, 0, args[0], args[1]);
  // Elements of the first axes apart, and then their copies, axis by axis.
  int outer = 0;
  int64_t parts = 1;
  while (outer + 1 < call.axes && parts < kTasks) parts *= call.size[outer++];
  team.parallel_for(parts, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const std::byte* from = args[0] + (outer > 0 ? i * call.from[outer - 1] : 0);
      fill(call, outer, from, args[1] + place_of(call, outer, i));
    }
  });
  for (int axis = outer - 1; axis >= 0; --axis) {
    parts /= call.size[axis];
    const int64_t bytes = call.size[axis] * call.to[axis], copies = call.repeats[axis] - 1;
    team.parallel_for(parts * copies, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        std::byte* block = args[1] + place_of(call, axis, i / copies);
        std::memcpy(block + (1 + i % copies) * bytes, block, static_cast<size_t>(bytes));
      }
    });
  }
}

}  // namespace neo
