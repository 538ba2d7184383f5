#include "routines/cost/loop_nest.h"

#include <algorithm>
#include <cmath>

namespace neo {
namespace {

constexpr std::string_view kNames[] = {
    "flops",       "intensity",    "rows",          "vectors",         "block",       "fill",       "reduction",
    "inner",       "passes",       "block_in_l1",   "pixels_in_l1",    "task_in_l1",  "task_in_l2", "weights_in_l2",
    "sweep_in_l1", "sweep_in_l2",  "team_in_l2",    "workspace_in_l2", "weights",     "inputs",     "outputs",
    "input_reads", "weight_reads", "output_passes", "moved",           "moved_share", "tasks",      "tasks_per_thread",
    "balance",     "task_flops",   "order",         "prefetch",        "tile",        "threads",    "lanes",
    "cold",        "private_l2",   "estimate",      "efficiency"};

double log_of(double value) {
  return std::log2(std::max(value, 0.0) + 1);
}

// Below 0: it fits; above: so many times too large, as a power of two.
double beside(double bytes, double cache) {
  return std::clamp(std::log2((bytes + 1) / cache), -12.0, 12.0);
}

}  // namespace

std::span<const std::string_view> loop_feature_names() {
  return kNames;
}

std::vector<float> loop_features(const LoopNest& l, double estimate_us, const Target& target) {
  const auto l1 = static_cast<double>(target.l1_bytes), l2 = static_cast<double>(target.l2_bytes);
  const double threads = target.threads, tasks = std::max(l.tasks, 1.0);
  const double task_bytes = l.task_inputs + l.task_weights + l.task_outputs;
  const double traffic = std::max(l.inputs + l.weights + l.outputs, 1.0);
  const double balance = tasks / (std::ceil(tasks / threads) * threads);
  const double ideal_us = l.flops / (target.gflops_per_thread * 1e3 * threads);
  const double values[] = {log_of(l.flops),
                           log_of(l.flops / traffic),
                           l.rows,
                           l.vectors,
                           l.rows * l.vectors,
                           l.full_rows > 0 ? l.rows / l.full_rows : 1,
                           log_of(l.reduction),
                           log_of(l.inner),
                           log_of(l.passes),
                           beside(l.block_bytes, l1),
                           beside(l.pixel_bytes, l1),
                           beside(task_bytes, l1),
                           beside(task_bytes, l2),
                           beside(l.weights, l2),
                           beside(l.sweep_bytes, l1),
                           beside(l.sweep_bytes, l2),
                           beside(traffic / threads, l2),
                           beside(l.workspace, l2),
                           log_of(l.weights),
                           log_of(l.inputs),
                           log_of(l.outputs),
                           log_of(l.input_reads / std::max(l.inputs, 1.0)),
                           log_of(l.weight_reads / std::max(l.weights, 1.0)),
                           log_of(l.passes * l.outputs / traffic),
                           log_of(l.moved),
                           l.moved * 4 / traffic,
                           log_of(tasks),
                           log_of(tasks / threads),
                           balance,
                           log_of(l.flops / tasks),
                           l.order,
                           l.prefetched,
                           l.tile,
                           threads,
                           static_cast<double>(target.lanes()),
                           target.cold_constants ? 1.0 : 0.0,
                           std::log2(static_cast<double>(private_caches(target).l2_bytes)),
                           std::log2(std::max(estimate_us, 1e-3)),
                           estimate_us > 0 ? ideal_us / estimate_us : 0};
  static_assert(std::size(values) == std::size(kNames));
  return {std::begin(values), std::end(values)};
}

}  // namespace neo
