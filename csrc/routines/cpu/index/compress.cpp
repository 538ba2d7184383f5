#include <algorithm>
#include <cstring>

#include "base/budget.h"
#include "routines/cpu/index/host_functions.h"
#include "routines/cpu/index/index.h"

namespace neo {
namespace {

// The positions that are so, in a vector no longer than they are.
template <class F>
std::vector<int64_t> positions_where(int64_t count, F&& is_so) {
  int64_t found = 0;
  for (int64_t i = 0; i < count; ++i) found += is_so(i);
  auto positions = make_scratch<int64_t>(found + 1);
  int64_t* next = positions.data();
  for (int64_t i = 0; i < count; ++i) {
    *next = i;
    next += is_so(i);
  }
  positions.pop_back();
  return positions;
}

template <class T>
std::vector<int64_t> non_zero_positions(const T* x, int64_t count) {
  return positions_where(count, [=](int64_t i) { return x[i] != T(0); });
}

// Halves by their bits without the sign, of which zero alone has none.
std::vector<int64_t> non_zero_halves(const uint16_t* x, int64_t count) {
  return positions_where(count, [=](int64_t i) { return (x[i] & 0x7fff) != 0; });
}

std::vector<int64_t> non_zero_positions(const Tensor& x, int64_t count) {
  switch (x.dtype()) {
    case DType::Float32:
      return non_zero_positions(x.as<float>(), count);
    case DType::Float64:
      return non_zero_positions(x.as<double>(), count);
    case DType::Float16:
    case DType::BFloat16:
      return non_zero_halves(x.as<uint16_t>(), count);
    default:
      break;
  }
  switch (item_bytes(x.dtype())) {
    case 1:
      return non_zero_positions(x.as<uint8_t>(), count);
    case 2:
      return non_zero_positions(x.as<uint16_t>(), count);
    case 4:
      return non_zero_positions(x.as<uint32_t>(), count);
    default:
      return non_zero_positions(x.as<uint64_t>(), count);
  }
}

// The coordinate of ascending positions along an axis of `size` whose elements are `stride` apart: from each position
// to the next one it seldom passes more than a few steps.
void write_coordinates(const std::vector<int64_t>& positions, int64_t size, int64_t stride, int64_t* to) {
  int64_t coordinate = 0, end = stride;  // the first position beyond the coordinate
  for (const int64_t position : positions) {
    if (position >= end) {
      const int64_t steps = (position - end) / stride + 1;
      coordinate = (coordinate + steps) % size;
      end += steps * stride;
    }
    *to++ = coordinate;
  }
}

}  // namespace

void run_non_zero(ReferenceContext& ctx) {
  const Tensor& x = ctx.input(0);
  const auto positions = non_zero_positions(x, x.size());
  const auto count = static_cast<int64_t>(positions.size());
  const Tensor& y = ctx.output(0, DType::Int64, {x.rank(), count});
  if (count == 0) return;
  const Dims strides = dense_strides(x.dims());
  auto* to = y.as<int64_t>();
  for (size_t a = 0; a < strides.size(); ++a, to += count) {
    if (strides[a] > 1) {
      write_coordinates(positions, x.dims()[a], strides[a], to);
    } else if (a == 0) {
      std::copy(positions.begin(), positions.end(), to);
    } else {
      // The last axis: what its rows leave of a position.
      const int64_t size = x.dims()[a];
      int64_t begin = 0;
      for (size_t i = 0; i < positions.size(); ++i) {
        if (positions[i] - begin >= size) begin = positions[i] / size * size;
        to[i] = positions[i] - begin;
      }
    }
  }
}

void run_compress(ReferenceContext& ctx) {
  const Tensor& x = ctx.input(0);
  const bool flat = !ctx.node().has_attr("axis");
  Dims dims = flat ? Dims{x.size()} : x.dims();
  const int rank = static_cast<int>(dims.size());
  const int axis = flat ? 0 : ctx.axis(ctx.node().int_attr("axis", 0), rank);
  const int64_t size = dims[static_cast<size_t>(axis)];
  // A condition past the axis counts for nothing, as in ONNX Runtime.
  const auto chosen = non_zero_positions(ctx.input(1), std::min(ctx.input(1).size(), size));
  dims[static_cast<size_t>(axis)] = static_cast<int64_t>(chosen.size());
  const int64_t outer = count_between(dims, 0, axis);
  const int64_t run = count_between(dims, axis + 1, rank) * item_bytes(x.dtype());
  const Tensor& y = ctx.output(0, x.dtype(), dims);
  const auto* from = x.as<std::byte>();
  auto* to = y.as<std::byte>();
  if (y.size() == 0) return;
  if (std::ssize(chosen) == size) {
    std::memcpy(to, from, static_cast<size_t>(outer * size * run));
    return;
  }
  with_width(run, [&](auto fixed) {
    const int64_t width = fixed > 0 ? fixed : run;
    for (int64_t o = 0; o < outer; ++o, from += size * width) {
      for (const int64_t i : chosen) {
        std::memcpy(to, from + i * width, static_cast<size_t>(width));
        to += width;
      }
    }
  });
}

void run_reverse_sequence(ReferenceContext& ctx) {
  const Tensor& x = ctx.input(0);
  if (x.rank() < 2)
    ctx.fail(ErrorKind::Shape, str("the input must have a rank of at least 2. Got ", to_string(x.dims())));
  const auto lengths = ctx.ints(1);
  const auto batch_axis = static_cast<size_t>(ctx.axis(ctx.node().int_attr("batch_axis", 1), 2));
  const size_t time_axis = 1 - batch_axis;
  const int64_t batches = x.dims()[batch_axis], times = x.dims()[time_axis];
  if (static_cast<int64_t>(lengths.size()) != batches)
    ctx.fail(ErrorKind::Shape,
             str("sequence_lens must have one length per sequence. Got ", lengths.size(), ", expected ", batches));
  for (const int64_t length : lengths) {
    if (length < 0 || length > times)
      ctx.fail(ErrorKind::Shape, str("a sequence must fit the time axis. Got ", length, ", expected 0 to ", times));
  }
  const Tensor& y = ctx.output(0, x.dtype(), x.dims());
  const int64_t run = count_between(x.dims(), 2, x.rank()) * item_bytes(x.dtype());
  const int64_t batch_stride = batch_axis == 0 ? times : 1, time_stride = batch_axis == 0 ? 1 : batches;
  const auto* from = x.as<std::byte>();
  auto* to = y.as<std::byte>();
  with_width(run, [&](auto fixed) {
    const int64_t width = fixed > 0 ? fixed : run;
    for (int64_t i = 0; i < batches * times; ++i, to += width) {
      const int64_t b = batch_axis == 0 ? i / times : i % batches, t = batch_axis == 0 ? i % times : i / batches;
      const int64_t length = lengths[static_cast<size_t>(b)];
      const int64_t source = b * batch_stride + (t < length ? length - 1 - t : t) * time_stride;
      std::memcpy(to, from + source * width, static_cast<size_t>(width));
    }
  });
}

}  // namespace neo
