#include "routines/cpu/recurrent/ragged_rows.h"

#include <algorithm>
#include <cstring>

namespace neo {
namespace {

bool runs_backwards(const RecurrentForm& form, int64_t direction) {
  return form.reverse || direction == 1;
}

// The position of a sequence's step in Y, in vectors of hidden units.
int64_t y_vector(const RecurrentForm& form, const RecurrentSizesOfRun& sizes, int64_t direction, int64_t step,
                 int64_t sequence) {
  return form.batch_first ? (sequence * sizes.x_steps + step) * form.directions + direction
                          : (step * form.directions + direction) * sizes.batch + sequence;
}

}  // namespace

int64_t RaggedRows::floats(const RecurrentSizesOfRun& sizes, int64_t directions) {
  return 2 * (2 * sizes.batch + 2 * (sizes.steps + 2) + directions * sizes.rows);
}

RaggedRows RaggedRows::at(float* memory, const RecurrentSizesOfRun& sizes) {
  RaggedRows rows;
  rows.order = reinterpret_cast<int64_t*>(memory);
  rows.length = rows.order + sizes.batch;
  rows.starts = rows.length + sizes.batch;
  rows.places = rows.starts + sizes.steps + 2;
  rows.y_rows = rows.places + sizes.steps + 2;
  return rows;
}

void RaggedRows::order_by_length(const RecurrentForm& form, const RecurrentSizesOfRun& sizes,
                                 const int32_t* lengths) const {
  // A counting sort: first how many sequences have each length, then how many are longer.
  std::fill_n(places, sizes.steps + 1, 0);
  for (int64_t b = 0; b < sizes.batch; ++b) ++places[lengths[b]];
  for (int64_t n = sizes.steps, longer = 0; n >= 0; --n) longer += std::exchange(places[n], longer);
  starts[0] = 0;
  for (int64_t step = 0; step < sizes.steps; ++step) starts[step + 1] = starts[step] + places[step];
  for (int64_t b = 0; b < sizes.batch; ++b) {
    const int64_t place = places[lengths[b]]++;
    order[place] = b;
    length[place] = lengths[b];
  }
  for (int64_t d = 0; d < form.directions; ++d) {
    int64_t* to = y_rows + d * sizes.rows;
    for (int64_t step = 0; step < sizes.steps; ++step) {
      for (int64_t place = 0; place < active(step); ++place) {
        const int64_t at = runs_backwards(form, d) ? length[place] - 1 - step : step;
        *to++ = y_vector(form, sizes, d, at, order[place]) * form.hidden;
      }
    }
  }
}

void RaggedRows::gather(const RecurrentForm& form, const RecurrentSizesOfRun& sizes, int64_t direction, int64_t begin,
                        int64_t end, int64_t item, const void* x, void* to) const {
  const int64_t bytes = form.input * item;
  const auto* from = static_cast<const std::byte*>(x);
  int64_t step = std::upper_bound(starts, starts + sizes.steps + 1, begin) - starts - 1;
  for (int64_t row = begin; row < end; ++row) {
    while (row >= starts[step + 1]) ++step;
    const int64_t place = row - starts[step];
    const int64_t at = runs_backwards(form, direction) ? length[place] - 1 - step : step;
    const int64_t vector = form.batch_first ? order[place] * sizes.x_steps + at : at * sizes.batch + order[place];
    std::copy_n(from + vector * bytes, bytes, static_cast<std::byte*>(to) + row * bytes);
  }
}

void bound_lengths(const int32_t* lengths, int64_t steps, int64_t batch, int32_t* to) {
  for (int64_t b = 0; b < batch; ++b) to[b] = static_cast<int32_t>(std::clamp<int64_t>(lengths[b], 0, steps));
}

RecurrentSizesOfRun sizes_of_lengths(const int32_t* lengths, int64_t steps, int64_t batch) {
  RecurrentSizesOfRun sizes{steps, 0, batch, 0, false};
  int64_t shortest = steps;
  for (int64_t b = 0; b < batch; ++b) {
    sizes.steps = std::max<int64_t>(sizes.steps, lengths[b]);
    shortest = std::min<int64_t>(shortest, lengths[b]);
    sizes.rows += lengths[b];
  }
  sizes.is_ragged = batch > 1 && sizes.steps > 0 && shortest < steps;
  return sizes;
}

void clear_ends(const RecurrentForm& form, const RecurrentSizesOfRun& sizes, const int32_t* lengths, int64_t item,
                void* y) {
  const int64_t bytes = form.hidden * item;
  for (int64_t b = 0; b < sizes.batch; ++b) {
    for (int64_t step = lengths[b]; step < sizes.x_steps; ++step) {
      for (int64_t d = 0; d < form.directions; ++d) {
        std::fill_n(static_cast<std::byte*>(y) + y_vector(form, sizes, d, step, b) * bytes, bytes, std::byte{0});
      }
    }
  }
}

}  // namespace neo
