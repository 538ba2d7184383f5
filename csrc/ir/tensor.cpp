#include "ir/tensor.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

#include "base/arena.h"
#include "base/budget.h"
#include "base/check.h"
#include "ir/strings.h"

namespace neo {
namespace {

constexpr size_t kAlignment = 64;

// Weights that stream through the cache miss the address cache page by page; large pages make that rare. They are
// taken where their rest is small beside what they hold: smaller of what comes and goes.
void* aligned_memory(size_t bytes, bool in_new_pages) {
  constexpr auto kLargePage = static_cast<size_t>(kLargePageBytes);
  const size_t rest = (kLargePage - bytes % kLargePage) % kLargePage;
  const size_t alignment = bytes >= kLargePage && rest <= bytes / (in_new_pages ? 2 : 4) ? kLargePage : kAlignment;
  const size_t size = (std::max<size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, size);
  if (memory && alignment == kLargePage) advise_large_pages(memory, static_cast<int64_t>(size), in_new_pages);
  return memory;
}

// A block of memory, and its first aligned byte.
struct Block {
  void* base;
  void* memory;
};

Block find_memory(size_t bytes, bool in_new_pages) {
  // The allocator keeps small blocks at hand, but aligned ones not.
  constexpr size_t kSmallBytes = 768;
  if (in_new_pages || bytes > kSmallBytes) {
    void* memory = aligned_memory(bytes, in_new_pages);
    return {memory, memory};
  }
  size_t space = bytes + kAlignment;
  void* base = std::malloc(space);
  void* memory = base;
  if (base != nullptr) std::align(kAlignment, bytes, memory, space);
  return {base, memory};
}

// Bytes that a tensor takes beside its elements.
constexpr int64_t kOverheadBytes = 256;

// Memory counted against the budget under which it was allocated, for as long as it lives.
class Charge {
 public:
  explicit Charge(int64_t bytes) : bytes_(bytes), budget_(Budget::current()) { take_memory(bytes); }
  Charge(Charge&&) = default;
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;
  ~Charge() {
    if (budget_) budget_->give(bytes_);
  }

