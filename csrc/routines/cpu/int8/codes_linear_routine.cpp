#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/int_math.h"
#include "routines/cost/step_cost.h"
#include "routines/cpu/int8/codes_elements.h"
#include "routines/cpu/int8/codes_kernels.h"
#include "routines/cpu/int8/int8_problem.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"
#include "routines/patterns/code_grid.h"

namespace neo {
namespace {

// Elements that one task converts, and up to which one thread converts all.
constexpr int64_t kLinearChunk = 16384, kLinearSerial = 65536;

std::optional<CodesLinear> linear_of(DType codes) {
  using Type = CodesLinear::Type;
  CodesLinear f;
  switch (codes) {
    case DType::UInt8:
      break;
    case DType::UInt4:
    case DType::Int4:
      f.mask = 0xf;
      break;
    case DType::UInt2:
    case DType::Int2:
      f.mask = 0x3;
      break;
    case DType::Int8:
      f.type = Type::Int8;
      break;
    case DType::UInt16:
      f.type = Type::UInt16;
      break;
    case DType::Int16:
      f.type = Type::Int16;
      break;
    case DType::Int32:
      f.type = Type::Int32;
      break;
    default:
      return std::nullopt;
  }
  f.lo = static_cast<int32_t>(integer_min(codes));
  f.hi = static_cast<int32_t>(integer_max(codes));
  if (f.lo < 0) f.sign = (f.mask + 1) / 2;
  return f;
}

// A QuantizeLinear or DequantizeLinear between float32 and integer codes: of one scale, of one for each position of an
// axis, or of one for each block along it.
struct LinearForm {
  bool quantizes = false;
  DType codes = DType::Undefined;
  CodesLinear linear;  // with scale and zero point where they are constants of one element
  bool is_known = false;
  int axis = 0;
  int64_t block = 0;  // 0: none

  static std::optional<LinearForm> read(const Node& node, std::string* why) {
    const auto reject = [&](const char* reason) {
      if (why) *why = reason;
      return std::nullopt;
    };
    LinearForm form;
    form.quantizes = node.op == "QuantizeLinear";
    const Value* codes = form.quantizes ? node.outputs[0] : node.inputs[0];
    const Value* numbers = form.quantizes ? node.inputs[0] : node.outputs[0];
    const Value* scale = node.inputs[1];
    const Value* zero = node.input(2);
    for (const Value* v : {codes, numbers, scale, zero}) {
      if (v && (!v->type.is_tensor() || !v->shape().has_rank())) return reject("the rank of an operand is not known");
    }
    const auto linear = linear_of(codes->dtype());
    if (!linear || numbers->dtype() != DType::Float32 || scale->dtype() != DType::Float32 ||
        (zero && zero->dtype() != codes->dtype()) || node.int_attr("precision", 1) > 1)
      return reject("not between float32 and integer codes by float32 scales");
    if (node.inputs[0]->constant) return reject("its input is a constant");
    form.codes = codes->dtype();
    form.linear = *linear;
    if (form.codes == DType::Int32) {
      // Differences of other zero points may leave int32, and its last numbers are not float32's.
      if (form.quantizes) return reject("the result is int32");
      if (zero && !has_only_zeros(*zero)) return reject("int32 codes have zero points");
    }
    form.block = node.int_attr("block_size", 0);
    form.axis = static_cast<int>(node.int_attr("axis", 1));
    if (form.axis < 0) form.axis += numbers->shape().rank();
    const auto is_one = [](const Value* v) { return !v || v->shape().element_count().is(1); };
    if (form.block == 0 && is_one(scale) && is_one(zero) && scale->constant && (!zero || zero->constant)) {
      // Quotients by scales and products with them are normal numbers.
      constexpr float kMinScale = 1e-30f, kMaxScale = 1e30f;
      form.is_known = true;
      form.linear.scale = static_cast<float>(load_double(DType::Float32, scale->constant->data()));
      if (!(form.linear.scale > kMinScale && form.linear.scale < kMaxScale))
        return reject("the scale is no normal one");
      if (zero) form.linear.zero = static_cast<int32_t>(load_int64(zero->dtype(), zero->constant->data()));
    }
    return form;
  }

 private:
  static bool has_only_zeros(const Value& zero) {
    if (!zero.constant) return false;
    if (zero.constant->is_absent()) return true;  // of a saved module, which was read before
    const std::vector<double> zeros = load_doubles(*zero.constant);
    return std::all_of(zeros.begin(), zeros.end(), [](double z) { return z == 0; });
  }
};

// Runs of neighbouring elements that one call of a kernel converts, in rows: run i of a row begins i * length elements
// behind the row's start, the last one may be shorter.
struct LinearRuns {
  int64_t rows = 1, row = 0;  // their number and their elements
  int64_t length = 0, per_row = 0;
  // Run i of a row has the scale at (row * row_scales + i / per_scale) * scale_step, or the scales from there on.
  int64_t row_scales = 0, per_scale = 1, scale_step = 0;
  bool by_element = false;

