#include "routines/cpu/recurrent/recurrent_cost.h"

#include <algorithm>
#include <cmath>

#include "routines/cost/step_cost.h"
#include "routines/cpu/microkernel/tile_cost.h"
#include "routines/cpu/tasks.h"

namespace neo {
namespace {

// Share of the time of a far byte, in one stream.
constexpr double kStream = 0.7;

// Microseconds of a thread that reads `bytes` of weights, and again in every step, there and back: its private cache
// keeps a part of all that it reads before it comes back, `lap`.
double reading_us(double bytes, double lap, const Target& target) {
  constexpr double kLastCacheShare = 0.9;  // of the bandwidth of the private cache
  constexpr double kKept = 0.9;            // of the private cache
  const auto cache = static_cast<double>(private_caches(target).l2_bytes);
  const double share = lap > cache ? kLastCacheShare : 1.0;
  const double far = std::max(0.0, 1 - kKept * cache / std::max(lap, 1.0));
  return bytes / (target.l2_gbps * share * 1e3) + kStream * far_byte_us(target) * bytes * far;
}

// Microseconds of a thread for one part of so many rows times a matrix packed for Strassen's algorithm, of which it
// reads all, and which computes as many rows as it has parts at least. Weights that the private cache does not keep
// beside as many bytes that pass through it come from a last cache that may be far.
double strassen_us(const StrassenPlan& plan, double rows, const Target& target) {
  const auto parts = static_cast<double>(plan.parts());
  const double computed = std::ceil(rows / parts) * parts;
  const double bytes = 4 * static_cast<double>(strassen_weight_size(plan));
  const double far = is_cache_resident(2 * bytes, target) ? 0 : kStream * far_byte_us(target) * bytes;
  return far + std::max(strassen_work(plan, computed, computed, target) / (target.gflops_per_thread * 1e3),
                        bytes / (target.l2_gbps * 1e3));
}

}  // namespace

double recurrent_us(const RecurrentForm& form, const RecurrentMethod& method, int64_t steps, int64_t batch,
                    const Target& target) {
  constexpr double kInputBesideShare = 0.5;  // of its time that the recurrent product does not hide
  // The same of a core of two FMAs per cycle whose last cache is near, where weights come from there, and where its
  // private cache keeps those of an LSTM.
  constexpr double kFarShown = 0.35, kOwnShown = 0.5;
  constexpr double kBesideEfficiency = 0.88;
  // Nor is it faster, however fast the core: it reads a value for every two products, or for every one.
  const double beside_peak = (form.kind == CellKind::Lstm ? 215 : 160) * 1e3;
  constexpr double kCellUs = 0.03;  // the gates of one vector of units
  constexpr double kMeetUs = 0.3;   // the end of a phase
  constexpr double kStartUs = 0.5;  // of a product by Strassen's algorithm
  constexpr int64_t kRowsTogether = 6;
  const RecurrentKernels kernels = RecurrentKernels::of(target);
  const int64_t blocks = ceil_div(form.hidden, target.lanes()), width = gates_width(form, target.lanes());
  const CellSplit split = split_cells(form, steps, batch, blocks);
  const auto tasks = static_cast<double>(form.directions * split.chunks);
  const double speedup = split.serial || tasks < 1 ? 1 : tasks / std::ceil(tasks / target.threads);
  const double peak = target.gflops_per_thread * 1e3;
  const double count = static_cast<double>(steps), rows = static_cast<double>(batch);
  const InputTiles tiles = input_tiles(form, method, kernels, steps, batch);
  const bool is_exponent_packed = method.way == RecurrentWay::ExponentPacked;
  const RecurrentPacking packing = packing_of(form, method, kernels, target.threads);

  const double input_bytes = static_cast<double>(width * form.input * 4);
  double bytes = static_cast<double>(width * form.hidden * 4) * (is_exponent_packed ? 0.875 : 1);
  if (tiles.small > 0) bytes += input_bytes / tiles.large;
  // Threads that have directions of their own do all steps of one before the next.
  const bool alone = batch == 1 && target.threads <= form.directions;
  const double lap = bytes / (alone ? static_cast<double>(form.directions) : split.by_step ? speedup : 1);
  // A last cache that is near gives what both products read at one rate, while a core of one FMA per cycle does both. A
  // core of two has time for some of the input's while the weights of a step arrive.
  const bool has_near_cache = tiles.small > 0 && far_byte_us(target) == 0;
  const bool is_near = has_near_cache && !has_wide_fmas(target);
  double pass_us = is_near ? stream_us(bytes / speedup) : reading_us(bytes / speedup, lap, target);
  if ((is_near ? bytes + input_bytes : bytes) > kLastCacheBytes)
    pass_us = std::max(pass_us, bytes / (target.memory_gbps * 1e3));
  const double reads_us = static_cast<double>(ceil_div(batch, kRowsTogether)) * pass_us;
  const double efficiency = batch > 3 ? 0.95 : 0.8;
  const auto vectors = static_cast<double>(width * form.hidden / target.lanes());
  const double sums_us = is_exponent_packed
                             ? cycles_us(exponent_packed_cycles(target) * vectors * rows, target) / speedup
                             : cycles_us(vectors * rows, target) / (efficiency * speedup);
  double step_us = std::max(reads_us, sums_us);
  if (packing.recurrent.levels > 0) {
    const double group_us = strassen_us(packing.recurrent, rows, target) +
                            (packing.candidate.levels > 0 ? strassen_us(packing.candidate, rows, target) : 0);
    const auto groups = static_cast<double>(form.directions * packing.groups);
    step_us = (kStartUs + group_us) * (split.serial ? groups : std::ceil(groups / target.threads));
  }
  step_us += kCellUs * rows * static_cast<double>(form.directions * blocks) / speedup;
  if (split.by_step && speedup > 1) step_us += kMeetUs * (form.kind == CellKind::GruGates ? 2 : 1);

  const double input_flops = 2 * count * rows * static_cast<double>(width * form.input);
  double input_us = 0;
  if (tiles.small > 0) {
    const double first = std::min(1.0, tiles.small / std::max(count, 1.0));
    const bool is_own = lap <= static_cast<double>(private_caches(target).l2_bytes);
    const double shown = !is_own ? kFarShown : form.kind == CellKind::Lstm ? kOwnShown : 1;
    const double exposed = has_near_cache ? shown / peak : std::max(kInputBesideShare / peak, 1 / beside_peak);
    const double most = exposed * input_flops / speedup;
    const double both_us = count * sums_us * efficiency + input_flops / (peak * speedup);
    const double rest_us =
        is_near ? std::max(0.0, both_us / kBesideEfficiency - count * std::max(reads_us, sums_us)) : most;
    input_us = input_flops / speedup * first / peak + (1 - first) * rest_us;
  } else if (packing.projection.levels > 0) {
    const auto parts =
        static_cast<double>(std::max<int64_t>(1, strassen_tasks(packing.projection, steps * batch, target.threads)));
    input_us = strassen_us(packing.projection, count * rows / parts, target);
    // Members write rows of gates that others read, and read blocks that others wrote.
    const double moved = count * rows * static_cast<double>(width * 4);
    if (target.threads > 1 && !is_cache_resident(moved / target.threads, target))
      input_us += 2 * far_byte_us(target) * moved / target.threads;
  } else if (takes_input(form, method, kernels, steps, batch)) {
    input_us = input_flops / (peak * efficiency * speedup);
    if (batch == 1)
      input_us = std::max(input_us, reading_us(input_bytes / speedup, lap + input_bytes / speedup, target));
  } else {
    const auto moved = static_cast<double>(steps * batch * (form.input + width) * 4);
    input_us = tasks_us(input_flops, 0.93, worthwhile_tasks(static_cast<int64_t>(input_flops)), moved, target);
  }
  return input_us + count * step_us;
}

}  // namespace neo
