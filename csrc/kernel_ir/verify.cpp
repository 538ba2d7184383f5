#include "kernel_ir/verify.h"

#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/check.h"
#include "kernel_ir/facts.h"

namespace neo::kernel {
namespace {

class Verifier {
 public:
  explicit Verifier(const Kernel& kernel)
      : kernel_(kernel), facts_(kernel, Facts::Effort::Deep), where_("kernel " + kernel.name) {}

  void run() {
    declarations();
    body(kernel_.body, true);
  }

 private:
  template <class... Args>
  void require(bool condition, const Args&... args) {
    if (!condition) [[unlikely]]
      fail(ErrorKind::Internal, where_, str(args...));
  }

  void declare(const Variable& v, bool uniform) {
    require(declared_.insert(v.get()).second, "a variable is declared once. Got ", v->name, " twice");
    scope_.insert(v.get());
    order_.push_back(v.get());
    if (!uniform) divergent_.insert(v.get());
  }

  void declare(const Memory& m) {
    require(buffers_.insert(m.get()).second, "a buffer is declared once. Got ", m->name, " twice");
    const int lanes = m->type.lanes;
    const bool is_image = m->space == Space::Image;
    require(m->space == Space::Register || is_image || lanes == 1, "only registers and images hold vectors. Got ",
            m->name, " of ", m->type.to_string());
    require(!is_image || (m->type == kTexel && m->access == Access::Read), "an image is texels of ", kTexel.to_string(),
            " that are only read. Got ", m->name, " of ", m->type.to_string());
    require(m->type.dtype != DType::Bool || m->space == Space::Register,
            "memory holds numbers, bools are uint8 there. Got ", m->name);
    const bool is_half = m->storage == DType::Float16 || m->storage == DType::BFloat16;
    require(!m->converts() || (is_half && m->space == Space::Global && m->type == kFloat),
            "global memory of float32 may be held in float16 or bfloat16. Got ", m->name, " of ", m->type.to_string(),
            " in ", name(m->stored()));
    if (m->space == Space::Global || is_image) return;
    const auto elements = m->elements.constant();
    require(elements && *elements > 0, "the size of ", name(m->space), " memory is a positive number. Got ",
            to_string(m->elements), " elements of ", m->name);
  }

  void declarations() {
    std::set<std::string> names;
    const auto name_once = [&](const std::string& n) {
      require(names.insert(n).second, "parameters have names of their own. Got ", n, " twice");
    };
    for (const Parameter& parameter : kernel_.parameters) {
      if (const auto* scalar = std::get_if<ScalarParameter>(&parameter)) {
        name_once(scalar->variable->name);
        declare(scalar->variable, true);
        require(scalar->lo <= scalar->hi, "a range is not empty. Got ", scalar->lo, " ... ", scalar->hi, " for ",
                scalar->variable->name);
      }
    }
    for (const Parameter& parameter : kernel_.parameters) {
      if (const auto* memory = std::get_if<Memory>(&parameter)) {
        name_once((*memory)->name);
        require((*memory)->space == Space::Global || (*memory)->space == Space::Image,
                "parameters are global memory or images. Got ", (*memory)->name);
        variables_known((*memory)->elements);
        declare(*memory);
      }
    }
    for (const Memory& m : kernel_.local_buffers) {
      require(m->space == Space::Local, "shared memory is local. Got ", m->name);
      declare(m);
    }
    for (const Axis& axis : kernel_.groups) {
      variables_known(axis.extent);
      if (axis.variable != nullptr) declare(axis.variable, true);
    }
    int64_t threads = 1;
    for (const Axis& axis : kernel_.locals) {
      const auto extent = axis.extent.constant();
      require(extent && *extent >= 1 && *extent <= 1024, "a group has 1 ... 1024 threads along an axis. Got ",
              to_string(axis.extent));
      threads *= *extent;
      if (axis.variable != nullptr) declare(axis.variable, *extent == 1);
    }
    require(threads <= 1024, "a group has at most 1024 threads. Got ", threads);
    const int size = kernel_.subgroup_size;
    require(size == 0 || size == 8 || size == 16 || size == 32, "a subgroup has 8, 16 or 32 threads. Got ", size);
    require(size == 0 || *kernel_.locals[0].extent.constant() % size == 0, "subgroups fill the first local axis. Got ",
            size, " of ", *kernel_.locals[0].extent.constant());
  }

