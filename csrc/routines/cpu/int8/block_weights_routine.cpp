#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "base/int_math.h"
#include "routines/cost/step_cost.h"
#include "routines/cpu/int8/block_weights.h"
#include "routines/cpu/int8/int8_problem.h"
#include "routines/cpu/tasks.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"
#include "routines/patterns/epilogue.h"
#include "routines/patterns/float_tensor.h"
#include "routines/space.h"

namespace neo {
namespace {

const BlockKernels& block_kernels_of(int64_t bits, const Target& target) {
  return NEO_PICK_TIER(target.isa, block_kernels)(static_cast<int>(bits));
}

constexpr int64_t kCodedRowBits = 8;

// A product of float32 rows by constant codes, scaled in blocks along the sum; one block where there is none.
struct BlockProduct {
  const Value* x = nullptr;
  const Value* codes = nullptr;
  const Value* scale = nullptr;
  const Value* zero = nullptr;  // or null
  const Value* bias = nullptr;  // or null
  const Value* y = nullptr;
  int64_t depth = 0, columns = 0, block = 0;
  bool by_columns = false;  // the weights are [columns, depth]
  bool may_round = false;   // the model lets rows be rounded to 8 bits
  float lo = -std::numeric_limits<float>::infinity(), hi = std::numeric_limits<float>::infinity();

  static std::optional<BlockProduct> read(const Workload& workload, std::string* why);

  int64_t blocks() const { return ceil_div(depth, block); }
  // The code of an element as an unsigned number, and what a block's scale or zero point is.
  int64_t first_code() const {
    const DType dtype = codes->dtype();
    return dtype == DType::Int8 ? -128 : (dtype == DType::Int4 ? -8 : 0);
  }
  // By the byte that holds the code.
  std::array<uint8_t, 256> unsigned_codes() const {
    std::array<uint8_t, 256> numbers{};
    for (size_t i = 0; i < numbers.size(); ++i) {
      const auto byte = static_cast<std::byte>(i);
      numbers[i] = static_cast<uint8_t>(load_int64(codes->dtype(), &byte) - first_code());
    }
    return numbers;
  }
  std::vector<double> all_zeros() const {
    std::vector<double> numbers = zero ? load_doubles(*zero->constant) : std::vector<double>{0};
    for (double& number : numbers) number -= static_cast<double>(first_code());
    return numbers;
  }
  // The element of a scale or zero point with so many numbers.
  size_t at(size_t numbers, int64_t column, int64_t of_block) const {
    if (numbers == 1) return 0;
    if (numbers == static_cast<size_t>(columns) && blocks() == 1) return static_cast<size_t>(column);
    return static_cast<size_t>(by_columns ? column * blocks() + of_block : of_block * columns + column);
  }
  bool is_absent() const {
    return codes->constant->is_absent() || scale->constant->is_absent() || (zero && zero->constant->is_absent());
  }
  int64_t rows_at_hint() const { return element_count(y->shape().hint_dims()) / std::max<int64_t>(1, columns); }
};

std::optional<BlockProduct> BlockProduct::read(const Workload& workload, std::string* why) {
  const auto reject = [&](const char* reason) {
    if (why) *why = reason;
    return std::nullopt;
  };
  if (workload.nodes.size() != 2) return reject("the weights are not codes");
  const Node& source = *workload.nodes.front();
  const Node& node = workload.root();
  BlockProduct p;
  p.x = node.inputs[0];
  p.y = workload.outputs.front();
  p.codes = source.inputs[0];
  p.scale = source.inputs[1];
  p.zero = source.input(2);
  if (!is_float_tensor(p.x) || p.x->is_constant() || !is_float_tensor(p.y))
    return reject("not between float32 tensors");
  for (const Value* v : {p.codes, p.scale, p.zero}) {
    if (v && !v->is_constant()) return reject("the weights are not constants");
  }
  const DType dtype = p.codes->dtype();
  if (dtype != DType::Int8 && dtype != DType::UInt8 && dtype != DType::Int4 && dtype != DType::UInt4)
    return reject("the weights are not codes of 4 or 8 bits");
  if (p.scale->dtype() != DType::Float32) return reject("the scale is not float32");
  if (p.codes->shape().rank() != 2 || p.codes->shape().element_count().is(0))
    return reject("the weights are no matrix");
  if (node.op == "Gemm" && (node.int_attr("transA", 0) != 0 || node.float_attr("alpha", 1) != 1 ||
                            (node.input(2) && node.float_attr("beta", 1) != 1)))
    return reject("the product is transposed or scaled");
  p.by_columns = node.op == "Gemm" && node.int_attr("transB", 0) != 0;
  const Dims dims = p.codes->shape().to_dims();
  const int sum_axis = p.by_columns ? 1 : 0;
  p.depth = dims[static_cast<size_t>(sum_axis)];
  p.columns = dims[static_cast<size_t>(1 - sum_axis)];
  if (!p.x->shape().has_rank() || p.x->shape().rank() < 1) return reject("the rank of the input is not known");
  p.block = source.int_attr("block_size", 0);
  p.may_round = source.int_attr("row_bits", 0) == kCodedRowBits;
  int64_t axis = source.int_attr("axis", 1);
  if (axis < 0) axis += 2;
  const bool in_blocks = p.block > 0;
  if (!in_blocks) p.block = p.depth;
  for (const Value* v : {p.scale, p.zero}) {
    if (!v) continue;
    const int64_t count = v->constant->size();
    if (in_blocks ? axis != sum_axis || count != p.blocks() * p.columns
                  : count != 1 && (axis == sum_axis || count != p.columns))
      return reject("the scales are not those of blocks along the sum");
  }
  p.bias = node.input(2);
  if (p.bias && (!p.bias->is_constant() || !is_float_tensor(p.bias) || p.bias->constant->size() != p.columns ||
                 !p.bias->shape()[p.bias->shape().rank() - 1].is(p.columns)))
    return reject("the bias is not a float32 constant of one element per column");
  p.lo = static_cast<float>(node.float_attr("clamp_min", p.lo));
  p.hi = static_cast<float>(node.float_attr("clamp_max", p.hi));
  return p;
}

// The packed parts: middle, bias, scales, zero points (where columns have them), words.
struct BlockPlan {
  int64_t lanes = 0, vectors = 0, blocks = 0, block_words = 0;
  int64_t padded_block = 0;  // elements of the sum
  int64_t bits = 0;          // of a code
  bool zeros = false, bias = false, codes_rows = false;

