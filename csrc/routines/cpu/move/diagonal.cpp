#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "ops/movement.h"
#include "ops/sizes.h"
#include "routines/cost/step_cost.h"
#include "routines/cpu/tasks.h"
#include "routines/families.h"
#include "routines/patterns/epilogue.h"

namespace neo {
namespace {

// Rows of matrices, in each of which the columns on one side of a diagonal, or the one on it, are not zero.
struct DiagonalCall {
  int64_t rows = 0;     // of one matrix
  int64_t columns = 0;  // in elements
  int64_t width = 4;    // bytes of an element
  TaskSplit split;      // of blocks of rows of all matrices
  int64_t all_rows = 0;
  int64_t k = 0;  // the diagonal, set by run()
};

constexpr int64_t kRowsOfTask = 16;

enum class DiagonalKind : uint8_t { Lower, Upper, Unit };

class DiagonalStep final : public KernelStep {
 public:
  // `k`: the diagonal, counted upwards from the main one; `k_argument`: which argument holds it instead, or -1. `one`:
  // the element on it, of a unit matrix.
  DiagonalStep(DiagonalKind kind, int64_t k, int k_argument, std::array<std::byte, 16> one)
      : kind_(kind), k_(k), k_argument_(k_argument), one_(one) {}

  Prepared prepare(std::span<const Arg> args) const override {
    const Arg& y = args.back();
    NEO_ASSERT(args.front().is_dense() && y.is_dense(), "it takes dense tensors");
    const auto rank = static_cast<int>(y.dims.size());
    DiagonalCall call;
    call.rows = y.dims[static_cast<size_t>(rank - 2)];
    call.columns = y.dims[static_cast<size_t>(rank - 1)];
    call.width = item_bytes(y.dtype);
    call.all_rows = count_between(y.dims, 0, rank - 1);
    call.split = TaskSplit::of(ceil_div(call.all_rows, kRowsOfTask), call.all_rows * (call.columns * call.width + 40));
    return Prepared::of(call);
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte*, Team& team) const override {
    auto call = *reinterpret_cast<const DiagonalCall*>(prepared);
    // Diagonals beyond the matrix are as good as those next to it.
    const int64_t k = k_argument_ < 0 ? k_ : *reinterpret_cast<const int64_t*>(args[k_argument_]);
    call.k = std::clamp(k, -call.rows, call.columns);
    std::byte* y = args[kind_ == DiagonalKind::Unit ? 0 : std::max(k_argument_, 0) + 1];
    run_tasks(team, call.split, [&](int64_t begin, int64_t end, int) {
      const int64_t last = std::min(call.all_rows, end * kRowsOfTask);
      const int64_t first = begin * kRowsOfTask, bytes = call.columns * call.width;
      if (kind_ == DiagonalKind::Unit) {
        std::memset(y + first * bytes, 0, static_cast<size_t>((last - first) * bytes));
        for (int64_t r = first; r < last; ++r) write_one(call, r, y);
        return;
      }
      each_matrix(call, first, last, [&](int64_t row, int64_t of_matrix, int64_t count) {
        copy_rows(call, row, of_matrix, count, args[0], y);
      });
    });
  }

 private:
  // f(row, row of its matrix, count) for the rows [first, last) of all matrices, matrix by matrix.
  template <class F>
  static void each_matrix(const DiagonalCall& call, int64_t first, int64_t last, F&& f) {
    for (int64_t row = first, count; row < last; row += count) {
      const int64_t of_matrix = row % call.rows;
      count = std::min(call.rows - of_matrix, last - row);
      f(row, of_matrix, count);
    }
  }

  // Rows of one matrix: the first ones and the last ones are all in the triangle, or none of them.
  void copy_rows(const DiagonalCall& call, int64_t row, int64_t of_matrix, int64_t count, const std::byte* x,
                 std::byte* y) const {
    const bool upper = kind_ == DiagonalKind::Upper;
    const int64_t bytes = call.columns * call.width, end = of_matrix + count, before = row - of_matrix;
    const int64_t head = std::clamp((upper ? 1 : 0) - call.k, of_matrix, end);
    const int64_t tail = std::clamp(call.columns - (upper ? 0 : 1) - call.k, head, end);
    const auto move = [&](int64_t begin, int64_t behind, bool is_kept) {
      const auto size = static_cast<size_t>((behind - begin) * bytes);
      std::byte* to = y + (before + begin) * bytes;
      if (is_kept) {
        std::memcpy(to, x + (before + begin) * bytes, size);
      } else {
        std::memset(to, 0, size);
      }
    };
    move(of_matrix, head, upper);
    // Rows as they are while the first cache has room for them, then what is not of the triangle.
    for (int64_t i = head; i < tail; i += kRowsOfTask) {
      const int64_t behind = std::min(tail, i + kRowsOfTask);
      move(i, behind, true);
      for (int64_t r = i; r < behind; ++r) clear_side(call, before + r, r, y);
    }
    move(tail, end, !upper);
  }

