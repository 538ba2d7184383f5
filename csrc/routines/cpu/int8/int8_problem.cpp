#include "routines/cpu/int8/int8_problem.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "routines/patterns/epilogue.h"

namespace neo {
bool has_dot_bytes(const Target& target) {
  return kIsaAvx512Vnni.is_subset_of(target.isa);
}

double core_cycles(const Target& target) {
  constexpr int kWideLanes = 16;
  if (target.lanes() < 8) return 1;
  return target.lanes() == kWideLanes && !has_wide_fmas(target) ? 1 : 2;
}

double result_cycles(const Target& target) {
  if (target.lanes() == 8) return 4;
  return has_wide_fmas(target) ? 4 : 7;
}

double dot_word_cycles(double rows, double vectors, int64_t codes, const Target& target) {
  constexpr double kPairs = 1.25, kPairsOfTwo = 2.0, kNarrow = 6.0, kChain = 4, kLoads = 2;
  // A product that sums by itself takes as long as a vector's FMA.
  double dot = 1;
  if (codes != kByteCodes)
    dot = target.lanes() >= 8 ? kPairs : kIsaNeon.is_subset_of(target.isa) ? kPairsOfTwo : kNarrow;
  return std::max({rows * vectors * dot / 2, (rows + vectors) / kLoads, kChain * dot}) * 2;
}

std::optional<Int8Problem> Int8Problem::read(const Workload& workload, std::string* why) {
  auto product = read_int8_product(workload, why);
  if (!product) return std::nullopt;
  Int8Problem p;
  p.product = std::move(*product);
  p.is_conv = p.product.is_conv();
  p.depth = p.product.depth();
  p.channels = p.product.channels();
  if (const char* reason = read_int8_geometry(p.product, p.geometry)) {
    if (why) *why = reason;
    return std::nullopt;
  }
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

DotResult Int8Problem::result(const int32_t* columns, int64_t padded) const {
  DotResult r;
  static_cast<CodesResult&>(r) = codes_result(product);
  r.init = columns;
  r.scale = reinterpret_cast<const float*>(columns + padded);
  r.add = reinterpret_cast<const float*>(columns + 2 * padded);
  r.mask = columns + 3 * padded;
  r.shift = columns + 5 * padded;
  if (product.addend) r.addend = reinterpret_cast<const float*>(columns + 6 * padded);
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
    const float y_step = sums_step(product);
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
  const int64_t padded = columns.padded;
  // The part that the zero point adds to a sum of bytes is taken off.
  const Int8Columns own(product, columns.bytes ? product.x_grid.zero + (product.x_grid.is_signed() ? 128 : 0) : 0);
  const auto count = static_cast<size_t>(channels);
  std::fill_n(columns.at, PackedColumns::kArrays * padded, 0);
  std::memcpy(columns.at, own.init.data(), 4 * count);
  std::memcpy(columns.at + padded, own.scale.data(), 4 * count);
  std::memcpy(columns.at + 2 * padded, own.add.data(), 4 * count);
  std::fill_n(columns.at + 3 * padded, channels, -1);
  std::memcpy(columns.at + 4 * padded, own.sums.data(), 4 * count);
  std::memcpy(columns.at + 5 * padded, own.shift.data(), 4 * count);
  std::memcpy(columns.at + 6 * padded, own.addend.data(), 4 * count);
}

double Int8Problem::table_cycles(const Target& target) const {
  constexpr double kLookUpCycles = 2;  // of a vector
  if (table_bytes() == 0) return 0;
  return kLookUpCycles * static_cast<double>(element_count(product.y->shape().hint_dims())) /
         static_cast<double>(target.lanes());
}

}  // namespace neo