  static BlockPlan of(const BlockProduct& p, const Schedule& schedule, int64_t lanes) {
    BlockPlan plan;
    const int64_t bits = plan.bits = value_of(schedule, "bits");
    plan.zeros = value_of(schedule, "zeros") != 0;
    plan.codes_rows = value_of(schedule, "row_bits") != 0;
    plan.lanes = lanes;
    plan.vectors = ceil_div(p.columns, lanes);
    plan.blocks = p.blocks();
    const int64_t codes = 32 / bits;
    plan.padded_block = round_up(p.block, codes);
    plan.block_words = plan.padded_block / codes;
    plan.bias = p.bias != nullptr;
    return plan;
  }
  int64_t padded_columns() const { return vectors * lanes; }
  int64_t scales() const { return padded_columns() * blocks; }
  int64_t bias_at() const { return 1; }
  int64_t scales_at() const { return bias_at() + (bias ? padded_columns() : 0); }
  int64_t zeros_at() const { return scales_at() + scales(); }
  int64_t words_at() const { return zeros_at() + (zeros ? ceil_div(scales(), int64_t{4}) : 0); }
  int64_t size() const { return words_at() + scales() * block_words; }
  int64_t padded_depth() const { return blocks * padded_block; }
  // Floats of a row as tiles read it, and those of them that are the row itself; the rest belongs to its blocks.
  int64_t row_floats() const { return padded_depth() / (codes_rows ? 4 : 1); }
  int64_t row_workspace() const { return row_floats() + (codes_rows ? 2 * blocks : (zeros ? blocks : 0)); }
};

struct BlockCall {
  int64_t rows = 0, row_chunk = 0, vector_chunk = 0, vector_chunks = 0;
  TaskSplit split;
};

class BlockWeightsStep final : public KernelStep {
 public:
  BlockWeightsStep(const BlockProduct& p, const Candidate& candidate, const Target& target, PackedStore& packed)
      : depth_(p.depth),
        columns_(p.columns),
        block_(p.block),
        lo_(p.lo),
        hi_(p.hi),
        threads_(target.threads),
        plan_(BlockPlan::of(p, candidate.schedule, target.lanes())),
        kernels_(block_kernels_of(plan_.bits, target)) {
    packed_ = packed.floats(plan_.size(), {p.codes, p.scale, p.zero, p.bias}, [&](float* to) { pack(p, plan_, to); });
  }

