#include "ir/shape.h"

#include <algorithm>

#include "base/check.h"

namespace neo {

int64_t element_count(const Dims& dims) {
  int64_t count = 1;
  bool zero = false;
  for (int64_t d : dims) {
    NEO_CHECK(d >= 0, Shape, "shape", "a size must not be negative. Got ", to_string(dims));
    if (d == 0) {
      zero = true;
      continue;
    }
    // Also where another size is 0: strides are products of the others.
    NEO_CHECK(!__builtin_mul_overflow(count, d, &count) && count <= kMaxExtent, Shape, "shape",
              "a tensor must have at most ", kMaxExtent, " elements. Got the shape ", to_string(dims));
  }
  return zero ? 0 : count;
}

std::string to_string(const Dims& dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) text += (i ? "," : "") + std::to_string(dims[i]);
  return text + "]";
}

Dims dense_strides(const Dims& dims) {
  Dims strides(dims.size());
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
    // A zero-sized axis is never stepped over; taking it as 1 keeps the strides of the others meaningful.
    NEO_CHECK(!__builtin_mul_overflow(stride, std::max<int64_t>(dims[i], 1), &stride), Shape, "shape",
              "the strides of a tensor must fit in 64 bits. Got the shape ", to_string(dims));
  }
  return strides;
}

const std::vector<Dim>& Shape::dims() const {
  NEO_ASSERT(dims_.has_value(), "an unranked shape has no dims");
  return *dims_;
}

bool Shape::is_static() const {
  return dims_.has_value() && std::all_of(dims_->begin(), dims_->end(), [](const Dim& d) { return d.is_constant(); });
}

Dims Shape::to_dims() const {
  Dims sizes;
  sizes.reserve(dims().size());
  for (const Dim& d : dims()) sizes.push_back(d.value());
  return sizes;
}

Dims Shape::hint_dims() const {
  Dims sizes;
  int64_t rest = kMaxExtent;
  for (const Dim& d : dims()) {
    // Hints of several sizes that are each possible may make a tensor that is not.
    const int64_t size = d.is_constant() ? std::max<int64_t>(1, d.value()) : std::clamp<int64_t>(d.hint(), 1, rest);
    sizes.push_back(size);
    rest = std::max<int64_t>(1, rest / size);
  }
  return sizes;
}

Dim Shape::element_count() const {
  Dim count = 1;
  for (const Dim& d : dims()) count = count * d;
  return count;
}

std::string Shape::to_string() const {
  if (!dims_) return "[*]";
  std::string text = "[";
  for (size_t i = 0; i < dims_->size(); ++i) text += (i ? "," : "") + (*dims_)[i].to_string();
  return text + "]";
}

Shape Shape::parse(std::string_view text, const SymbolLookup& symbols) {
  const auto trim = [](std::string_view s) {
    while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
    while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
    return s;
  };
  std::string_view body = trim(text);
  NEO_CHECK(body.size() >= 2 && body.front() == '[' && body.back() == ']', Model, "shape",
            "a shape is written like [N,3,224,224] or [*]. Got \"", text, "\"");
  body = trim(body.substr(1, body.size() - 2));
  if (body == "*") return Shape();
  std::vector<Dim> dims;
  if (body.empty()) return Shape(std::move(dims));
  // Commas inside parentheses or quotes belong to a dim.
  size_t begin = 0;
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i <= body.size(); ++i) {
    if (i == body.size() || (body[i] == ',' && depth == 0 && !quoted)) {
      dims.push_back(Dim::parse(trim(body.substr(begin, i - begin)), symbols));
      begin = i + 1;
    } else if (quoted) {
      if (body[i] == '\\')
        ++i;
      else if (body[i] == '"')
        quoted = false;
    } else {
      quoted = body[i] == '"';
      depth += body[i] == '(' ? 1 : body[i] == ')' ? -1 : 0;
    }
  }
  return Shape(std::move(dims));
}

}  // namespace neo