  void variables_known(const Expr& e) {
    walk(e, [&](const Expr& part) {
      if (part->op == Op::Variable) {
        require(scope_.contains(part->variable.get()), "a variable is declared before its use. Got ",
                part->variable->name);
      }
      return true;
    });
  }

  // Every thread of a group has the same value.
  bool uniform(const Expr& e) const {
    bool same = true;
    walk(e, [&](const Expr& part) {
      if (part->op == Op::Variable && divergent_.contains(part->variable.get())) same = false;
      if (part->op == Op::BlockRead) same = false;
      if (part->op == Op::Load && part->buffer->access != Access::Read) same = false;
      return same;
    });
    return same;
  }

  // The elements [index, index + lanes) lie in the buffer, and computing the index does not leave 32 bits.
  void access(const Memory& m, const Expr& index, const Expr& lanes, std::string_view what) {
    require(buffers_.contains(m.get()), "a buffer is declared before its use. Got ", m->name);
    require(is_integer(index->type.dtype) && index->type.lanes == 1, "an index is an integer. Got ",
            index->type.to_string(), " for ", m->name);
    require(facts_.nonnegative(index), what, " must start inside the buffer. Got ", m->name, "[", to_string(index),
            "], not proven >= 0");
    require(facts_.nonnegative(m->elements - index - lanes), what, " must end inside the buffer. Got ", m->name, "[",
            to_string(index), "] and ", to_string(lanes), " elements, not proven within ", to_string(m->elements));
    fits(index, index);
  }

  // No part of an int32 index overflows. The whole lies in a buffer of at most kMaxBufferElements, so a part between 0
  // and the whole, or a little more, does not.
  void fits(const Expr& part, const Expr& whole) {
    if (const auto found = unproven_.find(part->variable.get()); found != unproven_.end()) {
      between(part, whole);
      return fits(found->second, found->second);  // which lies between 0 and the whole now
    }
    if (part->type.dtype != DType::Int32 || part->type.lanes != 1 || part->operands.empty()) return;
    if (part->op == Op::Load || part->op == Op::BlockRead) return;  // its own access is checked
    if (!is_arithmetic(part)) {
      for (const Expr& operand : part->operands) bounded(operand);
      return;
    }
    if (!part.same(whole) && !facts_.range(part).inside(INT32_MIN, INT32_MAX)) {
      between(part, whole);
    }
    for (const Expr& operand : part->operands) fits(operand, whole);
  }

  void between(const Expr& part, const Expr& whole) {
    require(facts_.nonnegative(part) && facts_.nonnegative(whole + (INT32_MAX - kMaxBufferElements) - part),
            "an index is computed within 32 bits. Got ", to_string(part), " in ", to_string(whole));
  }

  // The same for what is made of sizes, axes and loops alone and lies in no buffer. The contents of memory are data:
  // nothing is known of them.
  void bounded(const Expr& e) {
    if (e->type.dtype != DType::Int32 && e->type.dtype != DType::Bool) return;
    if (e->op == Op::Load || e->op == Op::BlockRead) return;
    if (const auto found = unproven_.find(e->variable.get()); found != unproven_.end()) return bounded(found->second);
    for (const Expr& operand : e->operands) bounded(operand);
    if (!is_arithmetic(e) || e->type != kInt || is_data(e)) return;
    require(facts_.range(e).inside(INT32_MIN, INT32_MAX) ||
                (facts_.nonnegative(e - INT32_MIN) && facts_.nonnegative(INT32_MAX - e)),
            "an index is computed within 32 bits. Got ", to_string(e));
  }