  static BlockCall split_rows(const BlockPlan& plan, int64_t rows, int64_t columns, int threads) {
    constexpr int64_t kRows = 32, kMinVectors = kBlockVectors;
    BlockCall call;
    call.rows = rows;
    call.row_chunk = std::clamp<int64_t>(rows, 1, kRows);
    const int64_t operations = 2 * (rows + kBlockRows) * columns * plan.padded_depth();
    const int64_t parts = std::clamp<int64_t>(worthwhile_tasks(operations / 2), 1, ceil_div(plan.vectors, kMinVectors));
    call.vector_chunk = round_up(ceil_div(plan.vectors, parts), kMinVectors);
    call.vector_chunks = ceil_div(plan.vectors, call.vector_chunk);
    const int64_t workspace = 4 * call.row_chunk * plan.row_workspace();
    const int64_t tasks = ceil_div(rows, call.row_chunk) * call.vector_chunks;
    call.split = TaskSplit::of(tasks, operations, workspace, threads);
    return call;
  }

  Prepared prepare(std::span<const Arg> args) const override {
    NEO_ASSERT(args[0].is_dense() && args[1].is_dense(), "the rows of a product are not dense");
    const BlockCall call = split_rows(plan_, element_count(args[1].dims) / columns_, columns_, threads_);
    return Prepared::of(call, call.split.scratch_bytes());
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& call = *reinterpret_cast<const BlockCall*>(prepared);
    const auto* x = reinterpret_cast<const float*>(args[0]);
    auto* y = reinterpret_cast<float*>(args[1]);
    run_tasks_with<float>(team, call.split, scratch, [&](int64_t begin, int64_t end, float* workspace) {
      int64_t prepared_chunk = -1;
      float* of_blocks = workspace + call.row_chunk * plan_.row_floats();
      for (int64_t task = begin; task < end; ++task) {
        const int64_t chunk = task / call.vector_chunks, vector = task % call.vector_chunks * call.vector_chunk;
        const int64_t row = chunk * call.row_chunk, rows = std::min(call.row_chunk, call.rows - row);
        BlockTile tile;
        tile.x = workspace;
        tile.x_row = plan_.padded_depth();
        if (plan_.codes_rows) {
          auto* zero_sums = reinterpret_cast<int32_t*>(of_blocks + call.row_chunk * plan_.blocks);
          tile.rows = {reinterpret_cast<int8_t*>(workspace), of_blocks, zero_sums};
        } else if (plan_.zeros) {
          tile.sums = of_blocks;
        }
        for (int64_t r = 0; chunk != prepared_chunk && r < rows; ++r)
          prepare_row(x + (row + r) * depth_, r, tile, workspace, of_blocks);
        prepared_chunk = chunk;
        const int64_t last = std::min(vector + call.vector_chunk, plan_.vectors);
        run_rows(tile, rows, vector, last, y + row * columns_);
      }
    });
  }

 private:
  void prepare_row(const float* x, int64_t r, const BlockTile& tile, float* rows, float* sums) const {
    if (plan_.codes_rows) {
      const auto zero = plan_.zeros ? 1 : static_cast<int32_t>(*packed_.as<float>());
      kernels_.encode(x, depth_, block_, plan_.padded_block, zero, coded_rows(tile.rows, r));
    } else {
      kernels_.prepare(x, depth_, block_, plan_.padded_block, rows + r * plan_.padded_depth(),
                       tile.sums ? sums + r * plan_.blocks : nullptr);
    }
  }

  CodedRows coded_rows(const CodedRows& all, int64_t r) const {
    return {all.codes + r * plan_.padded_depth(), all.scales + r * plan_.blocks, all.zero_sums + r * plan_.blocks};
  }

  static void pack(const BlockProduct& p, const BlockPlan& plan, float* to) {
    const std::vector<double> zeros = p.all_zeros(), scales = load_doubles(*p.scale->constant);
    std::fill_n(to, plan.size(), 0.0f);
    to[0] = static_cast<float>(zeros.front());
    if (p.bias) std::memcpy(to + plan.bias_at(), p.bias->constant->as<float>(), static_cast<size_t>(p.columns) * 4);
    auto* zero_bytes = reinterpret_cast<uint8_t*>(to + plan.zeros_at());
    auto* words = reinterpret_cast<uint32_t*>(to + plan.words_at());
    const int64_t bits = plan.bits, of_word = 32 / bits;
    const bool in_halves = plan.codes_rows && bits == 4;
    const std::array<uint8_t, 256> numbers = p.unsigned_codes();
    const auto* codes = p.codes->constant->as<uint8_t>();
    const int64_t row = p.by_columns ? 1 : p.columns, column = p.by_columns ? p.depth : 1;  // steps in `codes`
    for (int64_t vector = 0; vector < plan.vectors; ++vector) {
      const int64_t first = vector * plan.lanes, lanes = std::min(plan.lanes, p.columns - first);
      for (int64_t b = 0; b < plan.blocks; ++b) {
        const int64_t place = (vector * plan.blocks + b) * plan.lanes;
        for (int64_t lane = 0; lane < lanes; ++lane) {
          to[plan.scales_at() + place + lane] = static_cast<float>(scales[p.at(scales.size(), first + lane, b)]);
          if (plan.zeros) zero_bytes[place + lane] = static_cast<uint8_t>(zeros[p.at(zeros.size(), first + lane, b)]);
        }
        const int64_t count = std::min(p.block, p.depth - b * p.block);
        for (int64_t i = 0; i < count; ++i) {
          const uint8_t* from = codes + (b * p.block + i) * row + first * column;
          uint32_t* word = words + (place * plan.block_words) + i / of_word * plan.lanes;
          const int64_t at = i % of_word, shift = (in_halves ? at % 4 * 2 + at / 4 : at) * bits;
          for (int64_t lane = 0; lane < lanes; ++lane)
            word[lane] |= static_cast<uint32_t>(numbers[from[lane * column]]) << shift;
        }
      }
    }
  }

