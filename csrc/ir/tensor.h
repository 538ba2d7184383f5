#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/dtype.h"
#include "ir/shape.h"

namespace neo {

// A dense row-major array on the host, shared by reference. Copying a Tensor copies the reference.
// A splat holds one element for all and is written out on the first call of data(); one that is computed then has no
// memory before.
class Tensor {
 public:
  Tensor() = default;
  // Uninitialised (strings are empty); throws Memory when there is none or the thread's quota is used up. 64-byte
  // aligned.
  Tensor(DType dtype, Dims dims);
  // Memory of someone else, kept alive by `owner`.
  Tensor(DType dtype, Dims dims, void* data, std::shared_ptr<void> owner);
  // Uninitialised, in memory that the system gives anew where large pages can hold it (advise_large_pages): for what is
  // kept and read often.
  static Tensor in_new_pages(DType dtype, Dims dims);
  static Tensor splat(DType dtype, Dims dims, const void* element);
  // Writes `count` elements from the one at `begin` on.
  using Fill = std::function<void(int64_t begin, int64_t count, void* to)>;
  // Numbers that `fill` gives, of any part and from any thread; all of them are kept once data() has asked for them.
  static Tensor computed(DType dtype, Dims dims, Fill fill);
  // A constant of which only dtype and dims are at hand: reading it is a Model error.
  static Tensor absent(DType dtype, Dims dims);
  bool is_absent() const;
  template <class T>
  static Tensor from(DType dtype, Dims dims, std::span<const T> elements) {
    Tensor t(dtype, std::move(dims));
    std::copy(elements.begin(), elements.end(), static_cast<T*>(t.data()));
    return t;
  }

  bool defined() const { return dtype_ != DType::Undefined; }
  DType dtype() const { return dtype_; }
  const Dims& dims() const { return dims_; }
  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t size() const { return size_; }
  int64_t bytes() const { return size_ * item_bytes(dtype_); }
  bool is_splat() const;
  const void* splat_element() const;  // asserts is_splat()

  void* data() const;
  template <class T>
  T* as() const {
    return static_cast<T*>(data());
  }
  std::string* strings() const { return as<std::string>(); }

  // Copies `count` numbers from the one at `begin` on. Those that are computed are not kept, nor is a splat written
  // out: for a look at what may not be used.
  void copy_numbers(int64_t begin, int64_t count, void* to) const;
  // Calls visit(elements, count) with all numbers in order, in pieces where they are not in memory, as long as it
  // returns true.
  void visit_numbers(const std::function<bool(const void*, int64_t)>& visit) const;

  // The same elements under other dims of equal count; shares memory.
  Tensor reshaped(Dims dims) const;
  const std::shared_ptr<void>& owner() const { return owner_; }
  // Equal for tensors that share their elements, which are not written out for it.
  const void* identity() const { return splat_ ? static_cast<const void*>(splat_.get()) : data_; }

 private:
  struct Splat;
  DType dtype_ = DType::Undefined;
  Dims dims_;
  int64_t size_ = 0;
  void* data_ = nullptr;
  std::shared_ptr<void> owner_;
  std::shared_ptr<Splat> splat_;
};

// The same elements in memory of its own.
Tensor copy_tensor(const Tensor& tensor);

// Equal dtype, dims and bytes (strings by content).
bool identical(const Tensor& a, const Tensor& b);

// The contents of a value on the host at run time: a tensor, a sequence, a map, or an optional that may be empty.
struct HostValue {
  enum class Kind : uint8_t { Empty, Tensor, Sequence, Map };
  Kind kind = Kind::Empty;
  Tensor tensor;
  std::vector<HostValue> items;  // maps: keys and values, two tensors of one axis and one size

  HostValue() = default;
  HostValue(Tensor t) : kind(Kind::Tensor), tensor(std::move(t)) {}  // NOLINT
  static HostValue sequence(std::vector<HostValue> items) {
    HostValue v;
    v.kind = Kind::Sequence;
    v.items = std::move(items);
    return v;
  }
  static HostValue map(Tensor keys, Tensor values) {
    HostValue v;
    v.kind = Kind::Map;
    v.items = {std::move(keys), std::move(values)};
    return v;
  }
};

}  // namespace neo
