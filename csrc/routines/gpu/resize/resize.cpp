#include <algorithm>

#include "base/check.h"
#include "routines/gpu/movement/axes.h"
#include "routines/gpu/resize/families.h"
#include "routines/patterns/resize_taps.h"

namespace neo::gpu {

using kernel::Array;
using kernel::Builder;
using kernel::Expr;

namespace {

constexpr int64_t kMaxImageSize = 1 << 15;

// y = the sum of row_taps x column_taps elements. The table holds, [tap][output] each, positions and weights of the
// rows, then those of the columns.
kernel::Kernel resize_kernel(int64_t row_taps, int64_t column_taps, int threads) {
  Builder b("resize");
  const Expr items = b.size("items", 1, kMaxElements), planes = b.size("planes", 1, 1 << 22);
  const Expr in_rows = b.size("in_rows", 1, kMaxImageSize), in_columns = b.size("in_columns", 1, kMaxImageSize);
  const Expr rows = b.size("rows", 1, kMaxImageSize), columns = b.size("columns", 1, kMaxImageSize);
  const Array x = b.input("x", DType::Float32, planes * in_rows * in_columns);
  const Array row_table = b.input("row_table", DType::Float32, rows * (2 * row_taps), DType::Float32);
  const Array column_table = b.input("column_table", DType::Float32, columns * (2 * column_taps), DType::Float32);
  const Array y = b.output("y", DType::Float32, items);
  each_item(b, items, threads, [&](const Expr& item) {
    const std::vector<Expr> sizes = {planes, rows, columns};
    const std::vector<Expr> at = split_index(b, item, sizes);
    b.when(at[0] < planes, [&] {
      const Array sum = b.registers("sum", kernel::kFloat, 1);
      sum[0] = 0.0f;
      b.loop("r", 0, row_taps, [&](const Expr& r) {
        const Expr row = b.let("row", cast(row_table[r * rows + at[1]], DType::Int32));
        const Expr row_weight = b.let("row_weight", row_table[(r + row_taps) * rows + at[1]]);
        b.loop("c", 0, column_taps, [&](const Expr& c) {
          const Expr column = b.let("column", cast(column_table[c * columns + at[2]], DType::Int32));
          const Expr weight = b.let("weight", column_table[(c + column_taps) * columns + at[2]]);
          b.when(row >= 0 && row < in_rows && column >= 0 && column < in_columns,
                 [&] { sum[0] = fma(x[(at[0] * in_rows + row) * in_columns + column], row_weight * weight, sum[0]); });
        });
      });
      y[item] = sum[0];
    });
  });
  return b.finish();
}

std::vector<float> floats_of(const TapTable& table) {
  std::vector<float> floats(table.position.begin(), table.position.end());
  floats.insert(floats.end(), table.weight.begin(), table.weight.end());
  return floats;
}

}  // namespace

std::vector<std::string_view> resize_roots() {
  return {"Resize"};
}

std::optional<Made> read_resize(const Workload& workload, const BasicOptions& options, std::string* why) {
  const Node& node = workload.root();
  if (options.together != 1) return not_made(why, "it takes plain arrays");
  if (auto reason = reject_resize(node, 0)) return not_made(why, *reason);
  const Shape &in = node.inputs.front()->shape(), &out = workload.outputs.front()->shape();
  if (!in.is_static() || !out.is_static()) return not_made(why, "its sizes are not constant");
  const Dims from = in.to_dims(), to = out.to_dims();
  const int rank = in.rank();
  if (element_count(from) == 0 || element_count(to) == 0) return not_made(why, "it is empty");
  if (std::max(from.back(), to.back()) > kMaxImageSize) return not_made(why, "its rows are too long");
  TapTable rows{1, {0}, {1.0f}};
  int64_t in_rows = 1, out_rows = 1, planes = 1;
  if (rank > 1) {
    in_rows = from[from.size() - 2];
    out_rows = to[to.size() - 2];
    if (std::max(in_rows, out_rows) > kMaxImageSize) return not_made(why, "it has too many rows");
    rows = tap_table(node, resize_factor(node, rank - 2), in_rows, out_rows);
  }
  for (int i = 0; i < rank - 2; ++i) planes *= from[static_cast<size_t>(i)];
  const TapTable columns = tap_table(node, resize_factor(node, rank - 1), from.back(), to.back());
  Made made;
  made.inputs = {0};
  made.tables = {floats_of(rows), floats_of(columns)};
  made.flops = static_cast<double>(3 * rows.taps * columns.taps * element_count(to));
  const KernelLaunch launch{0,
                            {element_count(to), planes, in_rows, from.back(), out_rows, to.back(), Operand{0},
                             Packed{0}, Packed{1}, Operand{1}}};
  made.program = [launch, row_taps = rows.taps, column_taps = columns.taps, threads = options.threads] {
    std::vector<kernel::Kernel> kernels;
    kernels.push_back(resize_kernel(row_taps, column_taps, threads));
    return make_program(std::move(kernels), [launch](std::span<const Dims>) { return Launches{{}, {launch}}; });
  };
  return made;
}

}  // namespace neo::gpu