  // The column on the diagonal in a row.
  static int64_t column_of(const DiagonalCall& call, int64_t i) { return std::max<int64_t>(i + call.k, -1); }

  void write_one(const DiagonalCall& call, int64_t row, std::byte* y) const {
    const int64_t at = column_of(call, row);
    if (at < 0 || at >= call.columns) return;
    std::memcpy(y + (row * call.columns + at) * call.width, one_.data(), static_cast<size_t>(call.width));
  }

  void clear_side(const DiagonalCall& call, int64_t row, int64_t of_matrix, std::byte* y) const {
    const int64_t diagonal = column_of(call, of_matrix);
    const bool upper = kind_ == DiagonalKind::Upper;
    const int64_t begin = upper ? 0 : std::clamp<int64_t>(diagonal, -1, call.columns - 1) + 1;
    const int64_t end = upper ? std::clamp<int64_t>(diagonal, 0, call.columns) : call.columns;
    if (begin < end) {
      std::memset(y + (row * call.columns + begin) * call.width, 0, static_cast<size_t>((end - begin) * call.width));
    }
  }

  DiagonalKind kind_;
  int64_t k_;
  int k_argument_;
  std::array<std::byte, 16> one_;
};

// Triangles of matrices, and unit matrices.
class DiagonalRoutine final : public RoutineOf<DiagonalRoutine> {
 public:
  std::string_view name() const override { return "cpu/diagonal"; }
  std::vector<std::string_view> roots() const override { return {"Trilu", "EyeLike"}; }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    const Node& node = workload.root();
    const Value* x = node.inputs[0];
    const Value* y = workload.outputs.front();
    if (!x->type.is_tensor() || !x->shape().has_rank()) return "the rank of the input is not known";
    if (y->dtype() == DType::String) return "strings have owners of their own";
    if (node.op == "EyeLike") {
      if (item_bytes(y->dtype()) > 8 || is_complex(y->dtype())) return "there is no one of its dtype";
      return std::nullopt;
    }
    const Value* k = node.input(1);
    if (k && (!k->type.is_tensor() || k->dtype() != DType::Int64 || !k->shape().has_rank() ||
              !(k->shape().element_count() == Dim(1)))) {
      return "the diagonal is not one number of int64";
    }
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const Node& node = workload.root();
    const Value* y = workload.outputs.front();
    const Value* k = node.input(1);
    Candidate c =
        Candidate::reading(workload, {node.op == "Trilu" ? node.inputs[0] : nullptr, k && !k->constant ? k : nullptr});
    const auto written = static_cast<double>(y->shape().element_count().hint() * item_bytes(y->dtype()));
    c.cost.time_us = unfitted_us({0, 1.5 * written}, target);
    return {std::move(c)};
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target&, const OpRegistry&, PackedStore&) {
    const Node& node = candidate.workload->root();
    std::array<std::byte, 16> one = {};
    if (node.op == "EyeLike") {
      const DType dtype = candidate.workload->outputs.front()->dtype();
      is_float(dtype) ? store_double(dtype, one.data(), 1) : store_int64(dtype, one.data(), 1);
      return std::make_unique<DiagonalStep>(DiagonalKind::Unit, node.int_attr("k", 0), -1, one);
    }
    const Value* k = node.input(1);
    const auto kind = node.int_attr("upper", 1) != 0 ? DiagonalKind::Upper : DiagonalKind::Lower;
    if (k && !k->constant) return std::make_unique<DiagonalStep>(kind, 0, argument_of(candidate, k), one);
    return std::make_unique<DiagonalStep>(kind, k ? load_ints(*k->constant).front() : 0, -1, one);
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(diagonal, DiagonalRoutine)

}  // namespace neo
