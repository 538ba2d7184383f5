#include <cmath>

#include "base/check.h"
#include "base/function_ref.h"
#include "routines/gpu/eltwise/steps.h"
#include "routines/gpu/movement/axes.h"
#include "routines/gpu/norm/families.h"

namespace neo::gpu {

using kernel::Array;
using kernel::Builder;
using kernel::Expr;
using kernel::Op;

namespace {

constexpr int64_t kMaxChannels = 1 << 20, kMaxNormPixels = int64_t{1} << 28;

// A kernel over [images, channels, pixels]: `lanes` pixels of one channel for each thread.
class PlaneKernel {
 public:
  PlaneKernel(const std::string& name, int lanes, int threads) : b(name), lanes_(lanes), threads_(threads) {
    items_ = b.size("items", 1, kMaxElements);
    images = b.size("images", 1, kMaxChannels);
    channels = b.size("channels", 1, kMaxChannels);
    pixels = b.size("pixels", 1, kMaxNormPixels);
    chunks_ = b.size("chunks", 1, kMaxNormPixels / lanes);
  }
  Expr elements() const { return images * channels * pixels; }

  // body(image, channel, pixel, lanes)
  kernel::Kernel write(FunctionRef<void(const Expr&, const Expr&, const Expr&, int)> body) {
    each_item(b, items_, threads_, [&](const Expr& item) {
      const Expr plane = b.let("plane", item / chunks_), first = b.let("first", item % chunks_ * lanes_);
      const Expr image = b.let("image", plane / channels), channel = b.let("channel", plane % channels);
      b.when(image < images, [&] {
        b.when(
            first <= pixels - lanes_, [&] { body(image, channel, first, lanes_); },
            [&] { b.loop("pixel", first, pixels, [&](const Expr& pixel) { body(image, channel, pixel, 1); }); });
      });
    });
    return b.finish();
  }

  Builder b;
  Expr images, channels, pixels;

 private:
  int lanes_, threads_;
  Expr items_, chunks_;
};

Expr numbers(double value, int lanes) {
  return lanes == 1 ? kernel::real(value) : broadcast(kernel::real(value), lanes);
}

kernel::Kernel lrn_kernel(const Node& node, int lanes, int threads) {
  const int64_t size = node.int_attr("size", 1);
  const double alpha = node.float_attr("alpha", 1e-4f) / static_cast<double>(size);
  const double beta = node.float_attr("beta", 0.75), bias = node.float_attr("bias", 1);
  PlaneKernel k("lrn", lanes, threads);
  Builder& b = k.b;
  const Array x = b.input("x", DType::Float32, k.elements()), y = b.output("y", DType::Float32, k.elements());
  return k.write([&](const Expr& image, const Expr& channel, const Expr& pixel, int n) {
    const auto at = [&](const Expr& c) { return (image * k.channels + c) * k.pixels + pixel; };
    const Array sum = b.registers("sum", {DType::Float32, n}, 1);
    sum[0] = numbers(0, n);
    const Expr below = static_cast<int>((size - 1) / 2), above = static_cast<int>(size - 1 - (size - 1) / 2);
    b.loop("c", max(channel - below, 0), min(channel + above + 1, k.channels), [&](const Expr& c) {
      const Expr other = b.let("other", x.at(at(c), n));
      sum[0] = fma(other, other, sum[0]);
    });
    const Expr base = b.let("base", sum[0] * numbers(alpha, n) + numbers(bias, n));
    y.at(at(channel), n) = x.at(at(channel), n) * call(Op::Exp, call(Op::Log, base) * numbers(-beta, n));
  });
}

kernel::Kernel batch_kernel(double epsilon, int lanes, int threads) {
  PlaneKernel k("batch_norm", lanes, threads);
  Builder& b = k.b;
  const Array x = b.input("x", DType::Float32, k.elements());
  const auto per_channel = [&](const char* name) { return b.input(name, DType::Float32, k.channels); };
  const Array scale = per_channel("scale"), bias = per_channel("bias"), mean = per_channel("mean"),
              variance = per_channel("variance");
  const Array y = b.output("y", DType::Float32, k.elements());
  return k.write([&](const Expr& image, const Expr& channel, const Expr& pixel, int n) {
    const Expr factor = b.let("factor", scale[channel] / call(Op::Sqrt, variance[channel] + kernel::real(epsilon)));
    const Expr at = (image * k.channels + channel) * k.pixels + pixel;
    const auto in = [&](const Expr& value) { return n == 1 ? value : broadcast(value, n); };
    y.at(at, n) = (x.at(at, n) - in(mean[channel])) * in(factor) + in(bias[channel]);
  });
}

}  // namespace

std::vector<std::string_view> channel_norm_roots() {
  return {"LRN", "BatchNormalization"};
}

std::optional<Made> read_channel_norm(const Workload& workload, const BasicOptions& options, std::string* why) {
  const Node& node = workload.root();
  if (options.together != 1) return not_made(why, "it takes plain arrays");
  for (const Value* v : workload.inputs) {
    if (!v->type.is_tensor() || v->dtype() != DType::Float32 || !v->shape().has_rank()) {
      return not_made(why, "an input is not a float32 tensor of known rank");
    }
  }
  const Shape& shape = node.inputs.front()->shape();
  if (shape.rank() < 2) return not_made(why, "it has no channels");
  const bool lrn = node.op == "LRN";
  if (!lrn && (node.int_attr("training_mode", 0) != 0 || workload.outputs.size() > 1 || workload.inputs.size() != 5)) {
    return not_made(why, "it trains");
  }
  const auto pixels = [](const Dims& dims) {
    int64_t n = 1;
    for (size_t i = 2; i < dims.size(); ++i) n *= dims[i];
    return n;
  };
  int lanes = options.lanes;
  while (lanes > 1 && lanes > pixels(shape.hint_dims())) lanes /= 2;
  Made made;
  for (size_t i = 0; i < workload.inputs.size(); ++i) made.inputs.push_back(static_cast<int>(i));
  made.flops = (lrn ? 40 + 2 * static_cast<double>(node.int_attr("size", 1)) : 4) *
               static_cast<double>(shape.element_count().hint());
  const auto launches = [lanes, pixels](std::span<const Dims> shapes) {
    const Dims& dims = shapes[0];
    Launches all;
    if (element_count(dims) == 0) return all;
    const int64_t n = pixels(dims);
    const int64_t chunks = (n + lanes - 1) / lanes;
    KernelLaunch launch{0, {dims[0] * dims[1] * chunks, dims[0], dims[1], n, chunks}};
    for (size_t i = 0; i < shapes.size(); ++i) launch.arguments.emplace_back(Operand{static_cast<int>(i)});
    all.launches.push_back(std::move(launch));
    return all;
  };
  made.program = [=, &node] {
    std::vector<kernel::Kernel> kernels;
    kernels.push_back(lrn ? lrn_kernel(node, lanes, options.threads)
                          : batch_kernel(node.float_attr("epsilon", 1e-5f), lanes, options.threads));
    return make_program(std::move(kernels), launches);
  };
  return made;
}

}  // namespace neo::gpu
