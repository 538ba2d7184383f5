#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/int_math.h"
#include "routines/cost/step_cost.h"
#include "routines/cpu/int8/dot_conv.h"
#include "routines/cpu/int8/int8_problem.h"
#include "routines/cpu/tasks.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"
#include "routines/patterns/code_grid.h"
#include "routines/patterns/epilogue.h"

namespace neo {
namespace {

// DequantizeLinear of both operands, MatMul [, QuantizeLinear], or a MatMulInteger alone; the second operand is one
// that only running tells, or has several matrices.
struct CodesMatmul {
  const Node* node = nullptr;
  const Value* a = nullptr;
  const Value* b = nullptr;
  const Value* y = nullptr;
  CodeGrid a_grid, b_grid;
  const Value* a_zero = nullptr;  // where only running tells it; else null
  const Value* b_zero = nullptr;
  std::optional<CodeGrid> y_grid;  // none: the result is float32, or the sums as they are
  bool is_whole = false;           // the latter, int32
  float lo = -INFINITY, hi = INFINITY;

  static std::optional<CodesMatmul> read(const Workload& workload, std::string* why) {
    const auto reject = [&](const char* reason) {
      if (why) *why = reason;
      return std::nullopt;
    };
    CodesMatmul p;
    p.y = workload.outputs.front();
    const Node& root = workload.root();
    p.is_whole = root.op == "MatMulInteger";
    if (p.is_whole) {
      p.node = &root;
      p.a = root.inputs[0];
      p.b = root.inputs[1];
      if (!is_byte(p.a) || !is_byte(p.b)) return reject("an operand is not 8-bit codes");
      if (!read_zero(root.input(2), p.a, p.a_grid, p.a_zero) || !read_zero(root.input(3), p.b, p.b_grid, p.b_zero))
        return reject("an operand has several zero points");
    } else {
      if (workload.nodes.size() < 3) return reject("its operands are not codes");
      p.node = workload.nodes[2];
      const auto a = read_code_grid(*p.node->inputs[0]->producer), b = read_code_grid(*p.node->inputs[1]->producer);
      if (!a || !b) return reject("an operand is not 8-bit codes of one constant scale");
      p.a = p.node->inputs[0]->producer->inputs[0];
      p.b = p.node->inputs[1]->producer->inputs[0];
      p.a_grid = *a;
      p.b_grid = *b;
      p.lo = static_cast<float>(p.node->float_attr("clamp_min", p.lo));
      p.hi = static_cast<float>(p.node->float_attr("clamp_max", p.hi));
      if (p.node != &root && !(p.y_grid = read_code_grid(root)))
        return reject("the result is not 8-bit codes of one constant scale");
      if (p.node == &root && p.y->dtype() != DType::Float32) return reject("the result is not float32");
    }
    const Shape& a = p.a->shape();
    const Shape& b = p.b->shape();
    if (!a.has_rank() || !b.has_rank() || a.rank() < 2 || b.rank() < 2) return reject("an operand has no two axes");
    if (p.b->constant && b.rank() == 2) return reject("the weights are constants");
    // One matrix serves all of the other operand, or there are as many of both.
    const auto is_one = [](const Shape& s) {
      for (int i = 0; i + 2 < s.rank(); ++i) {
        if (!s[i].is(1)) return false;
      }
      return true;
    };
    bool alike = a.rank() == b.rank();
    for (int i = 0; alike && i + 2 < a.rank(); ++i) alike = a[i] == b[i];
    if (!alike && !is_one(a) && !is_one(b)) return reject("the matrices are broadcast");
    // Sums of MatMulInteger wrap.
    constexpr int64_t kMaxDepth = 16384;
    if (!p.is_whole && a[a.rank() - 1].range().hi > kMaxDepth) return reject("a sum may leave int32");
    return p;
  }

 private:
  static bool is_byte(const Value* v) {
    return v->type.is_tensor() && (v->dtype() == DType::UInt8 || v->dtype() == DType::Int8);
  }

  static bool read_zero(const Value* zero, const Value* codes, CodeGrid& grid, const Value*& at_run_time) {
    grid.dtype = codes->dtype();
    if (!zero) return true;
    if (!zero->shape().has_rank() || !zero->shape().element_count().is(1)) return false;
    if (zero->constant) {
      grid.zero = static_cast<int32_t>(load_int64(zero->dtype(), zero->constant->data()));
    } else {
      at_run_time = zero;
    }
    return true;
  }
};

// The sizes of a product, all matrices by one where the second operand has a single one.
struct MatmulShape {
  int64_t matrices = 1, a_step = 0, b_step = 0;  // elements from matrix to matrix
  int64_t rows = 0, depth = 0, columns = 0;

