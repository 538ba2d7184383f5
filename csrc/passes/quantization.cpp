#include "passes/quantization.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <unordered_map>

#include "passes/pattern.h"

namespace neo {
namespace {

// One scale for all, or one for each position of an axis; not one for each block.
bool has_no_blocks(const Node& node) {
  return node.int_attr("block_size", 0) == 0;
}

// The code that a constant Pad adds to codes of a grid; none where its number is not on the grid.
std::optional<double> padding_code(const Node& pad, const Grid& grid) {
  double number = 0;
  if (const Value* value = pad.input(2)) {
    if (!value->constant || value->constant->size() > 1) return std::nullopt;
    if (value->constant->size() == 1) number = load_double(value->dtype(), value->constant->data());
  }
  const double code = number == 0 ? grid.zero : std::nearbyint(number / grid.scale) + grid.zero;
  const bool is_code =
      code >= static_cast<double>(integer_min(grid.dtype)) && code <= static_cast<double>(integer_max(grid.dtype));
  return is_code && static_cast<float>((code - grid.zero) * grid.scale) == static_cast<float>(number)
             ? std::optional(code)
             : std::nullopt;
}

// Finds the grid that the elements of a float value lie on.
class GridFinder {
 public:
  std::optional<Grid> of(const Value* value) {
    const auto it = known_.find(value);
    if (it != known_.end()) return it->second;
    const auto grid = find(value);
    known_.emplace(value, grid);
    return grid;
  }

 private:
  std::optional<Grid> find(const Value* value) {
    const Node* node = value->producer;
    if (!node || (node->op != "Split" && node->outputs.front() != value)) return std::nullopt;
    if (node->op == "DequantizeLinear")
      return has_no_blocks(*node) ? read_grid(node->inputs[0]->dtype(), node->input(1), node->input(2)) : std::nullopt;
    if (node->op == "Concat") {
      auto grid = of(node->inputs.front());
      for (const Value* part : node->inputs) {
        if (!(of(part) == grid)) return std::nullopt;
      }
      return grid;
    }
    // An operator that computes, as MaxPool, keeps its own rounding: routines take it with the codes around it.
    static constexpr std::string_view kMoves[] = {"Reshape",   "Flatten", "Squeeze", "Unsqueeze",    "Transpose",
                                                  "Slice",     "Expand",  "Gather",  "DepthToSpace", "SpaceToDepth",
                                                  "ReduceMax", "Tile",    "Split"};
    if (node->op == "Pad") {
      const auto grid = of(node->inputs.front());
      const bool adds = node->string_attr("mode", "constant") == "constant";
      return grid && (!adds || padding_code(*node, *grid)) ? grid : std::nullopt;
    }
    if (std::find(std::begin(kMoves), std::end(kMoves), node->op) != std::end(kMoves)) return of(node->inputs.front());
    return std::nullopt;
  }

