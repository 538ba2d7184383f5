#include "passes/quantization.h"

#include <algorithm>
#include <unordered_map>

#include "passes/pattern.h"

namespace neo {
namespace {

// One scale for all, or one for each position of an axis; not one for each block.
bool has_no_blocks(const Node& node) {
  return node.int_attr("block_size", 0) == 0;
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
    if (!node || node->outputs.empty() || node->outputs.front() != value) return std::nullopt;
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
    static constexpr std::string_view kMoves[] = {"Reshape",      "Flatten",      "Squeeze",   "Unsqueeze",
                                                  "Transpose",    "Slice",        "Expand",    "Gather",
                                                  "DepthToSpace", "SpaceToDepth", "ReduceMax", "Tile"};
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
  return Tensor::computed(DType::Float32, dims, [codes, scale, zeros, inner, along] {
    Tensor real(DType::Float32, codes.dims());
    const bool has_sign = codes.dtype() == DType::Int8;
    const auto* from = codes.as<uint8_t>();
    const auto* scales = scale.as<float>();
    auto* to = real.as<float>();
    int64_t c = 0;
    for (int64_t i = 0; i < codes.size(); i += inner, c = c + 1 == along ? 0 : c + 1) {
      const float by = scales[c % scale.size()];
      const double zero_point = zeros[static_cast<size_t>(c) % zeros.size()];
      for (int64_t k = i; k < i + inner; ++k) {
        const int code = has_sign ? static_cast<int8_t>(from[k]) : from[k];
        to[k] = static_cast<float>(code - zero_point) * by;
      }
    }
    return real;
  });
}

bool sink_dequantization(Rewriter& rewriter) {
  // A Transpose goes the other way (eliminate_transposes).
  static constexpr std::string_view kSunk[] = {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Slice", "Concat"};
  bool changed = false;
  for (Node* node : rewriter.nodes()) {
    if (rewriter.is_retired(node) || std::find(std::begin(kSunk), std::end(kSunk), node->op) == std::end(kSunk))
      continue;
    std::vector<Value*> inputs = node->inputs;
    const Node* first = nullptr;
    std::optional<Grid> grid;
    const size_t moved = node->op == "Concat" ? inputs.size() : 1;
    for (size_t i = 0; i < moved; ++i) {
      const Node* source = made_by(inputs[i], "DequantizeLinear");
      if (source && !inputs[i]->constant && has_no_blocks(*source) && inputs[i]->dtype() == DType::Float32) {
        const auto own = read_grid(source->inputs[0]->dtype(), source->input(1), source->input(2));
        if (i == 0) first = source, grid = own;
        if (own && own == grid) {
          inputs[i] = source->inputs[0];
          continue;
        }
      }
      grid.reset();
      break;
    }
    if (!grid) continue;
    const std::vector<Value*> rest(first->inputs.begin() + 1, first->inputs.end());
    std::vector<Value*> scaled{rewriter.insert(node, node->op, std::move(inputs), node->attrs)};
    scaled.insert(scaled.end(), rest.begin(), rest.end());
    rewriter.replace(node->outputs.front(), rewriter.insert(node, "DequantizeLinear", std::move(scaled)));
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