  static bool is_arithmetic(const Expr& e) {
    return e->op == Op::Add || e->op == Op::Sub || e->op == Op::Mul || e->op == Op::Neg;
  }

  bool is_data(const Expr& e) const {
    bool found = false;
    walk(e, [&](const Expr& part) {
      found = found || part->op == Op::Load || part->op == Op::BlockRead;
      found = found || (part->op == Op::Variable && data_.contains(part->variable.get()));
      return !found;
    });
    return found;
  }

  void expression(const Expr& e) {
    if (e->op == Op::Select && e->operands[0]->type.lanes == 1) {  // each branch under its condition
      expression(e->operands[0]);
      for (const int branch : {1, 2}) {
        const Facts::Mark mark = facts_.mark();
        facts_.assume(e->operands[0], branch == 1);
        expression(e->operands[branch]);
        facts_.rewind(mark);
      }
      return;
    }
    if (e->op == Op::And || e->op == Op::Or) {  // the second only where the first does not decide
      expression(e->operands[0]);
      const Facts::Mark mark = facts_.mark();
      if (e->type.lanes == 1) facts_.assume(e->operands[0], e->op == Op::And);
      expression(e->operands[1]);
      return facts_.rewind(mark);
    }
    for (const Expr& operand : e->operands) expression(operand);
    switch (e->op) {
      case Op::Variable:
        return require(scope_.contains(e->variable.get()), "a variable is declared before its use. Got ",
                       e->variable->name);
      case Op::Load: {
        require(e->buffer->access != Access::Write, "a buffer that is only written is not read. Got ", e->buffer->name);
        return access(e->buffer, e->operands[0], e->type.lanes / e->buffer->type.lanes, "a read");
      }
      case Op::BlockRead:
        require(e->buffer->space == Space::Global && e->buffer->access == Access::Read,
                "a subgroup reads blocks of global memory that is only read. Got ", e->buffer->name);
        collective("a block read", e->operands[0]);
        return access(e->buffer, e->operands[0], e->type.lanes * kernel_.subgroup_size, "a block read");
      case Op::Div:
      case Op::Mod:
        if (is_integer(e->type.dtype) && e->type.lanes == 1) {
          require(facts_.decide(e->operands[1] != integer(0, e->type)) == true, "a divisor is not zero. Got ",
                  to_string(e));
        }
        return;
      default:
        return;
    }
  }

  void collective(std::string_view what, const Expr& index) {
    require(kernel_.subgroup_size > 0, what, " needs subgroups. Got a kernel without");
    require(uniform_here_, what, " must be reached by all threads of a group. Got one under a condition that differs");
    require(subgroup_uniform(index), what, " starts at one place for the whole subgroup. Got ", to_string(index));
  }

  // Every thread of a subgroup has the same value: the first local axis enters only divided by the subgroup's size.
  bool subgroup_uniform(const Expr& e) const {
    const Variable& first = kernel_.locals[0].variable;
    bool same = true;
    walk(e, [&](const Expr& part) {
      if (part->op == Op::Div && part->operands[0]->op == Op::Variable && part->operands[0]->variable == first) {
        const auto divisor = part->operands[1].constant();
        if (kernel_.subgroup_size > 0 && divisor && *divisor % kernel_.subgroup_size == 0) return false;
      }
      if (part->op == Op::Variable && divergent_.contains(part->variable.get()) && !is_other_local(part->variable)) {
        same = same && subgroup_uniform_.contains(part->variable.get());
      }
      if (part->op == Op::Load && part->buffer->access != Access::Read) same = false;
      if (part->op == Op::BlockRead) same = false;
      return same;
    });
    return same;
  }

  bool is_other_local(const Variable& v) const {
    return v == kernel_.locals[1].variable || v == kernel_.locals[2].variable;
  }

