#pragma once

#include <atomic>
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
  // For so many bytes; of few, or beyond those, every blob has memory of its own.
  explicit PackedSlab(int64_t bytes);

  // Uninitialised. From any thread.
  Tensor floats(int64_t count);

 private:
  Tensor memory_;
  std::atomic<int64_t> used_{0};
};

// The packed constants of one step, in the order in which Routine::make asks for them. While compiling it allocates
// and lets the routine fill; over the blobs of a saved module it hands those out, and nothing is filled.
class PackedStore {
 public:
  PackedStore() = default;
  // Blobs lie in the slab, which must outlive the store but not the blobs.
  explicit PackedStore(PackedSlab& slab) : slab_(&slab) {}
  explicit PackedStore(std::vector<Tensor> saved) : blobs_(std::move(saved)), is_saved_(true) {}
  // For steps of which only the time counts: every blob of floats is the beginning of `values`, where those are as
  // many.
  static PackedStore made_up(Tensor values);

  // The next blob: `count` floats that hold what make() needs of the constants `of` (null entries do not count). Only
  // `fill` may read the contents of those: a saved module does not keep them.
  Tensor floats(int64_t count, std::initializer_list<const Value*> of, const std::function<void(float*)>& fill);
  // The next blob: a constant as it is.
  Tensor constant(const Value& value);

  // After make(): what it took, and the constants that are held by that. Of a saved module every blob must be taken.
  const std::vector<Tensor>& blobs() const { return blobs_; }
  bool holds(const Value* value) const { return held_.count(value) > 0; }
  void check_all_taken() const;

 private:
  const Tensor& take(DType dtype, int64_t count);

  std::vector<Tensor> blobs_;
  Tensor made_up_;
  PackedSlab* slab_ = nullptr;
  std::set<const Value*> held_;
  size_t next_ = 0;
  bool is_saved_ = false;
};

}  // namespace neo
