#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/dim.h"

namespace neo {

// The most axes that a tensor may have.
inline constexpr int kMaxAxes = 1024;

// Sizes known at run time.
using Dims = std::vector<int64_t>;

// The product, checked against kMaxExtent; negative sizes throw a Shape error.
int64_t element_count(const Dims& dims);
std::string to_string(const Dims& dims);  // "[1,3,224,224]"
// Row-major strides in elements.
Dims dense_strides(const Dims& dims);

// The shape of a value: unranked, or one Dim per axis.
class Shape {
 public:
  Shape() = default;                                        // unranked
  Shape(std::vector<Dim> dims) : dims_(std::move(dims)) {}  // NOLINT
  static Shape of(const Dims& dims) { return Shape(std::vector<Dim>(dims.begin(), dims.end())); }

  bool has_rank() const { return dims_.has_value(); }
  int rank() const { return static_cast<int>(dims().size()); }
  const std::vector<Dim>& dims() const;  // asserts a rank
  const Dim& operator[](int axis) const { return dims()[static_cast<size_t>(axis)]; }
  bool is_static() const;  // ranked and every dim constant
  Dims to_dims() const;    // asserts is_static()
  Dims hint_dims() const;  // sizes that costs are taken at: the hints, at least 1
  Dim element_count() const;
  friend bool operator==(const Shape&, const Shape&) = default;

  std::string to_string() const;  // "[N,3,224,224]", "[*]" when unranked
  static Shape parse(std::string_view text, const SymbolLookup& symbols = {});

 private:
  std::optional<std::vector<Dim>> dims_;
};

}  // namespace neo