  void body(const Body& statements, bool top = false) {
    const Facts::Mark mark = facts_.mark();
    const size_t outside = order_.size();
    for (const auto& stmt : statements) std::visit([&](const auto& s) { check(s); }, stmt->what);
    if (top) return;
    facts_.rewind(mark);
    for (; order_.size() > outside; order_.pop_back()) scope_.erase(order_.back());
  }

  void check(const Let& s) {
    expression(s.value);
    require(s.variable->type == s.value->type, "a variable has the type of its value. Got ",
            s.variable->type.to_string(), " and ", s.value->type.to_string(), " for ", s.variable->name);
    if (s.value->type == kInt && is_arithmetic(s.value) && !is_data(s.value) &&
        !facts_.range(s.value).inside(INT32_MIN, INT32_MAX)) {
      unproven_.emplace(s.variable.get(), s.value);  // what uses it tells
    } else {
      bounded(s.value);
    }
    if (is_data(s.value)) data_.insert(s.variable.get());
    if (subgroup_uniform(s.value)) subgroup_uniform_.insert(s.variable.get());
    declare(s.variable, uniform(s.value));
    facts_.bind_let(s.variable, s.value);
  }

  void check(const Declare& s) {
    require(s.buffer->space == Space::Register, "only registers are declared in a body. Got ", s.buffer->name);
    declare(s.buffer);
  }

  void check(const Store& s) {
    expression(s.index);
    expression(s.value);
    require(s.buffer->access != Access::Read, "a buffer that is only read is not written. Got ", s.buffer->name);
    require(s.value->type.dtype == s.buffer->type.dtype && s.value->type.lanes % s.buffer->type.lanes == 0,
            "a value has the type of its buffer. Got ", s.value->type.to_string(), " for ", s.buffer->name, " of ",
            s.buffer->type.to_string());
    int count = s.value->type.lanes / s.buffer->type.lanes;
    require(count == 1 || s.buffer->type.lanes == 1, "a buffer of vectors is written one by one. Got ", s.buffer->name);
    if (s.block) {
      require(s.buffer->space == Space::Global, "a subgroup writes blocks of global memory. Got ", s.buffer->name);
      collective("a block write", s.index);
      count *= kernel_.subgroup_size;
    }
    access(s.buffer, s.index, count, "a write");
  }

  void check(const Loop& s) {
    expression(s.begin);
    expression(s.end);
    require(s.variable->type == kInt && s.begin->type == kInt && s.end->type == kInt, "a loop counts in int32. Got ",
            s.variable->type.to_string(), " from ", s.begin->type.to_string());
    bounded(s.begin);
    bounded(s.end);
    const bool same = uniform(s.begin) && uniform(s.end);
    if (s.kind != LoopKind::Serial) {
      const auto begin = s.begin.constant(), end = s.end.constant();
      require(begin && end && *end - *begin <= 256, "an unrolled loop has a constant number of iterations. Got ",
              to_string(s.begin), " ... ", to_string(s.end));
      const int64_t lanes = *end - *begin;
      require(s.kind == LoopKind::Unroll || (*begin == 0 && (lanes == 2 || lanes == 4 || lanes == 8 || lanes == 16)),
              "a vector has 2, 4, 8 or 16 lanes. Got ", lanes);
      walk(s.body, [&](const Stmt& inner) {
        require(s.kind == LoopKind::Unroll || !std::holds_alternative<Barrier>(inner.what),
                "lanes do not wait for one another. Got a barrier in ", s.variable->name);
      });
    }
    declare(s.variable, same);
    const bool outside = uniform_here_;
    const Facts::Mark mark = facts_.mark();
    uniform_here_ = uniform_here_ && same;
    facts_.bind_loop(s.variable, s.begin, s.end);
    body(s.body);
    facts_.rewind(mark);
    scope_.erase(s.variable.get());
    uniform_here_ = outside;
  }

