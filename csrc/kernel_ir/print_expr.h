#pragma once

#include <functional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernel_ir/language.h"
#include "kernel_ir/stmt.h"

namespace neo::kernel {

// Writes expressions, and collects the functions that the language has not and that have to stand before the kernel.
class ExprPrinter {
 public:
  ExprPrinter(const Language& language, const Features& features) : language_(language), features_(features) {}

  std::string print(const Expr& e) { return print(e, 0); }
  // In brackets where it binds less than `precedence`.
  std::string print(const Expr& e, int precedence);
  std::string name(const Variable& v) { return unique(v.get(), v->name); }
  std::string name(const Memory& m) { return unique(m.get(), m->name); }
  // `buffer` + `index`, a pointer; or the element itself.
  std::string address(const Memory& m, const Expr& index);
  std::string element(const Memory& m, const Expr& index);
  // OpenCL C: the parameter behind an image, its first texel in what the driver was given.
  std::string first_texel(const Memory& m) { return unique(&m->elements, m->name + "_first"); }
  // The type of an element in memory.
  std::string element_type(const BufferInfo& m);
  std::string store(const Store& s);
  std::string atomic(const Atomic& s);
  std::string multiply_matrices(const MatrixMultiply& s);  // of CUDA
  // What a variable or register of this name is written as where it is more than its name.
  std::unordered_map<const void*, std::string> written_as;
  // CUDA: whether an index is a multiple of a number wherever it is printed; loads and stores of vectors are one
  // instruction then.
  std::function<bool(const Expr&, int64_t)> is_multiple;

  std::string type(ValueType type);
  // Types, functions and pragmas, in the order in which they are needed.
  std::string preamble() const;

 private:
  std::string literal(const Expr& e) const;
  std::string math(const Expr& e);
  std::string converted(const Expr& e);
  std::string block_read(const Expr& e);
  std::string to_tf32(const Expr& e);
  std::string dot4(const Expr& e);
  std::string texel(const Memory& m, const Expr& index);
  std::string unique(const void* key, const std::string& wanted);
  std::string helper(const std::string& name, const std::string& text);
  // A function over lanes: `body` gives r[i] from a[i], b[i], c[i].
  std::string lanewise(const std::string& name, ValueType result, const std::vector<ValueType>& operands,
                       const std::string& body);
  // Bytes that one instruction moves of a vector that begins at an index; 0: its elements come one by one.
  int64_t unit_bytes(const Memory& m, const Expr& index, ValueType type) const;
  std::string load_function(ValueType type, int64_t unit_bytes);
  std::string store_function(ValueType type, int64_t unit_bytes);
  // Memory in float16 or bfloat16, read and written as float32.
  std::string load_converted(const Memory& m, const Expr& index, int lanes);
  std::string store_converted(const Store& s);
  std::string convert_function(DType storage, bool loads, int lanes);
  std::string half_type(DType storage) const;

  const Language& language_;
  Features features_;
  std::unordered_map<const void*, std::string> names_;
  std::set<std::string> taken_;
  std::set<std::string> made_;
  std::vector<std::string> helpers_;
  std::set<std::string> extensions_;
};

}  // namespace neo::kernel
