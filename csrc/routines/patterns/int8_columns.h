#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "routines/patterns/codes_result.h"
#include "routines/patterns/int8_product.h"

namespace neo {

// Reads the geometry of a product that is a convolution; why routines take no such product, or null.
const char* read_int8_geometry(const Int8Product& product, ConvGeometry& geometry);

// Whether a group has a product of codes by constant codes, whose sums are exact: a device's routines of numbers leave
// it to those of codes, which give the codes of every other machine.
bool has_codes_product(const Workload& workload);

// The weights less their zero points; reads them.
class Int8Weights {
 public:
  explicit Int8Weights(const Int8Product& product);
  // `k`: input channel of the group, then tap.
  int32_t at(int64_t channel, int64_t k) const {
    const uint8_t byte = codes_[by_rows_ ? channel * depth_ + k : k * channels_ + channel];
    return numbers_[byte] - zeros_[static_cast<size_t>(channel)];
  }
  // Those of channels [channel, channel + count) for one k.
  void read(int64_t channel, int64_t k, int64_t count, int32_t* to) const;
  std::vector<int64_t> sums() const;  // of each channel
  // What all weights of a channel are less by in words of bytes, so that these are the codes themselves.
  int32_t shift(int64_t channel) const { return middle_ - zeros_[static_cast<size_t>(channel)]; }

 private:
  Tensor tensor_;  // codes of 4 or 8 bits
  const uint8_t* codes_ = nullptr;
  std::array<int32_t, 256> numbers_;  // by code
  std::vector<int32_t> zeros_;
  int64_t channels_ = 0, depth_ = 0;
  int32_t middle_ = 0;  // of the codes' range
  bool by_rows_ = false;
};

// The constants of each output channel. Reads the product's constants.
struct Int8Columns {
  std::vector<int32_t> init;   // where its sums begin
  std::vector<float> scale;    // by which they become steps of the result, or those of the weights where x's is unknown
  std::vector<float> add;      // what is added then
  std::vector<int32_t> sums;   // of the weights, by which init changes with a zero point that only running tells
  std::vector<int32_t> shift;  // of Int8Weights
  std::vector<float> addend;   // Int8Product's

  // `zero`: the zero point of x in what is multiplied, 0 where that counts from it.
  Int8Columns(const Int8Product& product, int32_t zero);
};

// The unit of the numbers that a product's sums are brought into.
float sums_step(const Int8Product& product);
CodesResult codes_result(const Int8Product& product);

// Whether the weights less their zero points are bytes: yes or no, or either for those of a saved module, which are not
// at hand.
std::vector<bool> may_be_bytes(const Int8Product& product);

}  // namespace neo
