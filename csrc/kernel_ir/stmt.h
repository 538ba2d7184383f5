#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/function_ref.h"
#include "kernel_ir/expr.h"

namespace neo::kernel {

enum class Space : uint8_t {
  Global,    // memory of the device, given with every launch
  Image,     // the same, read through the texture path: its elements are texels of float32x4
  Local,     // of one group
  Register,  // of one thread
};
std::string_view name(Space space);

enum class Access : uint8_t { Read, Write, ReadWrite };

struct BufferInfo {
  std::string name;
  ValueType type;  // of an element; only registers and images hold vectors
  Space space = Space::Global;
  Access access = Access::ReadWrite;
  Expr elements;  // of parameters a formula of the kernel's sizes, else a number
  // Of a parameter's elements in memory where that is not their type: float16 or bfloat16 that is read and written as
  // float32. Float32 says that with_storage() leaves the parameter as it is.
  DType storage = DType::Undefined;

  DType stored() const { return storage == DType::Undefined ? type.dtype : storage; }
  int64_t bytes() const { return item_bytes(stored()) * type.lanes; }  // of an element in memory
  bool converts() const { return stored() != type.dtype; }
};
using Memory = std::shared_ptr<const BufferInfo>;

struct Stmt;
using Body = std::vector<std::shared_ptr<const Stmt>>;

struct Let {
  Variable variable;
  Expr value;
};
struct Declare {  // registers, for the rest of the body
  Memory buffer;
};
struct Store {
  Memory buffer;
  Expr index;
  Expr value;          // its lanes go to consecutive elements
  bool block = false;  // as BlockRead reads
};
enum class LoopKind : uint8_t {
  Serial,
  Unroll,  // a constant number of iterations, written out
  Vector,  // the same, in lanes; the iterations are independent
};
struct Loop {
  Variable variable;
  Expr begin;
  Expr end;
  LoopKind kind = LoopKind::Serial;
  Body body;
};
struct If {
  Expr condition;
  Body then_body;
  Body else_body;
};
struct Barrier {};  // all threads of the group; local and global memory
enum class AtomicOp : uint8_t { Add, Min, Max, Or };
struct Atomic {
  AtomicOp op = AtomicOp::Add;
  Memory buffer;
  Expr index;
  Expr value;
  Variable old;  // null: not wanted
};
// An operation of all threads of a subgroup together.
enum class CollectiveOp : uint8_t {
  Shuffle,  // `value` of the thread at place `lane` of the same subgroup
  Sum,      // of all values, in the order of the places' binary tree
  Max,
};
struct Collective {
  CollectiveOp op = CollectiveOp::Shuffle;
  Variable result;
  Expr value;
  Expr lane;  // Shuffle only
};

// 32 threads make a 16 x 8 block of float32: c + a b, a of 16 x 8 and b of 8 x 8, whose elements are read as ToTf32
// gives them. Thread t of the subgroup, with g = t / 4 and i = t % 4, holds
//   a (4 lanes): (g, i), (g + 8, i), (g, i + 4), (g + 8, i + 4);  b (2 lanes): (i, g), (i + 4, g);
//   c and the result (4 lanes): (g, 2 i), (g, 2 i + 1), (g + 8, 2 i), (g + 8, 2 i + 1).
struct MatrixMultiply {
  Variable result;
  Expr a;
  Expr b;
  Expr c;
};

struct Stmt {
  std::variant<Let, Declare, Store, Loop, If, Barrier, Atomic, Collective, MatrixMultiply> what;
};

template <class T>
std::shared_ptr<const Stmt> make_stmt(T what) {
  return std::make_shared<const Stmt>(Stmt{std::move(what)});
}

// A number given with every launch: a size (int32, a range) or a constant of the computation.
struct ScalarParameter {
  Variable variable;
  int64_t lo = 0;
  int64_t hi = 0;
};
using Parameter = std::variant<Memory, ScalarParameter>;

struct Axis {
  Variable variable;
  Expr extent = 1;  // groups: a formula of the sizes; threads of a group: a number
};

struct Kernel {
  std::string name;
  std::vector<Parameter> parameters;
  std::array<Axis, 3> groups;  // no variable: one group
  std::array<Axis, 3> locals;
  bool rounds_each = false;  // every float operation is rounded by itself; else a product and a sum may round once
  int subgroup_size = 0;     // 0: no subgroups. They lie along the first local axis, whose extent it divides.
  std::vector<Memory> local_buffers;
  Body body;
  bool is_verified = false;  // as it is now: what changes a kernel leaves it false

  int threads() const;          // of one group
  int64_t local_bytes() const;  // of one group
};

// Elements of one buffer at most: a little less than 2^31, for an index may pass through a slightly larger number.
inline constexpr int64_t kMaxBufferElements = (int64_t{1} << 31) - (1 << 20);

// The kernel with its parameters of float32 held in float16 or bfloat16, and named so; sums stay float32. Images, and
// parameters that say their storage, stay as they are.
Kernel with_storage(const Kernel& kernel, DType storage);

// The extents of one launch, for given sizes.
struct Geometry {
  std::array<int64_t, 3> groups{1, 1, 1};
  std::array<int64_t, 3> locals{1, 1, 1};
  std::vector<int64_t> elements;  // by parameter; -1: a number
};
// Sizes by name. A size outside its range or a buffer beyond kMaxBufferElements is a Shape error.
Geometry geometry(const Kernel& kernel, const std::map<std::string, int64_t, std::less<>>& sizes);

// A copy of statements whose expressions went through `change`; the structure stays.
Body map_expressions(const Body& body, FunctionRef<Expr(const Expr&)> change);
// Calls visit on every statement, the outer first.
void walk(const Body& body, FunctionRef<void(const Stmt&)> visit);
// Calls visit on every expression that a statement itself holds, not on those of its bodies.
void each_expression(const Stmt& stmt, FunctionRef<void(const Expr&)> visit);
bool has_barrier(const Body& body);

}  // namespace neo::kernel