  std::unordered_map<const Value*, std::optional<Grid>> known_;
};

}  // namespace

bool is_byte(DType dtype) {
  return dtype == DType::Int8 || dtype == DType::UInt8;
}

std::optional<Grid> read_grid(DType dtype, const Value* scale, const Value* zero) {
  if (!is_byte(dtype) || !scale || !scale->constant || scale->dtype() != DType::Float32 || scale->constant->size() != 1)
    return std::nullopt;
  if (zero && (!zero->constant || zero->constant->size() != 1)) return std::nullopt;
  Grid grid{dtype, load_double(DType::Float32, scale->constant->data()), 0};
  if (zero) grid.zero = load_double(zero->dtype(), zero->constant->data());
  // Products with codes are normal numbers.
  return grid.scale > 1e-30 && grid.scale < 1e30 ? std::optional(grid) : std::nullopt;
}

namespace {

// The number of each byte that holds one code.
std::optional<std::array<int, 256>> numbers_by_code(DType dtype) {
  std::array<int, 256> numbers;
  for (int byte = 0; byte < 256; ++byte) {
    int& number = numbers[static_cast<size_t>(byte)];
    if (dtype == DType::UInt8) {
      number = byte;
    } else if (dtype == DType::Int8) {
      number = static_cast<int8_t>(byte);
    } else if (dtype == DType::UInt4) {
      number = byte & 0xF;
    } else if (dtype == DType::Int4) {
      number = static_cast<int8_t>(byte << 4) >> 4;
    } else {
      return std::nullopt;
    }
  }
  return numbers;
}

}  // namespace

std::optional<Tensor> dequantized_blocks(const Tensor& codes, const Tensor& scale, const Tensor* zero, int axis,
                                         int64_t block) {
  const auto numbers = numbers_by_code(codes.dtype());
  if (axis < 0) axis += codes.rank();
  if (!numbers || scale.dtype() != DType::Float32 || block < 1 || axis < 0 || axis >= codes.rank()) return std::nullopt;
  const Dims& dims = codes.dims();
  Dims blocks = dims;
  blocks[static_cast<size_t>(axis)] = (dims[static_cast<size_t>(axis)] + block - 1) / block;
  if (scale.dims() != blocks || (zero && (zero->dims() != blocks || zero->dtype() != codes.dtype())))
    return std::nullopt;
  int64_t inner = 1;
  for (size_t i = static_cast<size_t>(axis) + 1; i < dims.size(); ++i) inner *= dims[i];
  const Tensor zeros = zero ? *zero : Tensor();
  return Tensor::computed(
      DType::Float32, dims,
      [codes, scale, zeros, numbers = *numbers, axis, block, inner](int64_t begin, int64_t size, void* elements) {
        const int64_t along = codes.dims()[static_cast<size_t>(axis)], end = begin + size;
        const auto* from = codes.as<uint8_t>() + begin;
        const auto* scales = scale.as<float>();
        const uint8_t* const zero_codes = zeros.defined() ? zeros.as<uint8_t>() : nullptr;
        auto* to = static_cast<float*>(elements);
        const int64_t count = scale.dims()[static_cast<size_t>(axis)];
        if (inner == 1) {
          for (int64_t at = begin; at < end;) {
            const int64_t of_run = at % along, last = std::min({end, at + block - of_run % block, at + along - of_run});
            const int64_t grid = at / along * count + of_run / block;
            const int zero_code = zero_codes ? numbers[zero_codes[grid]] : 0;
            for (; at < last; ++at) *to++ = static_cast<float>(numbers[*from++] - zero_code) * scales[grid];
          }
          return;
        }
        for (int64_t at = begin; at < end;) {
          const int64_t run = at / inner, first = at % inner, last = std::min(inner, first + end - at);
          const int64_t grid = (run / along * count + run % along / block) * inner;
          for (int64_t i = first; i < last; ++i) {
            const int code = numbers[*from++] - (zero_codes ? numbers[zero_codes[grid + i]] : 0);
            *to++ = static_cast<float>(code) * scales[grid + i];
          }
          at += last - first;
        }
      });
}

std::optional<Tensor> dequantized(const Tensor& codes, const Tensor& scale, const Tensor* zero, int axis) {
  if (scale.dtype() != DType::Float32 || !is_byte(codes.dtype())) return std::nullopt;
  const Dims& dims = codes.dims();
  if (axis < 0) axis += codes.rank();
  int64_t inner = 1;
  int64_t along = 1;
  if (axis >= 0 && axis < codes.rank()) {
    along = dims[static_cast<size_t>(axis)];
    for (size_t i = static_cast<size_t>(axis) + 1; i < dims.size(); ++i) inner *= dims[i];
  }
  const auto fits = [&](const Tensor& t) { return t.size() == 1 || (t.rank() == 1 && t.size() == along); };
  if (!fits(scale) || (zero && !fits(*zero))) return std::nullopt;
  const std::vector<double> zeros = zero ? load_doubles(*zero) : std::vector<double>{0};
  return Tensor::computed(
      DType::Float32, dims, [codes, scale, zeros, inner, along](int64_t begin, int64_t size, void* elements) {
        if (size == 0) return;  // then a channel may have no elements
        const bool has_sign = codes.dtype() == DType::Int8;
        const auto* from = codes.as<uint8_t>() + begin;
        const auto* scales = scale.as<float>();
        auto* to = static_cast<float*>(elements);
        int64_t c = begin / inner % along, left = inner - begin % inner;  // of the channel
        for (int64_t at = begin, end = begin + size; at < end; c = c + 1 == along ? 0 : c + 1, left = inner) {
          const int64_t count = std::min(left, end - at);
          const float by = scales[scale.size() == 1 ? 0 : c];
          const double zero_point = zeros[zeros.size() == 1 ? 0 : static_cast<size_t>(c)];
          for (int64_t k = 0; k < count; ++k) {
            const int code = has_sign ? static_cast<int8_t>(*from++) : *from++;
            *to++ = static_cast<float>(code - zero_point) * by;
          }
          at += count;
        }
      });
}

namespace {

bool is_one_of(std::span<const std::string_view> ops, const Node& node) {
  return std::find(ops.begin(), ops.end(), node.op) != ops.end();
}

// The DequantizeLinear by one scale that makes a value at run time, else null.
const Node* number_source(const Value* value) {
  const Node* source = made_by(value, "DequantizeLinear");
  const bool is_plain = source && !value->constant && has_no_blocks(*source) && value->dtype() == DType::Float32;
  return is_plain && read_grid(source->inputs[0]->dtype(), source->input(1), source->input(2)) ? source : nullptr;
}

Grid grid_of(const Node& source) {
  return *read_grid(source.inputs[0]->dtype(), source.input(1), source.input(2));
}

Value* numbers(Rewriter& rewriter, const Node& position, const Node& like, Value* codes) {
  std::vector<Value*> inputs{codes};
  inputs.insert(inputs.end(), like.inputs.begin() + 1, like.inputs.end());
  return rewriter.insert(&position, "DequantizeLinear", std::move(inputs));
}

// A constant Pad that a Conv or a pool alone reads is left to fold_pads.
bool is_folded_pad(const Rewriter& rewriter, const Node& node) {
  static constexpr std::string_view kReaders[] = {"Conv", "AveragePool", "MaxPool"};
  const Node* reader = rewriter.only_reader(node.outputs.front());
  return node.string_attr("mode", "constant") == "constant" && reader && is_one_of(kReaders, *reader);
}

// The inputs of a node that moves elements, with codes in place of their numbers; empty where they are none.
std::vector<Value*> codes_of_moved(Rewriter& rewriter, Node& node, const Node*& first) {
  std::vector<Value*> inputs = node.inputs;
  const size_t moved = node.op == "Concat" ? inputs.size() : 1;
  for (size_t i = 0; i < moved; ++i) {
    const Node* source = number_source(inputs[i]);
    if (!source || (i > 0 && grid_of(*source) != grid_of(*first))) return {};
    if (i == 0) first = source;
    inputs[i] = source->inputs[0];
  }
  if (node.op == "Pad" && node.string_attr("mode", "constant") == "constant") {
    const auto code = padding_code(node, grid_of(*first));
    if (!code) return {};
    inputs.resize(std::max<size_t>(3, inputs.size()), nullptr);
    inputs[2] = rewriter.add_scalar(node.outputs.front()->name + ".padding", inputs[0]->dtype(), *code);
  }
  return inputs;
}

// Rows of a table of codes become numbers once they are gathered. Scales of the gathered axis are gathered as well.
bool gather_codes(Rewriter& rewriter, Node& node) {
  const Node* source = made_by(node.inputs[0], "DequantizeLinear");
  if (!source || node.inputs[0]->constant || !source->inputs[0]->shape().has_rank() ||
      !node.inputs[1]->shape().has_rank() || !source->inputs[1]->shape().has_rank())
    return false;
  const Shape& table = source->inputs[0]->shape();
  const auto from_start = [&](int64_t axis) { return axis < 0 ? axis + table.rank() : axis; };
  const int64_t gathered = from_start(node.int_attr("axis", 0));
  int64_t along = from_start(source->int_attr("axis", 1)), block = source->int_attr("block_size", 0);
  std::vector<Value*> inputs = source->inputs;
  const bool is_one = block == 0 && inputs[1]->shape().element_count().is(1);
  if (!is_one) {
    if (block == 0 && along == gathered) {
      // One scale for each row: a block that is as long as the row.
      if (table.rank() != 2 || gathered != 0 || !table[1].is_constant() || table[1].is(0)) return false;
      Value* dims = rewriter.add_ints(inputs[1]->name + ".dims", {-1, 1});
      for (size_t i = 1; i < inputs.size(); ++i) {
        if (inputs[i]) inputs[i] = rewriter.insert(&node, "Reshape", {inputs[i], dims}, {}, inputs[i]->name + ".rows");
      }
      along = 1;
      block = table[1].value();
    }
    if (block > 0 && along == gathered) return false;
  }
  Attrs attrs = source->attrs;
  const Attrs by_axis{{"axis", gathered}};
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i] || (i > 0 && block == 0)) continue;
    inputs[i] = rewriter.insert(&node, "Gather", {inputs[i], node.inputs[1]}, by_axis, inputs[i]->name + ".rows");
  }
  if (!is_one) {
    const int64_t behind = along > gathered ? node.inputs[1]->shape().rank() - 1 : 0;
    attrs.insert_or_assign("axis", along + behind);
    if (block > 0) attrs.insert_or_assign("block_size", block);
  }
  rewriter.replace(node.outputs.front(),
                   rewriter.insert(&node, "DequantizeLinear", std::move(inputs), std::move(attrs)));
  return true;
}

}  // namespace

