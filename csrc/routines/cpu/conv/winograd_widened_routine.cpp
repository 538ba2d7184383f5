#include <algorithm>
#include <cmath>

#include "routines/cpu/conv/conv_routine.h"
#include "routines/cpu/conv/winograd_form.h"

namespace neo {
namespace {

constexpr double kMostError = 12;  // as of all tiles of Winograd's

int64_t widened(int64_t side) {
  return side + (side > 1 && side % 2 == 0 ? 1 : 0);
}

// A workload whose convolution has a kernel that ends in zeros where a side was even, and as much more padding there.
struct WidenedWorkload {
  Node conv;
  Value weight;
  Workload workload;

  WidenedWorkload(const Workload& from, const ConvGeometry& geometry, bool with_weights) {
    const Node& node = *from.nodes.front();
    const int axes = geometry.axes;
    std::vector<int64_t> kernel, pads = geometry.window.pads;
    Dims dims = node.inputs[1]->shape().to_dims();
    for (int i = 0; i < axes; ++i) {
      const int64_t side = geometry.kernel[3 - axes + i];
      kernel.push_back(widened(side));
      pads[static_cast<size_t>(axes + i)] += widened(side) - side;
      dims[static_cast<size_t>(i + 2)] = widened(side);
    }
    weight.type = Type::tensor(DType::Float32, Shape::of(dims));
    weight.constant = with_weights ? widen(*node.inputs[1]->constant, dims) : Tensor();
    conv.op = node.op;
    conv.name = node.name;
    conv.inputs = node.inputs;
    conv.inputs[1] = &weight;
    conv.outputs = node.outputs;
    conv.attrs = node.attrs;
    conv.attrs["auto_pad"] = std::string("NOTSET");
    conv.attrs["pads"] = pads;
    conv.attrs["kernel_shape"] = kernel;
    workload = from;
    workload.nodes.front() = &conv;
    std::replace(workload.inputs.begin(), workload.inputs.end(), node.inputs[1], &weight);
  }

 private:
  static Tensor widen(const Tensor& weight, const Dims& dims) {
    if (weight.is_absent()) return Tensor::absent(DType::Float32, dims);
    Tensor wide(DType::Float32, dims);
    const auto at = [](const Dims& sizes, size_t axis) { return axis < sizes.size() ? sizes[axis] : 1; };
    const Dims& narrow = weight.dims();
    const bool plane = dims.size() == 4;
    const int64_t rows = plane ? at(narrow, 2) : 1, columns = narrow.back();
    const int64_t wide_rows = plane ? at(dims, 2) : 1, wide_columns = dims.back();
    const float* src = weight.as<float>();
    float* dst = wide.as<float>();
    std::fill_n(dst, wide.size(), 0.0f);
    for (int64_t i = 0; i < dims[0] * dims[1]; ++i) {
      for (int64_t r = 0; r < rows; ++r) {
        std::copy_n(src + (i * rows + r) * columns, columns, dst + (i * wide_rows + r) * wide_columns);
      }
    }
    return wide;
  }
};

// Winograd convolution for kernels of an even side, as those of the next odd side: Lavin & Gray 2015.
class WinogradWidenedRoutine final : public ConvRoutine {
 public:
  std::string_view name() const override { return "cpu:float32/winograd_widened"; }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target,
                                    const OpRegistry& ops) const override {
    const ConvGeometry geometry = read_conv(workload, nullptr)->geometry;
    const WidenedWorkload wide(workload, geometry, false);
    std::vector<Candidate> all = winograd_->candidates(wide.workload, target, ops);
    // The direct method's error, which is the unit, grows with the taps.
    double taps = 1;
    for (int64_t side : geometry.kernel) taps *= static_cast<double>(widened(side)) / static_cast<double>(side);
    for (Candidate& c : all) c.cost.error *= std::sqrt(taps);
    std::erase_if(all, [](const Candidate& c) { return c.cost.error > kMostError; });
    return all;
  }

  std::unique_ptr<Step> make(const Candidate& candidate, const Target& target, const OpRegistry& ops,
                             PackedStore& packed) const override {
    return make_step(candidate, target, ops, packed);
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry& ops,
                                         PackedStore& packed) {
    const WidenedWorkload wide(*candidate.workload, read_conv(*candidate.workload, nullptr)->geometry, true);
    Candidate inner = candidate;
    inner.workload = std::make_shared<const Workload>(wide.workload);
    auto step = make_winograd_step(inner, target, ops, packed);
    packed.stands_for(&wide.weight, candidate.workload->nodes.front()->inputs[1]);
    return step;
  }

 protected:
  std::optional<std::string> rejects_problem(const ConvProblem& problem, const Target&) const override {
    const ConvGeometry& g = problem.geometry;
    if (g.axes > 2) return "more than two spatial axes";
    if (const char* why = reject_run_time_weights(problem)) return why;
    const Dims ones(static_cast<size_t>(problem.rank()), 1);
    ConvShape shape = g.shape(ones, ones);
    if (widened(shape.kh) == shape.kh && widened(shape.kw) == shape.kw) return "no side of the kernel is even";
    if (g.has_sized_pads()) return "the padding follows from the sizes";
    shape.kh = widened(shape.kh);
    shape.kw = widened(shape.kw);
    if (const char* why = reject_winograd(shape)) return why;
    return std::nullopt;
  }

 private:
  std::unique_ptr<Routine> winograd_ = make_winograd_routine();
};

}  // namespace

NEO_DEFINE_ROUTINE(winograd_widened, WinogradWidenedRoutine)

}  // namespace neo
