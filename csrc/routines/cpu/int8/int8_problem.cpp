#include "routines/cpu/int8/int8_problem.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "routines/patterns/epilogue.h"

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

bool has_dot_bytes(const Target& target) {
  return kIsaAvx512Vnni.is_subset_of(target.isa);
}

double core_cycles(const Target& target) {
  constexpr int kWideLanes = 16;
  if (target.lanes() < 8) return 1;
  return target.lanes() == kWideLanes && !has_wide_fmas(target) ? 1 : 2;
}

double result_cycles(const Target& target) {
  if (target.lanes() == 8) return 5;
  return has_wide_fmas(target) ? 6 : 8;
}

double dot_word_cycles(double rows, double vectors, int64_t codes, const Target& target) {
  constexpr double kPairs = 1.25, kPairsOfTwo = 2.0, kNarrow = 6.0, kChain = 4, kLoads = 2;
  // A product that sums by itself takes as long as a vector's FMA.
  double dot = 1;
  if (codes != kByteCodes)
    dot = target.lanes() >= 8 ? kPairs : kIsaNeon.is_subset_of(target.isa) ? kPairsOfTwo : kNarrow;
  return std::max({rows * vectors * dot / 2, (rows + vectors) / kLoads, kChain * dot}) * 2;
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

std::optional<Int8Problem> Int8Problem::read(const Workload& workload, std::string* why) {
  auto product = read_int8_product(workload, why);
  if (!product) return std::nullopt;
  Int8Problem p;
  p.product = std::move(*product);
  p.is_conv = p.product.is_conv();
  p.depth = p.product.depth();
  p.channels = p.product.channels();
  const auto reject = [&](const char* reason) {
    if (why) *why = reason;
    return std::nullopt;
  };
  const Shape& x = p.product.x->shape();
  if (!p.product.is_conv()) {
    if (x.rank() < 1 || !x[x.rank() - 1].is_constant()) return reject("the summed size is not a constant");
    return p;
  }
  if (!read_conv_geometry(*p.product.node, p.product.w->shape(), p.geometry)) return reject("the weights are empty");
  if (p.geometry.axes > 3) return reject("more than three spatial axes");
  if (!x[1].is_constant() || p.geometry.ic % p.geometry.groups != 0 || p.geometry.oc % p.geometry.groups != 0)
    return reject("the groups do not divide the channels");
  return p;
}

DotShape Int8Problem::shape(const Dims& x, const Dims& y) const {
  DotShape s;
  if (is_conv) {
    const Im2colConvShape c = geometry.panel_shape(x, y);
    s.n = c.n;
    s.groups = c.groups;
    s.ic = c.ic;
    s.oc = c.oc;
    s.planes = {c.in[0], c.out[0], c.kernel[0], c.stride[0], c.pad[0], c.dilation[0]};
    s.ih = c.in[1];
    s.oh = c.out[1];
    s.kh = c.kernel[1];
    s.stride_h = c.stride[1];
    s.pad_top = c.pad[1];
    s.dilation_h = c.dilation[1];
    s.iw = c.in[2];
    s.ow = c.out[2];
    s.kw = c.kernel[2];
    s.stride_w = c.stride[2];
    s.pad_left = c.pad[2];
    s.dilation_w = c.dilation[2];
    return s;
  }
  s.ic = depth;
  s.oc = channels;
  s.iw = s.ow = element_count(x) / std::max<int64_t>(1, s.ic);
  return s;
}

DotShape Int8Problem::hint() const {
  return shape(product.x->shape().hint_dims(), product.y->shape().hint_dims());
}

DotShape Int8Problem::constant_shape() const {
  const Dims ones(static_cast<size_t>(is_conv ? geometry.axes + 2 : 1), 1);
  return shape(ones, ones);
}

double Int8Problem::traffic_bytes() const {
  double bytes = 0;
  for (const Value* v : {product.x, product.residual, product.y}) {
    if (v) bytes += static_cast<double>(element_count(v->shape().hint_dims()) * item_bytes(v->dtype()));
  }
  return bytes;
}

Candidate Int8Problem::candidate(const Workload& workload, bool blocks_x, bool blocks_y, const Target& target) const {
  const auto schema = [&](const Value* v, bool blocked) {
    Schema s = plain_schema(v->type);
    if (blocked) s.layout = Layout::channel_blocked(v->shape().rank(), target.lanes());
    return s;
  };
  Candidate c;
  c.inputs.resize(workload.inputs.size());
  if (product.residual) {
    const int index = workload.input_index(product.residual);
    c.inputs[static_cast<size_t>(index)] = schema(product.residual, blocks_y);
    if (product.residual != product.x) c.in_place = index;
  }
  c.inputs[static_cast<size_t>(workload.input_index(product.x))] = schema(product.x, blocks_x);
  for (const Value* v : {product.x_scale, product.x_zero}) {
    if (v) c.inputs[static_cast<size_t>(workload.input_index(v))] = plain_schema(v->type);
  }
  c.outputs.push_back(schema(product.y, blocks_y));
  return c;
}

float Int8Problem::step() const {
  if (product.middle) return product.middle->scale;
  return product.residual || !product.y_grid ? 1.0f : product.y_grid->scale;
}

DotResult Int8Problem::result(const int32_t* columns, int64_t padded) const {
  const Int8Product& p = product;
  // The codes that two clamps, one behind the other, leave.
  const auto bounds = [](const CodeGrid& grid, float lo, float hi) {
    return std::pair{grid.code_of(lo), grid.code_of(hi)};
  };
  DotResult r;
  r.init = columns;
  r.scale = reinterpret_cast<const float*>(columns + padded);
  r.add = reinterpret_cast<const float*>(columns + 2 * padded);
  r.mask = columns + 3 * padded;
  r.shift = columns + 5 * padded;
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
  if (p.addend) r.addend = reinterpret_cast<const float*>(columns + 6 * padded);
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

Int8Problem::RunTimeGrid Int8Problem::run_time_grid(const Candidate& candidate) const {
  return {argument_of(candidate, product.x_scale), argument_of(candidate, product.x_zero)};
}

CodeGrid Int8Problem::bind_grid(const RunTimeGrid& grid, std::byte* const* args, int64_t padded, IndexRange columns,
                                bool bytes, int32_t* to, DotResult& result) const {
  CodeGrid x = product.x_grid;
  if (grid.scale >= 0) {
    x.scale = *reinterpret_cast<const float*>(args[grid.scale]);
    auto* scale = reinterpret_cast<float*>(to + padded);
    const float y_step = step();
    // The packed scales are those of the weights.
    for (int64_t c = columns.begin; c < columns.end; ++c) scale[c] = x.scale * result.scale[c];
    for (int64_t c = columns.begin; y_step != 1 && c < columns.end; ++c) scale[c] /= y_step;
    result.scale = scale;
  }
  if (grid.zero >= 0) {
    const auto* zero = reinterpret_cast<const uint8_t*>(args[grid.zero]);
    x.zero = x.is_signed() ? static_cast<int8_t>(*zero) : *zero;
    const int32_t* sums = result.init + 4 * padded;
    // Bytes count from 0 on, so that the constants have the rest. A wrap-around here comes back with the sums.
    const uint32_t shift = bytes ? static_cast<uint32_t>(x.zero) : 0;
    for (int64_t c = columns.begin; c < columns.end; ++c)
      to[c] = static_cast<int32_t>(static_cast<uint32_t>(result.init[c]) - shift * static_cast<uint32_t>(sums[c]));
    result.init = to;
  }
  return x;
}

void Int8Problem::pack_columns(const PackedColumns& columns) const {
  constexpr double kMaxBias = 1 << 30;
  const int64_t padded = columns.padded;
  const Int8Weights weights(product);
  const std::vector<int64_t> weight_sums = weights.sums();
  std::vector<double> w_scale = by_channel(product.w_scale, channels);
  if (!product.w_scale) std::fill(w_scale.begin(), w_scale.end(), 1.0);
  const std::vector<double> bias = by_channel(product.bias, channels), added = by_channel(product.addend, channels);
  int32_t* init = columns.at;
  auto* scale = reinterpret_cast<float*>(columns.at + padded);
  auto* add = reinterpret_cast<float*>(columns.at + 2 * padded);
  int32_t* mask = columns.at + 3 * padded;
  int32_t* sums = columns.at + 4 * padded;
  int32_t* shift = columns.at + 5 * padded;
  auto* addend = reinterpret_cast<float*>(columns.at + 6 * padded);
  std::fill_n(columns.at, PackedColumns::kArrays * padded, 0);
  // The part that the zero point adds to a sum of bytes is taken off.
  const int32_t zero = columns.bytes ? product.x_grid.zero + (product.x_grid.is_signed() ? 128 : 0) : 0;
  for (int64_t c = 0; c < channels; ++c) {
    const auto i = static_cast<size_t>(c);
    const auto unit = static_cast<float>(static_cast<double>(product.x_grid.scale) * w_scale[i]);
    const bool is_known = !product.x_scale;
    sums[c] = static_cast<int32_t>(weight_sums[i]);
    shift[c] = weights.shift(c);
    addend[c] = static_cast<float>(added[i]);
    int64_t sum = -weight_sums[i] * zero;
    // A bias of whole units is summed with the products, as QLinearConv does; any other is added to the float.
    const double units = std::nearbyint(bias[i] / unit);
    const bool is_whole = is_known && std::abs(units) <= kMaxBias &&
                          (static_cast<float>(units * unit) == bias[i] || static_cast<float>(units) * unit == bias[i]);
    if (is_whole) {
      sum += static_cast<int64_t>(units);
    } else {
      add[c] = static_cast<float>(bias[i] / step());
    }
    // Sums that pass the end of int32 on their way come back.
    init[c] = static_cast<int32_t>(static_cast<uint32_t>(static_cast<uint64_t>(sum)));
    scale[c] = is_known ? unit / step() : unit;
    mask[c] = -1;
  }
}

double Int8Problem::table_cycles(const Target& target) const {
  constexpr double kLookUpCycles = 2;  // of a vector
  if (table_bytes() == 0) return 0;
  return kLookUpCycles * static_cast<double>(element_count(product.y->shape().hint_dims())) /
         static_cast<double>(target.lanes());
}

std::vector<bool> may_be_bytes(const Int8Problem& problem) {
  const Int8Product& p = problem.product;
  if (p.w->constant->is_absent() || (p.w_zero && p.w_zero->constant->is_absent())) return {true, false};
  return {has_byte_weights(p)};
}

}  // namespace neo