  // `all` has the rows.
  void run_rows(const BlockTile& all, int64_t rows, int64_t begin, int64_t end, float* y) const {
    const float* packed = packed_.as<float>();
    BlockTile tile = all;
    tile.middle = packed[0];
    tile.blocks = plan_.blocks;
    tile.block_words = plan_.block_words;
    tile.lo = lo_;
    tile.hi = hi_;
    tile.y_row = columns_;
    const auto* zeros = reinterpret_cast<const uint8_t*>(packed + plan_.zeros_at());
    const auto* words = reinterpret_cast<const uint32_t*>(packed + plan_.words_at());
    // Vectors of columns stay in the cache for all rows.
    for (int64_t group = begin; group < end; group += kBlockVectors) {
      for (int64_t r = 0; r < rows;) {
        int count = kernels_.max_rows;
        while (count > rows - r) count /= 2;
        if (plan_.codes_rows && count == 2) count = 1;
        const int64_t last = std::min(group + kBlockVectors, end);
        const int wide = plan_.codes_rows && count > 1 ? 1 : kernels_.vectors(count);
        for (int64_t v = group; v < last;) {
          const int vectors = v + wide <= last ? wide : 1;
          const int64_t place = v * plan_.blocks * plan_.lanes;
          tile.x = all.x + r * tile.x_row;
          tile.sums = all.sums ? all.sums + r * plan_.blocks : nullptr;
          if (plan_.codes_rows) tile.rows = coded_rows(all.rows, r);
          tile.scales = packed + plan_.scales_at() + place;
          tile.zeros = plan_.zeros ? zeros + place : nullptr;
          tile.words = words + place * plan_.block_words;
          tile.bias = plan_.bias ? packed + plan_.bias_at() + v * plan_.lanes : nullptr;
          tile.y = y + r * columns_ + v * plan_.lanes;
          tile.columns = columns_ - v * plan_.lanes;
          plan_.codes_rows ? kernels_.coded_tile(tile, count, vectors) : kernels_.tile(tile, count, vectors);
          v += vectors;
        }
        r += count;
      }
    }
  }

  int64_t depth_, columns_, block_;
  float lo_, hi_;
  int threads_;
  BlockPlan plan_;
  const BlockKernels& kernels_;
  Tensor packed_;
};

// Products by weights of 4 or 8 bits (MatMulNBits, DequantizeLinear of constants), which are read from memory as these.
// Where the model or the user lets rows be rounded, and the processor sums four products at once, they are codes, too.
class BlockWeightsRoutine final : public RoutineOf<BlockWeightsRoutine> {
 public:
  std::string_view name() const override { return "cpu:int8/block_weights"; }
  std::vector<std::string_view> roots() const override { return {"MatMul", "Gemm"}; }

  std::vector<Workload> matches(const Node& root, const Graph::Users&, const Graph&) const override {
    if (root.inputs.size() < 2 || !root.inputs[1] || !root.inputs[1]->producer) return {};
    const Node* source = root.inputs[1]->producer;
    if (source->op != "DequantizeLinear" || !source->inputs[0]->is_constant()) return {};
    return {Workload::of({source, &root})};
  }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    std::string why;
    if (workload.is_exact()) return kRejectExact;
    return BlockProduct::read(workload, &why) ? std::nullopt : std::optional(why);
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const BlockProduct p = *BlockProduct::read(workload, nullptr);
    std::vector<Candidate> all;
    for (const Schedule& schedule : schedules(p, target)) all.push_back(candidate_of(workload, p, schedule, target));
    return all;
  }

