#include "routines/gpu/movement/axes.h"

namespace neo::gpu {
namespace {

class FunctionProgram final : public Program {
 public:
  FunctionProgram(std::vector<kernel::Kernel> kernels, LaunchFunction launches)
      : kernels_(std::move(kernels)), launches_(std::move(launches)) {}
  const std::vector<kernel::Kernel>& kernels() const override { return kernels_; }
  Launches launches(std::span<const Dims> shapes) const override { return launches_(shapes); }

 private:
  std::vector<kernel::Kernel> kernels_;
  LaunchFunction launches_;
};

}  // namespace

using kernel::Expr;

std::vector<Expr> split_index(kernel::Builder& builder, const Expr& index, std::span<const Expr> sizes) {
  std::vector<Expr> coordinates(sizes.size());
  Expr rest = index;
  for (size_t i = sizes.size(); i-- > 1;) {
    coordinates[i] = builder.let("c", rest % sizes[i]);
    rest = builder.let("rest", rest / sizes[i]);
  }
  if (!sizes.empty()) coordinates[0] = rest;
  return coordinates;
}

Expr join_index(std::span<const Expr> coordinates, std::span<const Expr> sizes) {
  Expr index = 0;
  for (size_t i = 0; i < coordinates.size(); ++i) {
    index = i == 0 ? coordinates[0] : index * sizes[i] + coordinates[i];
  }
  return index;
}

Expr join_index_unproven(kernel::Builder& builder, std::span<const Expr> coordinates, std::span<const Expr> sizes) {
  Expr index = kernel::integer(0, {DType::Int64, 1});
  for (size_t i = 0; i < coordinates.size(); ++i) {
    const Expr own = cast(coordinates[i], DType::Int64);
    index = i == 0 ? own : index * cast(sizes[i], DType::Int64) + own;
  }
  return builder.let("at", cast(index, DType::Int32));
}

Expr product(std::span<const Expr> sizes) {
  Expr all = 1;
  for (size_t i = 0; i < sizes.size(); ++i) all = i == 0 ? sizes[0] : all * sizes[i];
  return all;
}

void each_item(kernel::Builder& builder, const Expr& items, int threads, FunctionRef<void(const Expr&)> body) {
  const Expr item =
      builder.let("item", builder.group(0, "gx", ceildiv(items, threads)) * threads + builder.local(0, "lx", threads));
  builder.when(item < items, [&] { body(item); });
}

std::unique_ptr<Program> make_program(std::vector<kernel::Kernel> kernels, LaunchFunction launches) {
  return std::make_unique<FunctionProgram>(std::move(kernels), std::move(launches));
}

int dividing_lanes(int64_t number, int most) {
  int lanes = 1;
  while (lanes * 2 <= most && number % (lanes * 2) == 0) lanes *= 2;
  return lanes;
}

}  // namespace neo::gpu
