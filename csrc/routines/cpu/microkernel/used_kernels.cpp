#include "routines/cpu/microkernel/used_kernels.h"

#include <atomic>
#include <utility>

namespace neo {
namespace {

std::atomic<uint64_t> used_rows, used_columns, used_strassen;
TileKernels real;      // what runs
TileKernels recorded;  // what steps call
StrassenKernels real_strassen, recorded_strassen;

template <int V, int R>
void run_rows(const Tile& tile) {
  used_rows.fetch_or(tile_bit(V, R), std::memory_order_relaxed);
  real.rows[V][R](tile);
}

template <int V, int R>
void run_columns(const Tile& tile) {
  used_columns.fetch_or(tile_bit(V, R), std::memory_order_relaxed);
  real.columns[V][R](tile);
}

template <int V, size_t... R>
void fill(std::index_sequence<R...>) {
  ((recorded.rows[V][R] = real.rows[V][R] ? run_rows<V, static_cast<int>(R)> : nullptr), ...);
  ((recorded.columns[V][R] = real.columns[V][R] ? run_columns<V, static_cast<int>(R)> : nullptr), ...);
}

const TileKernels& record(const TileKernels& kernels) {
  real = recorded = kernels;
  using Rows = std::make_index_sequence<kTileRows + 1>;
  fill<1>(Rows());
  fill<2>(Rows());
  fill<3>(Rows());
  fill<4>(Rows());
  static_assert(kTileVectors == 4);
  return recorded;
}

template <int V, int R>
void run_strassen_tile(const StrassenTile& tile) {
  used_strassen.fetch_or(tile_bit(V, R), std::memory_order_relaxed);
  real_strassen.tile[V][R](tile);
}

template <int V, size_t... R>
void fill_strassen(std::index_sequence<R...>) {
  ((recorded_strassen.tile[V][R] = real_strassen.tile[V][R] ? run_strassen_tile<V, static_cast<int>(R)> : nullptr),
   ...);
}

const StrassenKernels& record_strassen(const StrassenKernels& kernels) {
  real_strassen = recorded_strassen = kernels;
  using Rows = std::make_index_sequence<kTileRows + 1>;
  fill_strassen<2>(Rows());
  fill_strassen<3>(Rows());
  fill_strassen<4>(Rows());
  static_assert(kTileVectors == 4);
  return recorded_strassen;
}

}  // namespace

UsedTiles::UsedTiles() : before_(replace_tile_kernels), strassen_before_(replace_strassen_kernels) {
  used_rows = 0;
  used_columns = 0;
  used_strassen = 0;
  replace_tile_kernels = record;
  replace_strassen_kernels = record_strassen;
}

UsedTiles::~UsedTiles() {
  replace_tile_kernels = before_;
  replace_strassen_kernels = strassen_before_;
}

uint64_t UsedTiles::strassen() const {
  return used_strassen;
}

uint64_t UsedTiles::rows() const {
  return used_rows;
}

uint64_t UsedTiles::columns() const {
  return used_columns;
}

}  // namespace neo
