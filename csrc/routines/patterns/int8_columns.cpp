#include "routines/patterns/int8_columns.h"

#include <algorithm>
#include <cmath>

namespace neo {
namespace {

// Elements of a constant, one for each channel.
std::vector<double> by_channel(const Value* constant, int64_t channels) {
  if (!constant) return std::vector<double>(static_cast<size_t>(channels));
  std::vector<double> numbers = load_doubles(*constant->constant);
  if (numbers.size() == 1) numbers.resize(static_cast<size_t>(channels), numbers.front());
  return numbers;
}

}  // namespace

const char* read_int8_geometry(const Int8Product& product, ConvGeometry& geometry) {
  const Shape& x = product.x->shape();
  if (!product.is_conv()) {
    return x.rank() < 1 || !x[x.rank() - 1].is_constant() ? "the summed size is not a constant" : nullptr;
  }
  if (!read_conv_geometry(*product.node, product.w->shape(), geometry)) return "the weights are empty";
  if (geometry.axes > 3) return "more than three spatial axes";
  if (!x[1].is_constant() || geometry.ic % geometry.groups != 0 || geometry.oc % geometry.groups != 0)
    return "the groups do not divide the channels";
  return nullptr;
}

bool has_codes_product(const Workload& workload) {
  constexpr int64_t kMaxSum = 1 << 30;
  return std::any_of(workload.nodes.begin(), workload.nodes.end(), [&](const Node* node) {
    if (node->op != "Conv" && node->op != "MatMul" && node->op != "Gemm") return false;
    const Node *x = node->inputs[0]->producer, *w = node->inputs[1]->producer;
    if (!x || !w || x->op != "DequantizeLinear" || w->op != "DequantizeLinear") return false;
    const auto product = read_int8_product(Workload::of({x, w, node}), nullptr);
    if (!product || product->x_scale || product->x_zero) return false;
    ConvGeometry geometry;
    return read_int8_geometry(*product, geometry) == nullptr && sums_fit(*product, kMaxSum);
  });
}

Int8Weights::Int8Weights(const Int8Product& product)
    : tensor_(*product.w->constant),
      codes_(tensor_.as<uint8_t>()),
      channels_(product.channels()),
      depth_(product.depth()),
      middle_(product.w->dtype() == DType::UInt8 ? 128 : 0),
      by_rows_(product.channel_axis() == 0) {
  for (size_t byte = 0; byte < numbers_.size(); ++byte)
    numbers_[byte] = code_of(tensor_.dtype(), static_cast<uint8_t>(byte));
  for (const double zero : by_channel(product.w_zero, product.channels())) zeros_.push_back(static_cast<int32_t>(zero));
}

std::vector<int64_t> Int8Weights::sums() const {
  std::vector<int64_t> sums(static_cast<size_t>(channels_), 0);
  // In the order of the memory.
  const uint8_t* from = codes_;
  if (by_rows_) {
    for (int64_t c = 0; c < channels_; ++c, from += depth_) {
      int64_t sum = -depth_ * zeros_[static_cast<size_t>(c)];
      for (int64_t k = 0; k < depth_; ++k) sum += numbers_[from[k]];
      sums[static_cast<size_t>(c)] = sum;
    }
    return sums;
  }
  for (int64_t k = 0; k < depth_; ++k, from += channels_)
    for (int64_t c = 0; c < channels_; ++c) sums[static_cast<size_t>(c)] += numbers_[from[c]];
  for (int64_t c = 0; c < channels_; ++c) sums[static_cast<size_t>(c)] -= depth_ * zeros_[static_cast<size_t>(c)];
  return sums;
}

void Int8Weights::read(int64_t channel, int64_t k, int64_t count, int32_t* to) const {
  const uint8_t* from = codes_ + (by_rows_ ? channel * depth_ + k : k * channels_ + channel);
  const int64_t step = by_rows_ ? depth_ : 1;
  const int32_t* zeros = zeros_.data() + channel;
  for (int64_t i = 0; i < count; ++i) to[i] = numbers_[from[i * step]] - zeros[i];
}

float sums_step(const Int8Product& product) {
  if (product.middle) return product.middle->scale;
  return product.residual || !product.y_grid ? 1.0f : product.y_grid->scale;
}

CodesResult codes_result(const Int8Product& p) {
  // The codes that two clamps, one behind the other, leave.
  const auto bounds = [](const CodeGrid& grid, float lo, float hi) {
    return std::pair{grid.code_of(lo), grid.code_of(hi)};
  };
  CodesResult r;
  r.is_whole = p.is_whole;
  if (p.is_whole) return r;
  if (!p.y_grid) {
    r.is_float = true;
    r.lo = std::clamp(p.sum_lo, p.lo, p.hi);
    r.hi = std::clamp(p.sum_hi, p.lo, p.hi);
    return r;
  }
  const CodeGrid& y = *p.y_grid;
  auto [lo, hi] = bounds(y, p.lo, p.hi);
  if (!p.residual && !p.addend) {
    const auto [sum_lo, sum_hi] = bounds(y, p.sum_lo, p.sum_hi);
    const int32_t inner = std::clamp(sum_lo, lo, hi);
    hi = std::clamp(sum_hi, lo, hi);
    lo = inner;
  }
  r.zero = y.zero;
  r.is_signed = y.is_signed();
  r.lo = static_cast<float>(lo - y.zero);
  r.hi = static_cast<float>(hi - y.zero);
  r.y_scale = y.scale;
  if (p.middle) {
    const auto [middle_lo, middle_hi] = bounds(*p.middle, p.sum_lo, p.sum_hi);
    r.has_middle = true;
    r.middle_lo = static_cast<float>(middle_lo - p.middle->zero);
    r.middle_hi = static_cast<float>(middle_hi - p.middle->zero);
    r.middle_scale = p.middle->scale;
  }
  if (p.residual) {
    r.residual_is_signed = p.residual_grid.is_signed();
    r.residual_scale = p.residual_grid.scale;
    r.residual_zero = p.residual_grid.zero;
  }
  return r;
}

Int8Columns::Int8Columns(const Int8Product& product, int32_t zero) {
  constexpr double kMaxBias = 1 << 30;
  const int64_t channels = product.channels();
  const Int8Weights weights(product);
  const std::vector<int64_t> weight_sums = weights.sums();
  std::vector<double> w_scale = by_channel(product.w_scale, channels);
  if (!product.w_scale) std::fill(w_scale.begin(), w_scale.end(), 1.0);
  const std::vector<double> bias = by_channel(product.bias, channels), added = by_channel(product.addend, channels);
  const float step = sums_step(product);
  for (int64_t c = 0; c < channels; ++c) {
    const auto i = static_cast<size_t>(c);
    const auto unit = static_cast<float>(static_cast<double>(product.x_grid.scale) * w_scale[i]);
    const bool is_known = !product.x_scale;
    sums.push_back(static_cast<int32_t>(weight_sums[i]));
    shift.push_back(weights.shift(c));
    addend.push_back(static_cast<float>(added[i]));
    int64_t sum = -weight_sums[i] * zero;
    // A bias of whole units is summed with the products, as QLinearConv does; any other is added to the float.
    const double units = std::nearbyint(bias[i] / unit);
    const bool is_whole = is_known && std::abs(units) <= kMaxBias &&
                          (static_cast<float>(units * unit) == bias[i] || static_cast<float>(units) * unit == bias[i]);
    if (is_whole) sum += static_cast<int64_t>(units);
    add.push_back(is_whole ? 0 : static_cast<float>(bias[i] / step));
    // Sums that pass the end of int32 on their way come back.
    init.push_back(static_cast<int32_t>(static_cast<uint32_t>(static_cast<uint64_t>(sum))));
    scale.push_back(is_known ? unit / step : unit);
  }
}

std::vector<bool> may_be_bytes(const Int8Product& p) {
  if (p.w->constant->is_absent() || (p.w_zero && p.w_zero->constant->is_absent())) return {true, false};
  return {has_byte_weights(p)};
}

}  // namespace neo