bool sink_dequantization(Rewriter& rewriter) {
  // A Resize by nearest neighbours moves elements; other modes round their means to whole codes, and a value from
  // outside is none.
  const auto takes_means = [](const Node& node) {
    return node.op == "Resize" &&
           (node.string_attr("mode", "nearest") != "nearest" ||
            node.string_attr("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize");
  };
  static constexpr std::string_view kSunk[] = {"Reshape", "Flatten",   "Squeeze", "Unsqueeze", "Slice", "Concat",
                                               "Expand",  "Transpose", "Tile",    "Split",     "Pad",   "Resize"};
  bool changed = false;
  for (Node* node : rewriter.nodes()) {
    if (rewriter.is_retired(node)) continue;
    if (node->op == "Gather") changed = gather_codes(rewriter, *node) || changed;
    if (!is_one_of(kSunk, *node) || takes_means(*node)) continue;
    if (node->op == "Pad" && is_folded_pad(rewriter, *node)) continue;
    const Node* first = nullptr;
    std::vector<Value*> inputs = codes_of_moved(rewriter, *node, first);
    if (inputs.empty()) continue;
    const std::vector<Value*> moved = rewriter.insert_like(*node, std::move(inputs), node->attrs);
    for (size_t i = 0; i < moved.size(); ++i) {
      if (moved[i]) rewriter.replace(node->outputs[i], numbers(rewriter, *node, *first, moved[i]));
    }
    changed = true;
  }
  return changed;
}

bool round_before_concat(Rewriter& rewriter) {
  bool changed = false;
  for (Node* node : rewriter.nodes()) {
    if (rewriter.is_retired(node) || node->op != "QuantizeLinear") continue;
    Node* concat = made_by(node->inputs[0], "Concat");
    if (!concat || rewriter.only_reader(node->inputs[0]) != node ||
        !read_grid(node->outputs.front()->dtype(), node->input(1), node->input(2)) ||
        !std::all_of(concat->inputs.begin(), concat->inputs.end(), number_source))
      continue;
    std::vector<Value*> parts;
    for (Value* part : concat->inputs) {
      std::vector<Value*> inputs{part, node->inputs[1]};
      if (node->input(2)) inputs.push_back(node->inputs[2]);
      parts.push_back(rewriter.insert(node, "QuantizeLinear", std::move(inputs), node->attrs, part->name + ".codes"));
    }
    rewriter.replace(node->outputs.front(), rewriter.insert(node, "Concat", std::move(parts), concat->attrs));
    changed = true;
  }
  return changed;
}

bool drop_requantization(Rewriter& rewriter) {
  GridFinder grids;
  bool changed = false;
  for (Node* node : rewriter.nodes()) {
    if (rewriter.is_retired(node) || !has_no_blocks(*node)) continue;
    if (node->op == "QuantizeLinear") {
      const Node* source = made_by(node->inputs[0], "DequantizeLinear");
      const auto grid = read_grid(node->outputs.front()->dtype(), node->input(1), node->input(2));
      if (!source || !grid || grids.of(node->inputs[0]) != grid) continue;
      rewriter.replace(node->outputs.front(), source->inputs[0]);
      changed = true;
    } else if (node->op == "DequantizeLinear") {
      const Node* source = made_by(node->inputs[0], "QuantizeLinear");
      if (!source || !has_no_blocks(*source)) continue;
      const auto grid = read_grid(node->inputs[0]->dtype(), node->input(1), node->input(2));
      const auto before = read_grid(source->outputs.front()->dtype(), source->input(1), source->input(2));
      if (!grid || grid != before || grids.of(source->inputs[0]) != grid ||
          source->inputs[0]->dtype() != node->outputs.front()->dtype())
        continue;
      rewriter.replace(node->outputs.front(), source->inputs[0]);
      changed = true;
    }
  }
  return changed;
}

}  // namespace neo
