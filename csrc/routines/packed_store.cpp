#include "routines/packed_store.h"

#include "base/arena.h"
#include "base/check.h"

namespace neo {
namespace {

constexpr int64_t kPageFloats = kLargePageBytes / static_cast<int64_t>(sizeof(float));

int64_t aligned(int64_t floats) {
  constexpr int64_t kLine = 16;
  return (floats + kLine - 1) / kLine * kLine;
}

}  // namespace

PackedSlab::PackedSlab(int64_t bytes) {
  const int64_t floats = bytes / static_cast<int64_t>(sizeof(float));
  const int64_t pages = (floats + kPageFloats - 1) / kPageFloats;
  if (2 * floats >= kPageFloats) memory_ = Tensor::in_new_pages(DType::Float32, {pages * kPageFloats});
}

PackedSlab PackedSlab::scratch(int64_t bytes) {
  PackedSlab slab;
  slab.memory_ = Tensor::in_new_pages(DType::Float32, {bytes / static_cast<int64_t>(sizeof(float))});
  return slab;
}

Tensor PackedSlab::floats(int64_t at, int64_t count) const {
  if (!memory_.defined() || count > memory_.size() - at) return Tensor();
  return Tensor(DType::Float32, {count}, memory_.as<float>() + at, memory_.owner());
}

PackedStore::PackedStore(const PackedSlab& slab, int64_t begin, int64_t end)
    : slab_(&slab),
      slab_begin_(aligned(begin / static_cast<int64_t>(sizeof(float)))),
      slab_end_(end / static_cast<int64_t>(sizeof(float))) {}

Tensor PackedStore::allocate(int64_t count) {
  if (slab_ && count > 0 && count <= slab_end_ - slab_begin_) {
    const Tensor blob = slab_->floats(slab_begin_, count);
    slab_begin_ += aligned(count);
    if (blob.defined()) return blob;
  }
  return Tensor::in_new_pages(DType::Float32, {count});
}

PackedStore PackedStore::synthetic(Tensor values) {
  PackedStore store;
  store.synthetic_ = std::move(values);
  return store;
}

const Tensor& PackedStore::take(DType dtype, int64_t count) {
  NEO_CHECK(next_ < blobs_.size(), Model, "load", "a step must have a blob for every constant that it packs. Got ",
            blobs_.size(), ", expected more");
  const Tensor& blob = blobs_[next_++];
  NEO_CHECK(blob.dtype() == dtype && blob.size() == count, Model, "load",
            "a packed blob must have the size that its routine wants. Got ", blob.size(), " elements of ",
            name(blob.dtype()), ", expected ", count, " of ", name(dtype));
  return blob;
}

Tensor PackedStore::floats(int64_t count, std::initializer_list<const Value*> of,
                           const std::function<void(float*)>& fill) {
  for (const Value* v : of) {
    if (v) held_.insert(v);
  }
  if (is_saved_) return take(DType::Float32, count);
  Tensor blob;
  if (synthetic_.defined() && synthetic_.size() >= count) {
    blob = Tensor(DType::Float32, {count}, synthetic_.data(), synthetic_.owner());
  } else {
    blob = allocate(count);
    fill(blob.as<float>());
  }
  blobs_.push_back(blob);
  return blob;
}

Tensor PackedStore::constant(const Value& value) {
  held_.insert(&value);
  if (is_saved_) return take(value.dtype(), value.constant->size()).reshaped(value.constant->dims());
  blobs_.push_back(*value.constant);
  return *value.constant;
}

void PackedStore::check_all_taken() const {
  NEO_CHECK(!is_saved_ || next_ == blobs_.size(), Model, "load",
            "a step must take every packed blob that it names. Got ", blobs_.size(), ", expected ", next_);
}

}  // namespace neo