  static MatmulShape of(const Dims& a, const Dims& b) {
    MatmulShape s;
    s.depth = a.back();
    s.columns = b.back();
    s.rows = a[a.size() - 2];
    const auto count = [](const Dims& dims) { return element_count(Dims(dims.begin(), dims.end() - 2)); };
    const int64_t in_a = count(a), in_b = count(b);
    if (in_b == 1) {
      s.rows *= in_a;
      return s;
    }
    s.matrices = in_b;
    s.a_step = in_a == 1 ? 0 : s.rows * s.depth;
    s.b_step = s.depth * s.columns;
    return s;
  }

  DotShape one() const {
    DotShape c;
    c.ic = depth;
    c.oc = columns;
    c.iw = c.ow = rows;
    return c;
  }
};

const DotKernels& matmul_kernels_of(const Target& target) {
  return NEO_PICK_TIER(target.isa, dot_kernels)(has_dot_bytes(target));
}

// Bytes of the second operand are held less 128 where they have no sign.
int32_t middle_of(const CodeGrid& grid) {
  return grid.is_signed() ? 0 : 128;
}

class CodesMatmulStep final : public KernelStep {
 public:
  CodesMatmulStep(const CodesMatmul& p, const Candidate& candidate, const Target& target)
      : a_grid_(p.a_grid),
        b_grid_(p.b_grid),
        is_whole_(p.is_whole),
        threads_(target.threads),
        kernels_(matmul_kernels_of(target)) {
    a_ = argument_of(candidate, p.a);
    b_ = argument_of(candidate, p.b);
    a_zero_ = argument_of(candidate, p.a_zero);
    b_zero_ = argument_of(candidate, p.b_zero);
    for (const auto& schema : candidate.inputs) y_ += schema.has_value();
    schedule_ = schedule_of(p, target);
    DotResult& r = result_;
    r.is_whole = is_whole_;
    r.is_float = !is_whole_ && !p.y_grid;
    r.lo = p.lo;
    r.hi = p.hi;
    scale_ = static_cast<float>(static_cast<double>(p.a_grid.scale) * p.b_grid.scale);
    if (!p.y_grid) return;
    const CodeGrid& y = *p.y_grid;
    scale_ = scale_ / y.scale;
    r.zero = y.zero;
    r.is_signed = y.is_signed();
    r.lo = static_cast<float>(y.code_of(p.lo) - y.zero);
    r.hi = static_cast<float>(y.code_of(p.hi) - y.zero);
  }

  static DotSchedule schedule_of(const CodesMatmul& p, const Target& target) {
    const bool needs_sums = p.b_zero || p.b_grid.zero != middle_of(p.b_grid);
    return {kDotVectors, has_dot_bytes(target) && needs_sums};
  }

