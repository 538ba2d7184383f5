#pragma once

#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "kernel_ir/stmt.h"

namespace neo::kernel {

class Builder;

// One place of a buffer: read where an expression is wanted, written by =.
class Element {
 public:
  operator Expr() const { return load(buffer_, index_, lanes_); }  // NOLINT: an element is its value
  const Element& operator=(const Expr& value) const;
  const Element& operator=(const Element& other) const { return *this = Expr(other); }

 private:
  friend class Array;
  Element(Builder* builder, Memory buffer, Expr index, int lanes)
      : builder_(builder), buffer_(std::move(buffer)), index_(std::move(index)), lanes_(lanes) {}
  Builder* builder_;
  Memory buffer_;
  Expr index_;
  int lanes_;
};

// A buffer while its kernel is being built.
class Array {
 public:
  Element operator[](const Expr& index) const { return at(index, 1); }
  Element operator[](int64_t index) const;
  Element at(const Expr& index, int lanes) const { return {builder_, buffer_, index, lanes}; }
  // The subgroup together: see Op::BlockRead.
  Expr block_read(const Expr& index, int lanes = 1) const { return kernel::block_read(buffer_, index, lanes); }
  void block_write(const Expr& index, const Expr& value) const;
  // The element before the operation, which is atomic for all threads.
  Expr atomic(AtomicOp op, const Expr& index, const Expr& value) const;
  const Memory& memory() const { return buffer_; }

 private:
  friend class Builder;
  Array(Builder* builder, Memory buffer) : builder_(builder), buffer_(std::move(buffer)) {}
  Builder* builder_;
  Memory buffer_;
};

// Builds a kernel statement by statement; what the callbacks emit goes into the body they stand for.
class Builder {
 public:
  explicit Builder(std::string_view name) { kernel_.name = name; }
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  // Parameters, in the order of the launch's arguments.
  Expr size(std::string_view name, int64_t lo, int64_t hi);  // int32
  Expr number(std::string_view name, DType dtype);
  // `storage`: as of BufferInfo.
  Array input(std::string_view name, DType dtype, const Expr& elements, DType storage = DType::Undefined) {
    return parameter(Space::Global, name, {dtype, 1}, elements, Access::Read, storage);
  }
  Array output(std::string_view name, DType dtype, const Expr& elements, DType storage = DType::Undefined) {
    return parameter(Space::Global, name, {dtype, 1}, elements, Access::Write, storage);
  }
  Array inout(std::string_view name, DType dtype, const Expr& elements, DType storage = DType::Undefined) {
    return parameter(Space::Global, name, {dtype, 1}, elements, Access::ReadWrite, storage);
  }
  // Float32 that is only read, four at a time: a place is a texel.
  Array image(std::string_view name, const Expr& texels) {
    return parameter(Space::Image, name, kTexel, texels, Access::Read);
  }

  // Thread axes; dimension 0 is the fastest.
  Expr group(int dimension, std::string_view name, const Expr& extent);
  Expr local(int dimension, std::string_view name, int extent);
  void round_each() { kernel_.rounds_each = true; }
  void subgroups(int size) { kernel_.subgroup_size = size; }

  Array shared(std::string_view name, DType dtype, int64_t elements);  // local memory
  Array registers(std::string_view name, ValueType type, int64_t elements);
  Expr let(std::string_view name, const Expr& value);

  void loop(std::string_view name, const Expr& begin, const Expr& end, FunctionRef<void(const Expr&)> body);
  void unroll(std::string_view name, int extent, FunctionRef<void(const Expr&)> body);
  void vectorize(std::string_view name, int lanes, FunctionRef<void(const Expr&)> body);
  void when(const Expr& condition, FunctionRef<void()> then_body);
  void when(const Expr& condition, FunctionRef<void()> then_body, FunctionRef<void()> else_body);
  void barrier() { emit(Barrier{}); }
  Expr shuffle(const Expr& value, const Expr& lane) { return collective(CollectiveOp::Shuffle, value, lane); }
  Expr subgroup_sum(const Expr& value) { return collective(CollectiveOp::Sum, value, 0); }
  Expr subgroup_max(const Expr& value) { return collective(CollectiveOp::Max, value, 0); }
  Expr multiply_matrices(const Expr& a, const Expr& b, const Expr& c);  // see MatrixMultiply

  // The kernel, verified. The builder is empty afterwards.
  Kernel finish();

 private:
  friend class Array;
  friend class Element;
  Array parameter(Space space, std::string_view name, ValueType type, const Expr& elements, Access access,
                  DType storage = DType::Undefined);
  Expr collective(CollectiveOp op, const Expr& value, const Expr& lane);
  void add_loop(std::string_view name, const Expr& begin, const Expr& end, LoopKind kind,
                FunctionRef<void(const Expr&)> body);
  template <class T>
  void emit(T what) {
    open_->push_back(make_stmt(std::move(what)));
  }
  Body nested(FunctionRef<void()> body);

  Kernel kernel_;
  Body* open_ = &kernel_.body;
};

}  // namespace neo::kernel