  static LinearRuns of(const LinearForm& form, const Dims& dims, const Dims& scale) {
    const bool is_one = scale.size() <= 1 && element_count(scale) == 1;
    LinearRuns r;
    if (is_one && form.block == 0) {
      r.row = element_count(dims);
      r.length = std::min(kLinearChunk, r.row);
      r.per_row = ceil_div(r.row, std::max<int64_t>(1, r.length));
      return r;
    }
    const auto axis = static_cast<size_t>(form.axis);
    int64_t inner = 1;
    for (size_t i = 0; i < axis; ++i) r.rows *= dims[i];
    for (size_t i = axis + 1; i < dims.size(); ++i) inner *= dims[i];
    r.row = dims[axis] * inner;
    const int64_t block = std::max<int64_t>(1, form.block);
    const int64_t blocks = ceil_div(dims[axis], block);
    r.by_element = form.block == 0 ? inner == 1 : inner > 1;
    if (form.block == 0) {
      r.length = inner == 1 ? dims[axis] : inner;
      r.scale_step = 1;
    } else {
      r.length = inner == 1 ? block : inner;
      r.row_scales = blocks;
      r.per_scale = inner == 1 ? 1 : block;
      r.scale_step = inner;
    }
    r.per_row = ceil_div(r.row, std::max<int64_t>(1, r.length));
    return r;
  }

  int64_t scale_at(int64_t in_row, int64_t run) const { return (in_row * row_scales + run / per_scale) * scale_step; }
};

class CodesLinearStep final : public KernelStep {
 public:
  CodesLinearStep(const LinearForm& form, const Node& node, const Candidate& candidate, const CodesKernels& kernels)
      : form_(form),
        scale_(argument_of(candidate, node.input(1))),
        zero_(argument_of(candidate, node.input(2))),
        kernels_(kernels) {
    for (const auto& schema : candidate.inputs) y_ += schema.has_value();
  }

  Prepared prepare(std::span<const Arg> args) const override {
    Call call;
    if (form_.is_known) {
      const Arg operands[] = {args[0], args[static_cast<size_t>(y_)]};
      call.elements = DenseElements::of(operands);
      return Prepared::of(call);
    }
    for (const Arg& a : args) NEO_ASSERT(a.is_dense() && !a.layout.is_blocked(), "an operand of codes is not dense");
    call.runs = LinearRuns::of(form_, args[0].dims, args[static_cast<size_t>(scale_)].dims);
    return Prepared::of(call);
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte*, Team& team) const override {
    const auto& call = *reinterpret_cast<const Call*>(prepared);
    const int64_t code = item_bytes(form_.codes);
    const int64_t from = form_.quantizes ? 4 : code, to = form_.quantizes ? code : 4;
    const auto convert = [&](const CodesLinear& f, int64_t first, int64_t count) {
      const std::byte* x = args[0] + first * from;
      std::byte* y = args[y_] + first * to;
      if (form_.quantizes) {
        kernels_.quantize(f, reinterpret_cast<const float*>(x), y, count);
      } else {
        kernels_.dequantize(f, x, reinterpret_cast<float*>(y), count);
      }
    };
    if (form_.is_known) {
      call.elements.run(team, args[y_], to, [&](int64_t first, int64_t count) { convert(form_.linear, first, count); });
      return;
    }
    const LinearRuns& r = call.runs;
    const int64_t runs = r.rows * r.per_row;
    const auto some = [&](int64_t begin, int64_t end, int) {
      CodesLinear f = form_.linear;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = i / r.per_row, run = i % r.per_row, at = r.scale_at(row, run);
        const auto* scales = reinterpret_cast<const float*>(args[scale_]) + at;
        const std::byte* zeros = zero_ >= 0 ? args[zero_] + at * code : nullptr;
        if (r.by_element) {
          f.scales = scales;
          f.zeros = zeros;
        } else {
          f.scale = *scales;
          f.zero = zeros ? static_cast<int32_t>(load_int64(form_.codes, zeros)) : 0;
        }
        convert(f, row * r.row + run * r.length, std::min(r.length, r.row - run * r.length));
      }
    };
    if (r.rows * r.row <= kLinearSerial) {
      some(0, runs, 0);
      return;
    }
    const int64_t together = std::max<int64_t>(1, kLinearChunk / r.length);
    team.parallel_for(ceil_div(runs, together), [&](int64_t begin, int64_t end, int member) {
      some(begin * together, std::min(runs, end * together), member);
    });
  }

 private:
  struct Call {
    DenseElements elements;  // where scale and zero point are known
    LinearRuns runs;         // else
  };

  LinearForm form_;
  int scale_, zero_, y_ = 0;  // arguments; the former two negative where there are none
  const CodesKernels& kernels_;
};

// DynamicQuantizeLinear: the range of all elements, with 0, then their codes.
class DynamicLinearStep final : public KernelStep {
 public:
  explicit DynamicLinearStep(const CodesKernels& kernels) : kernels_(kernels) {}

