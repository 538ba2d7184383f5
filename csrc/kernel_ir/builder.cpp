#include "kernel_ir/builder.h"

#include "base/check.h"
#include "kernel_ir/verify.h"

namespace neo::kernel {
namespace {

// A literal in the type of the buffer's elements.
Expr as_element(const Expr& value, ValueType type, int lanes) {
  const bool literal = value->op == Op::Integer || value->op == Op::Real;
  if (!literal) return value->type.lanes == 1 && lanes > 1 ? broadcast(value, lanes) : value;
  const double number = value->op == Op::Integer ? static_cast<double>(value->integer) : value->real;
  return is_float(type.dtype) ? real(number, type.with_lanes(lanes))
                              : (value->op == Op::Integer ? integer(value->integer, type.with_lanes(lanes)) : value);
}

}  // namespace

const Element& Element::operator=(const Expr& value) const {
  const int lanes = buffer_->type.lanes * lanes_;
  builder_->emit(Store{buffer_, index_, as_element(value, buffer_->type, lanes)});
  return *this;
}

Element Array::operator[](int64_t index) const {
  return at(index, 1);
}

void Array::block_write(const Expr& index, const Expr& value) const {
  builder_->emit(Store{buffer_, index, value, true});
}

Expr Array::atomic(AtomicOp op, const Expr& index, const Expr& value) const {
  const Variable old = make_variable("old", buffer_->type);
  builder_->emit(Atomic{op, buffer_, index, as_element(value, buffer_->type, 1), old});
  return variable(old);
}

Expr Builder::size(std::string_view name, int64_t lo, int64_t hi) {
  const Variable v = make_variable(name, kInt);
  kernel_.parameters.emplace_back(ScalarParameter{v, lo, hi});
  return variable(v);
}

Expr Builder::number(std::string_view name, DType dtype) {
  const Variable v = make_variable(name, {dtype, 1});
  const bool whole = is_integer(dtype);
  kernel_.parameters.emplace_back(ScalarParameter{v, whole ? integer_min(dtype) : 0, whole ? integer_max(dtype) : 0});
  return variable(v);
}

Array Builder::parameter(Space space, std::string_view name, ValueType type, const Expr& elements, Access access,
                         DType storage) {
  auto memory =
      std::make_shared<const BufferInfo>(BufferInfo{std::string(name), type, space, access, elements, storage});
  kernel_.parameters.emplace_back(memory);
  return {this, std::move(memory)};
}

Expr Builder::group(int dimension, std::string_view name, const Expr& extent) {
  Axis& axis = kernel_.groups.at(dimension);
  axis = {make_variable(name, kInt), extent};
  return variable(axis.variable);
}

Expr Builder::local(int dimension, std::string_view name, int extent) {
  Axis& axis = kernel_.locals.at(dimension);
  axis = {make_variable(name, kInt), extent};
  return variable(axis.variable);
}

Array Builder::shared(std::string_view name, DType dtype, int64_t elements) {
  auto memory = std::make_shared<const BufferInfo>(
      BufferInfo{std::string(name), {dtype, 1}, Space::Local, Access::ReadWrite, integer(elements)});
  kernel_.local_buffers.push_back(memory);
  return {this, std::move(memory)};
}

Array Builder::registers(std::string_view name, ValueType type, int64_t elements) {
  auto memory = std::make_shared<const BufferInfo>(
      BufferInfo{std::string(name), type, Space::Register, Access::ReadWrite, integer(elements)});
  emit(Declare{memory});
  return {this, std::move(memory)};
}

Expr Builder::let(std::string_view name, const Expr& value) {
  const Variable v = make_variable(name, value->type);
  emit(Let{v, value});
  return variable(v);
}

Body Builder::nested(FunctionRef<void()> body) {
  Body made;
  Body* outer = open_;
  open_ = &made;
  body();
  open_ = outer;
  return made;
}

void Builder::add_loop(std::string_view name, const Expr& begin, const Expr& end, LoopKind kind,
                       FunctionRef<void(const Expr&)> body) {
  const Variable v = make_variable(name, kInt);
  Body inside = nested([&] { body(variable(v)); });
  emit(Loop{v, begin, end, kind, std::move(inside)});
}

void Builder::loop(std::string_view name, const Expr& begin, const Expr& end, FunctionRef<void(const Expr&)> body) {
  add_loop(name, begin, end, LoopKind::Serial, body);
}

void Builder::unroll(std::string_view name, int extent, FunctionRef<void(const Expr&)> body) {
  add_loop(name, 0, extent, LoopKind::Unroll, body);
}

void Builder::vectorize(std::string_view name, int lanes, FunctionRef<void(const Expr&)> body) {
  add_loop(name, 0, lanes, LoopKind::Vector, body);
}

void Builder::when(const Expr& condition, FunctionRef<void()> then_body) {
  emit(If{condition, nested(then_body), {}});
}

void Builder::when(const Expr& condition, FunctionRef<void()> then_body, FunctionRef<void()> else_body) {
  Body yes = nested(then_body);
  Body no = nested(else_body);
  emit(If{condition, std::move(yes), std::move(no)});
}

Expr Builder::collective(CollectiveOp op, const Expr& value, const Expr& lane) {
  const Variable result = make_variable("shared_value", value->type);
  emit(Collective{op, result, value, lane});
  return variable(result);
}

Expr Builder::multiply_matrices(const Expr& a, const Expr& b, const Expr& c) {
  const Variable result = make_variable("product", c->type);
  emit(MatrixMultiply{result, a, b, c});
  return variable(result);
}

Kernel Builder::finish() {
  Kernel done = std::move(kernel_);
  kernel_ = {};
  verify(done);
  done.is_verified = true;
  return done;
}

}  // namespace neo::kernel