 private:
  int64_t bytes_;
  std::shared_ptr<Budget> budget_;
};

std::shared_ptr<void> allocate(DType dtype, int64_t count, bool in_new_pages = false) {
  int64_t bytes = 0;
  NEO_CHECK(!__builtin_mul_overflow(count, item_bytes(dtype), &bytes), Shape, "tensor",
            "the bytes of a tensor must fit in 64 bits. Got ", count, " elements of ", name(dtype));
  NEO_CHECK(bytes <= INT64_MAX - kOverheadBytes, Memory, "tensor", "the bytes of a tensor must fit in 64 bits. Got ",
            bytes);
  Charge charge(bytes + kOverheadBytes);
  const auto [base, memory] = find_memory(static_cast<size_t>(bytes), in_new_pages);
  NEO_CHECK(memory != nullptr, Memory, "tensor", "there is no memory for a tensor. Asked for ", bytes, " bytes");
  if (dtype != DType::String) {
    std::shared_ptr<void> owner(memory, [base = base, charge = std::move(charge)](void*) { std::free(base); });
    if (fill_new_memory) fill_new_memory(memory, bytes);
    return owner;
  }
  auto* strings = static_cast<std::string*>(memory);
  std::uninitialized_value_construct_n(strings, count);
  return {memory, [count, base = base, charge = std::move(charge)](void* p) {
            std::destroy_n(static_cast<std::string*>(p), count);
            std::free(base);
          }};
}

}  // namespace

struct Tensor::Splat {
  std::string text;               // a string's element
  char number[16] = {};           // any other dtype's
  const void* element = nullptr;  // null: absent, or computed
  Fill fill;
  std::once_flag written;
  std::atomic<bool> is_written{false};
  std::shared_ptr<void> memory;
};

Tensor::Tensor(DType dtype, Dims dims) : dtype_(dtype), dims_(std::move(dims)), size_(element_count(dims_)) {
  NEO_CHECK(dtype != DType::Undefined, Type, "tensor", "a tensor must have a dtype. Got what is no tensor's");
  owner_ = allocate(dtype, size_);
  data_ = owner_.get();
}

Tensor::Tensor(DType dtype, Dims dims, void* data, std::shared_ptr<void> owner)
    : dtype_(dtype), dims_(std::move(dims)), size_(element_count(dims_)), data_(data), owner_(std::move(owner)) {
  NEO_CHECK(dtype != DType::Undefined, Type, "tensor", "a tensor must have a dtype. Got what is no tensor's");
  NEO_ASSERT(data != nullptr || size_ == 0, "a tensor needs memory");
}

Tensor Tensor::in_new_pages(DType dtype, Dims dims) {
  const int64_t count = element_count(dims);
  std::shared_ptr<void> memory = allocate(dtype, count, true);
  void* const data = memory.get();
  return Tensor(dtype, std::move(dims), data, std::move(memory));
}

Tensor Tensor::splat(DType dtype, Dims dims, const void* element) {
  NEO_CHECK(dtype != DType::Undefined, Type, "tensor", "a tensor must have a dtype. Got what is no tensor's");
  Tensor t;
  t.dtype_ = dtype;
  t.dims_ = std::move(dims);
  t.size_ = neo::element_count(t.dims_);
  t.splat_ = std::make_shared<Splat>();
  if (dtype == DType::String) {
    t.splat_->text = *static_cast<const std::string*>(element);
    t.splat_->element = &t.splat_->text;
  } else {
    std::memcpy(t.splat_->number, element, static_cast<size_t>(item_bytes(dtype)));
    t.splat_->element = t.splat_->number;
  }
  return t;
}

Tensor Tensor::computed(DType dtype, Dims dims, Fill fill) {
  Tensor t = absent(dtype, std::move(dims));
  t.splat_->fill = std::move(fill);
  return t;
}

Tensor Tensor::absent(DType dtype, Dims dims) {
  NEO_CHECK(dtype != DType::Undefined, Type, "tensor", "a tensor must have a dtype. Got what is no tensor's");
  Tensor t;
  t.dtype_ = dtype;
  t.dims_ = std::move(dims);
  t.size_ = neo::element_count(t.dims_);
  t.splat_ = std::make_shared<Splat>();
  return t;
}

bool Tensor::is_absent() const {
  return splat_ != nullptr && splat_->element == nullptr && !splat_->fill;
}

bool Tensor::is_splat() const {
  return splat_ != nullptr && splat_->element != nullptr;
}

const void* Tensor::splat_element() const {
  NEO_ASSERT(is_splat());
  return splat_->element;
}

void* Tensor::data() const {
  if (!splat_) return data_;
  NEO_CHECK(!is_absent(), Model, "load", "the contents of a constant that is read must be saved. Got only ",
            name(dtype_), neo::to_string(dims_));
  std::call_once(splat_->written, [&] {
    std::shared_ptr<void> memory = allocate(dtype_, size_);
    if (splat_->fill) {
      splat_->fill(0, size_, memory.get());
    } else if (dtype_ == DType::String) {
      auto* strings = static_cast<std::string*>(memory.get());
      for (int64_t i = 0; i < size_; ++i) copy_strings(&splat_->text, 1, strings + i);
    } else {
      auto* bytes = static_cast<char*>(memory.get());
      const auto item = static_cast<size_t>(item_bytes(dtype_));
      const auto total = static_cast<size_t>(this->bytes());
      if (total > 0) std::memcpy(bytes, splat_->number, item);
      for (size_t done = item; done < total;) {
        const size_t more = std::min(done, total - done);
        std::memcpy(bytes + done, bytes, more);
        done += more;
      }
    }
    splat_->memory = std::move(memory);
    splat_->is_written = true;
  });
  return splat_->memory.get();
}

void Tensor::copy_numbers(int64_t begin, int64_t count, void* to) const {
  NEO_ASSERT(dtype_ != DType::String && begin >= 0 && count >= 0 && count <= size_ - begin, "copying ", count, " from ",
             begin, " of ", size_);
  const auto item = static_cast<size_t>(item_bytes(dtype_));
  if (splat_ && !splat_->is_written && splat_->fill) {
    splat_->fill(begin, count, to);
  } else if (is_splat()) {
    for (int64_t i = 0; i < count; ++i)
      std::memcpy(static_cast<char*>(to) + static_cast<size_t>(i) * item, splat_->number, item);
  } else if (count > 0) {
    std::memcpy(to, as<char>() + static_cast<size_t>(begin) * item, static_cast<size_t>(count) * item);
  }
}

void Tensor::visit_numbers(const std::function<bool(const void*, int64_t)>& visit) const {
  if (!splat_ || splat_->is_written || !splat_->fill) {
    visit(data(), size_);
    return;
  }
  constexpr int64_t kPiece = 1 << 14;
  const Tensor piece(dtype_, {std::min(kPiece, size_)});
  for (int64_t begin = 0; begin < size_; begin += kPiece) {
    const int64_t count = std::min(kPiece, size_ - begin);
    splat_->fill(begin, count, piece.data());
    if (!visit(piece.data(), count)) return;
  }
}

Tensor Tensor::reshaped(Dims dims) const {
  NEO_CHECK(element_count(dims) == size_, Shape, "tensor", "a reshaped tensor must keep its element count. Got ",
            to_string(dims), " from ", to_string(dims_));
  Tensor t = *this;
  t.dims_ = std::move(dims);
  return t;
}

void copy_strings(const std::string* from, int64_t count, std::string* to) {
  for (int64_t i = 0; i < count; ++i) {
    take_memory(static_cast<int64_t>(from[i].size()));
    to[i] = from[i];
  }
}

Tensor copy_tensor(const Tensor& tensor) {
  NEO_ASSERT(tensor.defined(), "copying no tensor");
  if (tensor.is_splat()) return Tensor::splat(tensor.dtype(), tensor.dims(), tensor.splat_element());
  Tensor copy(tensor.dtype(), tensor.dims());
  if (tensor.dtype() == DType::String) {
    copy_strings(tensor.strings(), tensor.size(), copy.strings());
  } else if (tensor.size() > 0) {
    std::memcpy(copy.data(), tensor.data(), static_cast<size_t>(tensor.bytes()));
  }
  return copy;
}

bool identical(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.dims() != b.dims()) return false;
  if (a.size() == 0) return true;
  if (a.dtype() == DType::String) {
    if (a.is_splat() && b.is_splat()) {
      return *static_cast<const std::string*>(a.splat_element()) == *static_cast<const std::string*>(b.splat_element());
    }
    return std::equal(a.strings(), a.strings() + a.size(), b.strings());
  }
  const auto item = static_cast<size_t>(item_bytes(a.dtype()));
  if (a.is_splat() && b.is_splat()) return std::memcmp(a.splat_element(), b.splat_element(), item) == 0;
  return std::memcmp(a.data(), b.data(), static_cast<size_t>(a.bytes())) == 0;
}

}  // namespace neo
