#pragma once

#include <bit>
#include <string>
#include <vector>

#include "ops/op.h"

// The mapping that encoders of labels share.

namespace neo {

// Positions of keys, by hashing; the last of equal keys counts, and all NaN are equal.
class KeyTable {
 public:
  explicit KeyTable(Tensor keys);

  DType dtype() const { return keys_.dtype(); }
  // The position, -1 where there is none. Keys that are strings, floats and others.
  int64_t find(const std::string& key) const {
    const std::string* keys = keys_.strings();
    return look_up(std::hash<std::string>()(key), [&](int64_t i) { return keys[i] == key; });
  }
  int64_t find(double key) const {
    if (key != key) return nan_;
    return look_up(spread(std::bit_cast<uint64_t>(key + 0.0)), [&](int64_t i) { return reals_[i] == key; });
  }
  int64_t find(int64_t key) const {
    return look_up(spread(static_cast<uint64_t>(key)), [&](int64_t i) { return ints_[i] == key; });
  }

 private:
  static size_t spread(uint64_t x) {
    x *= 0x9e3779b97f4a7c15U;
    return static_cast<size_t>(x ^ (x >> 32));
  }
  template <class F>
  int64_t look_up(size_t hash, F&& equals) const {
    for (size_t at = hash & mask_;; at = (at + 1) & mask_) {
      if (places_[at] < 0 || equals(places_[at])) return places_[at];
    }
  }

  Tensor keys_;
  std::vector<double> reals_;
  std::vector<int64_t> ints_;
  std::vector<int64_t> places_;  // by hash; -1: free
  size_t mask_ = 0;
  int64_t nan_ = -1;
};

struct LabelMapping {
  Tensor keys, values, fallback;  // the fallback is one element
};
// The mapping of a LabelEncoder, or of a CategoryMapper of inputs of that dtype.
LabelMapping label_mapping(const Node& node, DType input);

// Some steps for each element that is looked up.
Work lookup_work(const Node& node);

// The categories of a OneHotEncoder.
Tensor category_list(const Node& node);

}  // namespace neo
