#include "routines/cpu/move/copy_step.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <type_traits>

#include "base/check.h"
#include "routines/cpu/tier.h"

NEO_DECLARE_TIERS(void transpose_plane(const TransposePlane&); void transpose_words(const WordPlane&);
                  void transpose_bytes(const BytePlane&))

namespace neo {
namespace {

struct Wide {
  uint64_t low, high;
};

template <int64_t fixed>
void copy_rows_of(const std::byte* from, int64_t from_row, std::byte* to, int64_t to_row, int64_t rows, int64_t bytes) {
  const auto count = static_cast<size_t>(fixed > 0 ? fixed : bytes);
  for (int64_t i = 0; i < rows; ++i) std::memcpy(to + i * to_row, from + i * from_row, count);
}

// Rows of more than half of `size` bytes: two moves that overlap.
template <int64_t size>
void copy_halves(const std::byte* from, int64_t from_row, std::byte* to, int64_t to_row, int64_t rows, int64_t bytes) {
  for (int64_t i = 0; i < rows; ++i, from += from_row, to += to_row) {
    std::byte first[size / 2], last[size / 2];
    std::memcpy(first, from, size / 2);
    std::memcpy(last, from + bytes - size / 2, size / 2);
    std::memcpy(to, first, size / 2);
    std::memcpy(to + bytes - size / 2, last, size / 2);
  }
}

// Rows of contiguous bytes; those of a few are moves rather than calls.
void copy_rows(const std::byte* from, int64_t from_row, std::byte* to, int64_t to_row, int64_t rows, int64_t bytes) {
  switch (bytes) {
    case 4:
      return copy_rows_of<4>(from, from_row, to, to_row, rows, bytes);
    case 8:
      return copy_rows_of<8>(from, from_row, to, to_row, rows, bytes);
    case 12:
      return copy_rows_of<12>(from, from_row, to, to_row, rows, bytes);
    case 16:
      return copy_rows_of<16>(from, from_row, to, to_row, rows, bytes);
    case 32:
      return copy_rows_of<32>(from, from_row, to, to_row, rows, bytes);
    case 64:
      return copy_rows_of<64>(from, from_row, to, to_row, rows, bytes);
    default:
      if (bytes == 2) return copy_rows_of<2>(from, from_row, to, to_row, rows, bytes);
      if (bytes > 4 && bytes < 8) return copy_halves<8>(from, from_row, to, to_row, rows, bytes);
      if (bytes > 8 && bytes < 16) return copy_halves<16>(from, from_row, to, to_row, rows, bytes);
      if (bytes > 16 && bytes < 32) return copy_halves<32>(from, from_row, to, to_row, rows, bytes);
      if (bytes > 32 && bytes < 64) return copy_halves<64>(from, from_row, to, to_row, rows, bytes);
      return copy_rows_of<0>(from, from_row, to, to_row, rows, bytes);
  }
}

// One element again and again: a few by themselves, which are then copied behind themselves.
template <class T>
void fill_row(T* to, int64_t count, T element) {
  constexpr int64_t kFew = 16, kMax = 4096 / static_cast<int64_t>(sizeof(T));
  int64_t done = std::min(count, kFew);
  std::fill_n(to, done, element);
  while (done < count) {
    const int64_t more = std::min({done, kMax, count - done});
    std::memcpy(to + done, to, static_cast<size_t>(more) * sizeof(T));
    done += more;
  }
}

template <class T>
void copy_line(const T* from, int64_t from_step, T* to, int64_t to_step, int64_t count) {
#pragma GCC unroll 4
  for (int64_t i = 0; i < count; ++i) to[i * to_step] = from[i * from_step];
}

// Rows [begin, end) of the last two axes, in tiles so that both sides stay in cache lines.
template <class T>
void copy_plane(const CopyPart& p, const T* from, T* to, int64_t begin, int64_t end, const PlaneKernels& transpose) {
  const int inner = p.axes - 1;
  const int outer = p.axes - 2;
  const int64_t fi = p.from[inner], ti = p.to[inner], fo = p.from[outer], td = p.to[outer];
  const int64_t columns = p.size[inner];
  if (fi == 1 && ti == 1) {
    copy_rows(reinterpret_cast<const std::byte*>(from + begin * fo), fo * static_cast<int64_t>(sizeof(T)),
              reinterpret_cast<std::byte*>(to + begin * td), td * static_cast<int64_t>(sizeof(T)), end - begin,
              columns * static_cast<int64_t>(sizeof(T)));
    return;
  }
  if (fi == 0 && ti == 1) {
    for (int64_t i = begin; i < end; ++i) fill_row(to + i * td, columns, from[i * fo]);
    return;
  }
  constexpr int64_t kFew = sizeof(T) < 4 ? 16 : 3, kLine = 64 / sizeof(T);
  if constexpr (sizeof(T) <= 4) {
    if (fo == 1 && ti == 1) {
      using Element = std::conditional_t<sizeof(T) == 4, float, T>;
      ElementPlane<Element> plane;
      plane.src = reinterpret_cast<const Element*>(from + begin);
      plane.src_row = fi;
      plane.dst = reinterpret_cast<Element*>(to + begin * td);
      plane.dst_row = td;
      plane.rows = plane.padded_rows = columns;
      plane.columns = end - begin;
      // A few rows or columns do not fill vectors, unless they are the channels of an image.
      if (few_channels(plane) > 0 || (columns >= kFew && end - begin >= kFew)) return transpose(plane);
    }
  }
  // The short axis is the inner one where the destination's lines are apart.
  if (columns < kFew && columns < end - begin && std::abs(td) <= kLine) {
    for (int64_t j = 0; j < columns; ++j)
      copy_line(from + begin * fo + j * fi, fo, to + begin * td + j * ti, td, end - begin);
    return;
  }
  if (columns < kFew || end - begin < kFew) {
    for (int64_t i = begin; i < end; ++i) copy_line(from + i * fo, fi, to + i * td, ti, columns);
    return;
  }
  // Lines of the destination, unless those across lie closer together in the source.
  if (std::abs(fi) <= std::abs(fo) && ti == 1) {
    for (int64_t i = begin; i < end; ++i) copy_line(from + i * fo, fi, to + i * td, ti, columns);
    return;
  }
  constexpr int64_t kTile = 16;
  for (int64_t i0 = begin; i0 < end; i0 += kTile) {
    const int64_t i1 = std::min(end, i0 + kTile);
    for (int64_t j0 = 0; j0 < columns; j0 += kTile) {
      const int64_t j1 = std::min(columns, j0 + kTile);
      for (int64_t i = i0; i < i1; ++i) copy_line(from + i * fo + j0 * fi, fi, to + i * td + j0 * ti, ti, j1 - j0);
    }
  }
}

// f(begin, end, member) over tasks that move `elements` together; few elements are not worth waking a team.
template <class F>
void run_parts(Team& team, int64_t tasks, int64_t elements, F&& f) {
  if (elements <= kSerialCopied)
    f(int64_t{0}, tasks, 0);
  else
    team.parallel_for(tasks, f);
}

// One after the other of the planes of a part's last two axes.
struct PlaneCursor {
  const CopyPart& part;
  int64_t index[kCopyAxes];
  int64_t from = 0, to = 0;  // elements before the plane