  Prepared prepare(std::span<const Arg> args) const override {
    NEO_ASSERT(args[0].is_dense() && args[1].is_dense(), "an operand of codes is not dense");
    const int64_t count = element_count(args[0].dims);
    return Prepared::of(count, ceil_div(count, kLinearChunk) * static_cast<int64_t>(sizeof(Range)));
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const int64_t count = *reinterpret_cast<const int64_t*>(prepared), chunks = ceil_div(count, kLinearChunk);
    const auto* x = reinterpret_cast<const float*>(args[0]);
    auto* ranges = reinterpret_cast<Range*>(scratch);
    const auto in_parts = [&](const auto& part) {
      if (count <= kLinearSerial) {
        for (int64_t i = 0; i < chunks; ++i) part(i);
      } else {
        team.parallel_for(chunks, [&](int64_t begin, int64_t end, int) {
          for (int64_t i = begin; i < end; ++i) part(i);
        });
      }
    };
    const auto size = [&](int64_t i) { return std::min(kLinearChunk, count - i * kLinearChunk); };
    in_parts([&](int64_t i) {
      ranges[i] = {};
      kernels_.range(x + i * kLinearChunk, size(i), ranges[i].lo, ranges[i].hi);
    });
    Range all;
    for (int64_t i = 0; i < chunks; ++i) all = {std::min(all.lo, ranges[i].lo), std::max(all.hi, ranges[i].hi)};
    CodesLinear linear;
    linear.scale = all.lo == all.hi ? 1.0f : (all.hi - all.lo) / 255.0f;
    linear.zero = static_cast<int32_t>(std::clamp(std::nearbyintf(0.0f - all.lo / linear.scale), 0.0f, 255.0f));
    in_parts([&](int64_t i) {
      kernels_.quantize(linear, x + i * kLinearChunk, reinterpret_cast<uint8_t*>(args[1]) + i * kLinearChunk, size(i));
    });
    *reinterpret_cast<float*>(args[2]) = linear.scale;
    *reinterpret_cast<uint8_t*>(args[3]) = static_cast<uint8_t>(linear.zero);
  }

 private:
  struct Range {
    float lo = 0, hi = 0;
  };

  const CodesKernels& kernels_;
};

// QuantizeLinear and DequantizeLinear in one pass, and DynamicQuantizeLinear in two.
class CodesLinearRoutine final : public RoutineOf<CodesLinearRoutine> {
 public:
  std::string_view name() const override { return "cpu:int8/linear"; }
  std::vector<std::string_view> roots() const override {
    return {"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"};
  }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    if (is_dynamic(workload)) {
      const Value* x = workload.root().inputs[0];
      if (!x->type.is_tensor() || !x->shape().has_rank() || x->dtype() != DType::Float32)
        return "the input is not a float32 tensor of known rank";
      if (workload.outputs.size() != 3) return "a result is left out";
      return std::nullopt;
    }
    std::string why;
    return LinearForm::read(workload.root(), &why) ? std::nullopt : std::optional(why);
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    // Cycles of a vector: a quotient takes longer than a product.
    constexpr double kQuantizeCycles = 7, kDequantizeCycles = 4;
    const Value* y = workload.outputs.front();
    Candidate c;
    c.inputs.resize(workload.inputs.size());
    const bool is_known = !is_dynamic(workload) && LinearForm::read(workload.root(), nullptr)->is_known;
    for (const Value* v : workload.root().inputs) {
      if (!v || (is_known && v->constant)) continue;
      c.inputs[static_cast<size_t>(workload.input_index(v))] = plain_schema(v->type);
    }
    for (const Value* v : workload.outputs) c.outputs.push_back(plain_schema(v->type));
    const auto count = static_cast<double>(element_count(y->shape().hint_dims()));
    const double cycles = workload.root().op == "DequantizeLinear" ? kDequantizeCycles : kQuantizeCycles;
    price(c, workload, {StepFamily::CodesLinear, count / static_cast<double>(target.lanes()) * cycles, 1}, target);
    if (!is_known) return {std::move(c)};
    return held_alike(std::move(c), y->shape(), target);
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore&) {
    if (is_dynamic(*candidate.workload))
      return std::make_unique<DynamicLinearStep>(NEO_PICK_TIER(target.isa, codes_kernels)());
    const Node& node = candidate.workload->root();
    return std::make_unique<CodesLinearStep>(*LinearForm::read(node, nullptr), node, candidate,
                                             NEO_PICK_TIER(target.isa, codes_kernels)());
  }

 private:
  static bool is_dynamic(const Workload& workload) { return workload.root().op == "DynamicQuantizeLinear"; }
};

}  // namespace

NEO_DEFINE_ROUTINE(int8_linear, CodesLinearRoutine)

}  // namespace neo