  Prepared prepare(std::span<const Arg> args) const override {
    const Arg& a = args[static_cast<size_t>(a_)];
    const Arg& b = args[static_cast<size_t>(b_)];
    NEO_ASSERT(a.is_dense() && b.is_dense() && args.back().is_dense(), "an operand of a product is not dense");
    Call call;
    call.shape = MatmulShape::of(a.dims, b.dims);
    const DotShape one = call.shape.one();
    call.plan = plan_dot(one, schedule_, kernels_, DotFill::Form::Pixels, !a_grid_.is_signed());
    const int64_t packed = 4 * (call.plan.channels() + call.plan.weight_words());
    call.packs_in_task = call.shape.matrices > 1 && call.plan.tasks == 1;
    call.packed_at = round_up(call.plan.buffer_bytes(), int64_t{64});
    call.split = TaskSplit::of(call.plan.tasks * call.shape.matrices, one.all_flops() * call.shape.matrices,
                               call.packed_at + (call.packs_in_task ? packed : 0), threads_);
    call.constants_at = round_up(call.split.scratch_bytes(), int64_t{64});
    const int64_t kept = call.packs_in_task ? 0 : packed * call.shape.matrices;
    return Prepared::of(call, call.constants_at + 4 * kShared * call.plan.channels() + kept);
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& call = *reinterpret_cast<const Call*>(prepared);
    const DotPlan& plan = call.plan;
    const MatmulShape& s = call.shape;
    const int64_t padded = plan.channels();
    const int32_t a_zero = zero_of(a_grid_, args, a_zero_), b_zero = zero_of(b_grid_, args, b_zero_);
    auto* shared = reinterpret_cast<int32_t*>(scratch + call.constants_at);
    auto* scale = reinterpret_cast<float*>(shared);
    std::fill_n(scale, padded, scale_);
    std::fill_n(shared + padded, padded, 0);
    std::fill_n(shared + 2 * padded, padded, -1);
    std::fill_n(shared + 3 * padded, padded, middle_of(b_grid_) - b_zero);
    // The init of each column and the packed matrix, of one matrix after the other.
    int32_t* packed = shared + kShared * padded;
    const int64_t packed_words = padded + plan.weight_words();
    const auto* b = reinterpret_cast<const uint8_t*>(args[b_]);
    const auto pack = [&](int64_t matrix, int64_t panel, int32_t* to) {
      pack_panel(call, b + matrix * s.b_step, panel, a_zero, b_zero, to);
    };
    if (!call.packs_in_task) {
      constexpr int64_t kOfElement = 4;  // operations
      const TaskSplit split = TaskSplit::of(s.matrices * plan.panels, kOfElement * s.matrices * s.depth * s.columns);
      run_tasks(team, split, [&](int64_t begin, int64_t end, int) {
        for (int64_t task = begin; task < end; ++task)
          pack(task / plan.panels, task % plan.panels, packed + task / plan.panels * packed_words);
      });
    }

    DotOperands all;
    all.src_channel = s.depth;
    all.dst_pixel = s.columns;
    all.dst_vector = kernels_.lanes;
    all.zero = a_zero;
    all.is_signed = a_grid_.is_signed();
    all.result = result_;
    all.result.scale = scale;
    all.result.add = reinterpret_cast<const float*>(shared + padded);
    all.result.mask = shared + 2 * padded;
    all.result.shift = shared + 3 * padded;
    const int64_t item = result_.is_float || is_whole_ ? 4 : 1;
    run_tasks_with<uint8_t>(team, call.split, scratch, [&](int64_t begin, int64_t end, uint8_t* buffer) {
      while (begin < end) {
        const int64_t matrix = begin / plan.tasks, first = begin % plan.tasks;
        const int64_t last = std::min(plan.tasks, first + end - begin);
        DotOperands one = all;
        one.src = reinterpret_cast<const uint8_t*>(args[a_]) + matrix * s.a_step;
        one.dst = args[y_] + matrix * s.rows * s.columns * item;
        int32_t* at = packed + matrix * packed_words;
        if (call.packs_in_task) {
          at = reinterpret_cast<int32_t*>(buffer + call.packed_at);
          for (int64_t panel = 0; panel < plan.panels; ++panel) pack(matrix, panel, at);
        }
        one.result.init = at;
        one.weight = at + padded;
        run_dot(plan, kernels_, one, first, last, buffer);
        begin += last - first;
      }
    });
  }

 private:
  static constexpr int64_t kShared = 4;  // arrays of one number for each column that all matrices share
  struct Call {
    MatmulShape shape;
    DotPlan plan;  // of one matrix
    TaskSplit split;
    bool packs_in_task = false;  // else all matrices before the first task
    int64_t packed_at = 0;       // in a task's workspace: its packed matrix
    int64_t constants_at = 0;    // in the scratch memory: those arrays, the packed matrices
  };

  static int32_t zero_of(const CodeGrid& grid, std::byte* const* args, int index) {
    return index < 0 ? grid.zero : static_cast<int32_t>(load_int64(grid.dtype, args[index]));
  }

  // A panel of a matrix, at its place behind the inits of all columns.
  void pack_panel(const Call& call, const uint8_t* b, int64_t number, int32_t a_zero, int32_t b_zero,
                  int32_t* packed) const {
    const DotPlan& plan = call.plan;
    const DotPanel panel = dot_panel(plan, number);
    const int64_t column = panel.begin * plan.lanes;
    DotPack p;
    p.src = b + column;
    p.step = call.shape.columns;
    p.rows = call.shape.depth;
    p.columns = call.shape.columns - column;
    p.vectors = panel.vectors();
    p.is_signed = b_grid_.is_signed();
    p.zero = b_zero;
    // The part that the zero point of a adds to a sum of bytes, which count from 0 on, is taken off.
    p.from = kernels_.codes == kByteCodes ? a_zero + (a_grid_.is_signed() ? 128 : 0) : 0;
    p.dst = packed + plan.channels() + column * plan.words;
    p.init = packed + column;
    kernels_.pack(p);
  }