  PlaneCursor(const CopyPart& p, int64_t number) : part(p) {
    for (int i = p.axes - 3; i >= 0; --i) {
      index[i] = number % p.size[i];
      number /= p.size[i];
      from += index[i] * p.from[i];
      to += index[i] * p.to[i];
    }
  }

  void advance() {
    for (int i = part.axes - 3; i >= 0; --i) {
      from += part.from[i];
      to += part.to[i];
      if (++index[i] < part.size[i]) return;
      from -= part.size[i] * part.from[i];
      to -= part.size[i] * part.to[i];
      index[i] = 0;
    }
  }
};

template <class T>
void copy_part(const CopyPart& p, const std::byte* source, std::byte* target, const PlaneKernels& transpose,
               Team& team) {
  const T* from = reinterpret_cast<const T*>(source) + p.from_offset;
  T* to = reinterpret_cast<T*>(target) + p.to_offset;
  if (p.axes == 1) {
    constexpr int64_t kChunk = 1 << 14;
    run_parts(team, (p.size[0] + kChunk - 1) / kChunk, p.size[0], [&](int64_t begin, int64_t end, int) {
      const int64_t last = std::min(p.size[0], end * kChunk);
      if (p.from[0] == 1 && p.to[0] == 1) {
        std::memcpy(to + begin * kChunk, from + begin * kChunk, static_cast<size_t>(last - begin * kChunk) * sizeof(T));
        return;
      }
      if (p.from[0] == 0 && p.to[0] == 1) return fill_row(to + begin * kChunk, last - begin * kChunk, *from);
      for (int64_t i = begin * kChunk; i < last; ++i) to[i * p.to[0]] = from[i * p.from[0]];
    });
    return;
  }
  // Tasks: rows of the last plane in blocks, over all outer axes.
  constexpr int64_t kRows = 64;
  const int outer = p.axes - 2;
  const int64_t row_blocks = (p.size[outer] + kRows - 1) / kRows;
  int64_t planes = 1;
  for (int i = 0; i < outer; ++i) planes *= p.size[i];
  run_parts(
      team, planes * row_blocks, planes * p.size[outer] * p.size[outer + 1], [&](int64_t begin, int64_t end, int) {
        PlaneCursor plane(p, begin / row_blocks);
        int64_t first = begin % row_blocks * kRows;
        for (int64_t task = begin; task < end; ++task) {
          copy_plane<T>(p, from + plane.from, to + plane.to, first, std::min(p.size[outer], first + kRows), transpose);
          first += kRows;
          if (first < p.size[outer]) continue;
          first = 0;
          plane.advance();
        }
      });
}

template <class T>
void run_plan(const CopyPlan& plan, std::byte* const* args, const PlaneKernels& transpose, Team& team) {
  if (plan.filled >= 0) {
    T element;
    std::memcpy(&element, plan.fill_element.data(), sizeof element);
    T* to = reinterpret_cast<T*>(args[plan.filled]);
    constexpr int64_t kChunk = 1 << 14;
    run_parts(team, (plan.fill_count + kChunk - 1) / kChunk, plan.fill_count, [&](int64_t begin, int64_t end, int) {
      std::fill(to + begin * kChunk, to + std::min(plan.fill_count, end * kChunk), element);
    });
  }
  for (int64_t i = 0; i < plan.parts; ++i) {
    const CopyPart& p = plan.part[i];
    copy_part<T>(p, args[p.source], args[p.target], transpose, team);
  }
}

}  // namespace

CopyStep::CopyStep(std::unique_ptr<const CopyPattern> pattern, const Target& target)
    : pattern_(std::move(pattern)),
      transpose_{NEO_PICK_TIER(target.isa, transpose_plane), NEO_PICK_TIER(target.isa, transpose_words),
                 NEO_PICK_TIER(target.isa, transpose_bytes)} {}

Prepared CopyStep::prepare(std::span<const Arg> args) const {
  const auto made = std::make_unique<CopyPlan>(pattern_->planned(args));
  const auto* bytes = reinterpret_cast<const std::byte*>(made.get());
  const size_t size = offsetof(CopyPlan, part) + static_cast<size_t>(made->parts) * sizeof(CopyPart);
  return {std::vector<std::byte>(bytes, bytes + size), 0};
}

void CopyStep::run(const std::byte* prepared, std::byte* const* args, std::byte*, Team& team) const {
  const auto& plan = *reinterpret_cast<const CopyPlan*>(prepared);
  switch (plan.width) {
    case 1:
      return run_plan<uint8_t>(plan, args, transpose_, team);
    case 2:
      return run_plan<uint16_t>(plan, args, transpose_, team);
    case 4:
      return run_plan<uint32_t>(plan, args, transpose_, team);
    case 8:
      return run_plan<uint64_t>(plan, args, transpose_, team);
    default:
      return run_plan<Wide>(plan, args, transpose_, team);
  }
}

}  // namespace neo
