#pragma once

#include <functional>
#include <initializer_list>
#include <set>
#include <vector>

#include "ir/graph.h"

namespace neo {

// One piece of memory for the packed constants of many steps, in large pages: weights that stream through the cache
// miss the address cache page by page, whatever their size.
class PackedSlab {
 public:
  // A slab of `bytes`; an empty one where they are few.
  explicit PackedSlab(int64_t bytes);
  // Memory to pack into and compare, again and again: the allocator would not find a freed blob's place for the next.
  static PackedSlab scratch(int64_t bytes);

  // Uninitialised, `at` floats behind the beginning; undefined beyond the end.
  Tensor floats(int64_t at, int64_t count) const;

 private:
  PackedSlab() = default;

  Tensor memory_;
};

// The packed constants of one step, in the order in which Routine::make asks for them. While compiling it allocates
// and lets the routine fill; over the blobs of a saved module it hands those out, and nothing is filled.
class PackedStore {
 public:
  PackedStore() = default;
  // Blobs lie one behind the other in the bytes [begin, end) of the slab; one that finds no room there has memory of
  // its own. The slab must outlive the store but not the blobs.
  PackedStore(const PackedSlab& slab, int64_t begin, int64_t end);
  explicit PackedStore(std::vector<Tensor> saved) : blobs_(std::move(saved)), is_saved_(true) {}
  // A store for steps that are only timed: every blob of floats is the beginning of `values`, where those are as
  // many.
  static PackedStore synthetic(Tensor values);

  // The next blob: `count` floats that hold what make() needs of the constants `of` (null entries do not count). Only
  // `fill` may read the contents of those: a saved module does not keep them.
  Tensor floats(int64_t count, std::initializer_list<const Value*> of, const std::function<void(float*)>& fill);
  // The next blob: a constant as it is.
  Tensor constant(const Value& value);

  // After make(): its blobs, and the constants that they hold. Every blob of a saved module must be taken.
  const std::vector<Tensor>& blobs() const { return blobs_; }
  bool holds(const Value* value) const { return held_.count(value) > 0; }
  void check_all_taken() const;

 private:
  const Tensor& take(DType dtype, int64_t count);
  Tensor allocate(int64_t count);

  std::vector<Tensor> blobs_;
  Tensor synthetic_;
  const PackedSlab* slab_ = nullptr;
  int64_t slab_begin_ = 0, slab_end_ = 0;  // of what is left, in floats
  std::set<const Value*> held_;
  size_t next_ = 0;
  bool is_saved_ = false;
};

}  // namespace neo