  CodeGrid a_grid_, b_grid_;
  bool is_whole_;
  int threads_;
  const DotKernels& kernels_;
  DotSchedule schedule_;
  DotResult result_;  // without its arrays
  float scale_ = 1;
  int a_ = -1, b_ = -1, a_zero_ = -1, b_zero_ = -1, y_ = 0;
};

// Products of two values of codes, as attention has them: the second one is packed in every call.
class CodesMatmulRoutine final : public RoutineOf<CodesMatmulRoutine> {
 public:
  std::string_view name() const override { return "cpu:int8/matmul"; }
  std::vector<std::string_view> roots() const override { return {"MatMul", "MatMulInteger", "QuantizeLinear"}; }

  std::vector<Workload> matches(const Node& root, const Graph::Users& users, const Graph& graph) const override {
    if (root.op == "MatMulInteger") return {Workload::of(root)};
    const Node* product = root.op == "MatMul" ? &root : root.inputs[0]->producer;
    if (!product || product->op != "MatMul") return {};
    if (product != &root && !read_only_by_one(root.inputs[0], users, graph)) return {};
    std::vector<const Node*> nodes;
    for (const Value* v : product->inputs) {
      if (!v->producer || v->producer->op != "DequantizeLinear") return {};
      nodes.push_back(v->producer);
    }
    if (nodes.size() != 2 || nodes[0] == nodes[1]) return {};
    nodes.push_back(product);
    if (product != &root) nodes.push_back(&root);
    return {Workload::of(std::move(nodes))};
  }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    std::string why;
    return CodesMatmul::read(workload, &why) ? std::nullopt : std::optional(why);
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const CodesMatmul p = *CodesMatmul::read(workload, nullptr);
    Candidate c;
    c.inputs.resize(workload.inputs.size());
    for (const Value* v : {p.a, p.b, p.a_zero, p.b_zero}) {
      if (v) c.inputs[static_cast<size_t>(workload.input_index(v))] = plain_schema(v->type);
    }
    c.outputs.push_back(plain_schema(p.y->type));
    c.cost.time_us = estimate_us(p, target);
    return {std::move(c)};
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore&) {
    return std::make_unique<CodesMatmulStep>(*CodesMatmul::read(*candidate.workload, nullptr), candidate, target);
  }

 private:
  static double estimate_us(const CodesMatmul& p, const Target& target) {
    // Cycles of a product of vectors, of a vector of results, of one of words that are packed.
    constexpr double kBytesCycles = 1.3, kPairsCycles = 2, kResultCycles = 10, kBytesPackCycles = 4,
                     kPairsPackCycles = 10;
    const Dims a = p.a->shape().hint_dims(), b = p.b->shape().hint_dims();
    const MatmulShape s = MatmulShape::of(a, b);
    const DotKernels& kernels = matmul_kernels_of(target);
    const DotPlan plan =
        plan_dot(s.one(), CodesMatmulStep::schedule_of(p, target), kernels, DotFill::Form::Pixels, true);
    const auto vectors = static_cast<double>(plan.group_vectors * s.matrices), words = static_cast<double>(plan.words);
    const double dots = has_dot_bytes(target) ? kBytesCycles : kPairsCycles;
    const double pack = has_dot_bytes(target) ? kBytesPackCycles : kPairsPackCycles;
    const double cycles =
        static_cast<double>(s.rows) * vectors * (words * dots + 2 * kResultCycles) / 2 + vectors * words * pack;
    UnfittedLoad load;
    load.arithmetic_us = cycles_us(cycles * core_cycles(target), target);
    load.bytes = static_cast<double>(element_count(a) + element_count(b) +
                                     element_count(p.y->shape().hint_dims()) * item_bytes(p.y->dtype()));
    const TaskSplit split = TaskSplit::of(plan.tasks * s.matrices, s.one().flops() * s.matrices);
    load.tasks = split.serial ? 1 : static_cast<double>(split.tasks);
    return unfitted_us(load, target);
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(int8_matmul, CodesMatmulRoutine)

}  // namespace neo
