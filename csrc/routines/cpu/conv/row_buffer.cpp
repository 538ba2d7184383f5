#include "routines/cpu/conv/row_buffer.h"

#include <algorithm>

#include "base/int_math.h"

namespace neo {
namespace {

// Whether one of the first `lines` output rows reads input row b of the buffer.
bool is_read(const ConvShape& s, int64_t b, int64_t lines) {
  for (int64_t i = 0; i < s.kh; ++i) {
    const int64_t distance = b - i * s.dilation_h;
    if (distance >= 0 && distance % s.stride_h == 0 && distance / s.stride_h < lines) return true;
  }
  return false;
}

}  // namespace

RowBuffer RowBuffer::of(const ConvShape& s, int64_t lines, int64_t columns) {
  RowBuffer buffer;
  buffer.rows = input_rows(s, lines);
  buffer.width = columns + (s.kw - 1) * s.dilation_w / s.stride_w;
  buffer.row = s.stride_w * buffer.width;
  return buffer;
}

void RowBuffer::fill(const ConvShape& s, const RowKernels& kernels, const float* plane, int64_t line, int64_t lines,
                     int64_t first, float* dst) const {
  const int64_t top = line * s.stride_h - s.pad_top;
  for (int64_t b = 0; b < input_rows(s, lines); ++b) {
    if (top + b < 0 || top + b >= s.ih || !is_read(s, b, lines)) continue;
    const float* src = plane + (top + b) * s.iw;
    float* phase = dst + b * row;
    for (int64_t p = 0; p < s.stride_w; ++p, phase += width) {
      const int64_t shift = first * s.stride_w - s.pad_left + p;
      const int64_t begin = std::clamp<int64_t>(shift >= 0 ? 0 : ceil_div(-shift, s.stride_w), 0, width);
      const int64_t end = shift >= s.iw ? begin : std::clamp((s.iw - 1 - shift) / s.stride_w + 1, begin, width);
      std::fill(phase, phase + begin, 0.0f);
      if (begin < end) kernels.take_every(src + begin * s.stride_w + shift, s.stride_w, end - begin, phase + begin);
      std::fill(phase + end, phase + width, 0.0f);
    }
  }
}

int64_t input_rows(const ConvShape& s, int64_t lines) {
  return (lines - 1) * s.stride_h + (s.kh - 1) * s.dilation_h + 1;
}

}  // namespace neo