  void check(const If& s) {
    expression(s.condition);
    bounded(s.condition);
    require(s.condition->type == kBool, "a condition is a bool. Got ", s.condition->type.to_string());
    const bool outside = uniform_here_;
    uniform_here_ = uniform_here_ && uniform(s.condition);
    for (const bool truth : {true, false}) {
      const Facts::Mark mark = facts_.mark();
      facts_.assume(s.condition, truth);
      body(truth ? s.then_body : s.else_body);
      facts_.rewind(mark);
    }
    uniform_here_ = outside;
  }

  void check(const Barrier&) {
    require(uniform_here_,
            "a barrier must be reached by all threads of a group. Got one under a condition that differs");
  }

  void check(const Atomic& s) {
    expression(s.index);
    expression(s.value);
    const DType dtype = s.buffer->type.dtype;
    require(s.buffer->space != Space::Register && s.buffer->access == Access::ReadWrite,
            "atomics need memory that threads share and that is read and written. Got ", s.buffer->name);
    require(dtype == DType::Int32 || dtype == DType::UInt32 || (dtype == DType::Float32 && s.op == AtomicOp::Add),
            "atomics work on int32 and uint32, additions on float32 too. Got ", name(dtype));
    require(s.value->type == s.buffer->type, "a value has the type of its buffer. Got ", s.value->type.to_string());
    require(!s.buffer->converts(), "atomics work on memory that is held as it is computed with. Got ", s.buffer->name);
    access(s.buffer, s.index, 1, "an atomic access");
    if (s.old == nullptr) return;
    declare(s.old, false);
    data_.insert(s.old.get());
  }

  void check(const Collective& s) {
    expression(s.value);
    if (s.lane.defined()) expression(s.lane);
    collective("a collective", 0);
    require(s.value->type.lanes == 1 && s.result->type == s.value->type && item_bytes(s.value->type.dtype) == 4,
            "subgroups exchange scalars of 32 bits. Got ", s.value->type.to_string());
    if (s.op == CollectiveOp::Shuffle) {
      require(facts_.nonnegative(s.lane) && facts_.decide(s.lane < kernel_.subgroup_size) == true,
              "a shuffle names a place of the subgroup. Got ", to_string(s.lane));
    }
    declare(s.result, false);
    data_.insert(s.result.get());
    const bool same = s.op != CollectiveOp::Shuffle || uniform(s.lane);
    if (same) subgroup_uniform_.insert(s.result.get());
  }

  void check(const MatrixMultiply& s) {
    for (const Expr* e : {&s.a, &s.b, &s.c}) expression(*e);
    collective("a product of matrices", 0);
    require(kernel_.subgroup_size == 32, "a product of matrices needs subgroups of 32 threads. Got ",
            kernel_.subgroup_size);
    const ValueType four = kFloat.with_lanes(4);
    require(s.a->type == four && s.b->type == kFloat.with_lanes(2) && s.c->type == four && s.result->type == four,
            "a thread holds float32x4 of the first matrix and of the result, float32x2 of the second. Got ",
            s.a->type.to_string(), ", ", s.c->type.to_string(), ", ", s.b->type.to_string());
    declare(s.result, false);
    data_.insert(s.result.get());
  }

  const Kernel& kernel_;
  Facts facts_;
  std::string where_;
  std::unordered_set<const VariableInfo*> declared_;
  std::unordered_set<const VariableInfo*> scope_;
  std::vector<const VariableInfo*> order_;                  // in which they were declared
  std::unordered_map<const VariableInfo*, Expr> unproven_;  // numbers that may leave 32 bits, as far as is known
  std::unordered_set<const VariableInfo*> data_;            // depend on what memory holds
  std::unordered_set<const BufferInfo*> buffers_;
  std::unordered_set<const VariableInfo*> divergent_;         // differ between threads of a group
  std::unordered_set<const VariableInfo*> subgroup_uniform_;  // divergent, but the same within a subgroup
  bool uniform_here_ = true;
};

}  // namespace

void verify(const Kernel& kernel) {
  Verifier(kernel).run();
}

}  // namespace neo::kernel