  Space space(const Workload& workload, const Target& target) const override {
    Space::Parameter bits{"bits", {}}, zeros{"zeros", {}}, row_bits{"row_bits", {}};
    for (const Schedule& schedule : schedules(*BlockProduct::read(workload, nullptr), target)) {
      for (Space::Parameter* parameter : {&bits, &zeros, &row_bits}) {
        std::vector<int64_t>& values = parameter->values;
        const int64_t value = value_of(schedule, parameter->name);
        if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
      }
    }
    return Space({bits, zeros, row_bits});
  }

  Candidate candidate(const Workload& workload, const Target& target, const OpRegistry&,
                      const Schedule& schedule) const override {
    return candidate_of(workload, *BlockProduct::read(workload, nullptr), schedule, target);
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore& packed) {
    return std::make_unique<BlockWeightsStep>(*BlockProduct::read(*candidate.workload, nullptr), candidate, target,
                                              packed);
  }

 private:
  // Bits of a packed code, and whether there are several zero points: facts of the weights, any for those of a saved
  // module, which are not at hand.
  static std::vector<Schedule> schedules(const BlockProduct& p, const Target& target) {
    // Sums of longer blocks could leave int32.
    constexpr int64_t kMaxCodedBlock = 1 << 15;
    std::vector<Schedule> all;
    const auto add = [&](int64_t bits, bool zeros) {
      Schedule s{{"bits", bits}};
      if (zeros) s["zeros"] = 1;
      all.push_back(s);
      if (!has_dot_bytes(target) || p.block > kMaxCodedBlock) return;
      s["row_bits"] = kCodedRowBits;
      all.push_back(s);
    };
    if (p.is_absent()) {
      for (const int64_t bits : {4, 8}) {
        for (const bool zeros : {false, true}) add(bits, zeros);
      }
      return all;
    }
    const std::vector<double> zeros = p.all_zeros();
    const bool is_one = std::all_of(zeros.begin(), zeros.end(), [&](double z) { return z == zeros.front(); });
    const std::array<uint8_t, 256> numbers = p.unsigned_codes();
    const auto* codes = p.codes->constant->as<uint8_t>();
    const bool is_small =
        std::all_of(codes, codes + p.codes->constant->size(), [&](uint8_t c) { return numbers[c] < 16; });
    add(is_small ? 4 : 8, !is_one);
    return all;
  }

  static Candidate candidate_of(const Workload& workload, const BlockProduct& p, const Schedule& schedule,
                                const Target& target) {
    constexpr double kDecodeCycles = 2.4, kTileCycles = 60, kCodedDecodeCycles = 0.4, kCodedBlockCycles = 6;
    // The root mean square that rounding to codes adds, in units of the direct sum's: it falls with the products'
    // number.
    constexpr double kCodedError = 700000;
    Candidate c;
    c.inputs.resize(workload.inputs.size());
    c.inputs[static_cast<size_t>(workload.input_index(p.x))] = plain_schema(p.x->type);
    c.outputs.push_back(plain_schema(p.y->type));
    c.schedule = schedule;
    const BlockPlan plan = BlockPlan::of(p, schedule, target.lanes());
    const BlockKernels& kernels = block_kernels_of(plan.bits, target);
    const BlockCall call = BlockWeightsStep::split_rows(plan, p.rows_at_hint(), p.columns, target.threads);
    const auto rows = static_cast<double>(call.rows), vectors = static_cast<double>(plan.vectors);
    const double tiles = std::ceil(rows / kernels.max_rows);
    const double words = vectors * static_cast<double>(plan.padded_depth());
    double products = words * (rows + kDecodeCycles * tiles);
    if (plan.codes_rows) {
      products = words * (rows / kByteCodes + kCodedDecodeCycles * tiles) +
                 rows * vectors * static_cast<double>(plan.blocks) * kCodedBlockCycles;
      c.cost.error = kCodedError / std::sqrt(static_cast<double>(p.depth));
      c.cost.rounds = !p.may_round;
    }
    UnfittedLoad load;
    load.arithmetic_us = cycles_us(core_cycles(target) * (products + tiles * vectors * kTileCycles), target);
    load.bytes = 4 * rows * static_cast<double>(p.depth + p.columns);
    load.constant_bytes = 4 * static_cast<double>(plan.size());
    load.tasks = call.split.serial ? 1 : static_cast<double>(call.split.tasks);
    c.cost.time_us = unfitted_us(load, target);
    c.cost.packed_bytes = 4 * plan.size();
    return c;
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(int8_block_weights, BlockWeightsRoutine)

}  // namespace neo
