#include "kernel_ir/print.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "base/check.h"
#include "base/function_ref.h"
#include "kernel_ir/facts.h"
#include "kernel_ir/passes.h"
#include "kernel_ir/print_expr.h"
#include "kernel_ir/verify.h"

namespace neo::kernel {
namespace {

// Whether a body names a variable or a buffer.
bool mentions(const Stmt& stmt, const void* what) {
  bool found = false;
  const auto in_expression = [&](const Expr& e) {
    walk(e, [&](const Expr& part) {
      found = found || part->variable.get() == what || part->buffer.get() == what;
      return !found;
    });
  };
  const auto visit = [&](const Stmt& s) {
    each_expression(s, in_expression);
    if (const auto* store = std::get_if<Store>(&s.what)) found = found || store->buffer.get() == what;
    if (const auto* atomic = std::get_if<Atomic>(&s.what)) found = found || atomic->buffer.get() == what;
  };
  visit(stmt);
  if (const auto* loop = std::get_if<Loop>(&stmt.what)) walk(loop->body, visit);
  if (const auto* branch = std::get_if<If>(&stmt.what)) {
    walk(branch->then_body, visit);
    walk(branch->else_body, visit);
  }
  return found;
}

class Printer {
 public:
  Printer(const Kernel& kernel, const Language& language, const Features& features)
      : kernel_(kernel), language_(language), features_(features), exprs_(language, features) {
    if (language.kind != LanguageKind::CudaCpp) return;
    facts_.emplace(kernel, Facts::Effort::Quick);
    exprs_.is_multiple = [this](const Expr& e, int64_t factor) { return facts_->is_multiple(e, factor); };
  }

  std::string print() {
    for (const Parameter& p : kernel_.parameters) {  // parameters keep their names
      std::visit([&](const auto& parameter) { name_of(parameter); }, p);
    }
    const std::string head = language_.kind == LanguageKind::PlainC ? plain_head() : device_head();
    indent_ = 1;
    if (language_.kind == LanguageKind::PlainC) {
      plain_groups();
    } else {
      device_body();
    }
    const bool contracts = language_.kind == LanguageKind::OpenClC && kernel_.rounds_each;
    return str(exprs_.preamble(), contracts ? "#pragma OPENCL FP_CONTRACT OFF\n" : "", head, " {\n", out_, "}\n");
  }

 private:
  std::string name_of(const Memory& m) { return exprs_.name(m); }
  std::string name_of(const ScalarParameter& s) { return exprs_.name(s.variable); }

  void line(const std::string& text) { out_.append(2 * static_cast<size_t>(indent_), ' ').append(text).append("\n"); }
  void open(const std::string& text) {
    line(text + " {");
    ++indent_;
  }
  void close(const std::string& text = "}") {
    --indent_;
    line(text);
  }

  std::string pointer_type(const Memory& m) {
    return str(language_.global, m->access == Access::Read ? "const " : "", exprs_.element_type(*m), " *");
  }

  std::string argument(const Memory& m) {
    if (m->space != Space::Image) return str(pointer_type(m), language_.restricted, exprs_.name(m));
    const std::string image = str(language_.image, exprs_.name(m));
    return language_.has_vectors ? str(image, ", const int ", exprs_.first_texel(m)) : image;
  }

  std::string device_head() {
    std::string arguments;
    for (const Parameter& p : kernel_.parameters) {
      if (!arguments.empty()) arguments += ", ";
      if (const auto* m = std::get_if<Memory>(&p)) {
        arguments += argument(*m);
      } else {
        const Variable& v = std::get<ScalarParameter>(p).variable;
        arguments += str("const ", exprs_.type(v->type), " ", exprs_.name(v));
      }
    }
    const auto extent = [&](int i) { return *kernel_.locals[i].extent.constant(); };
    std::string bounds;
    if (language_.kind == LanguageKind::CudaCpp) {
      bounds = str(" __launch_bounds__(", kernel_.threads(), ")");
    } else {
      bounds = str(" __attribute__((reqd_work_group_size(", extent(0), ", ", extent(1), ", ", extent(2), ")))");
      if (kernel_.subgroup_size > 0 && features_.subgroups == Features::Subgroups::Intel) {
        bounds += str(" __attribute__((intel_reqd_sub_group_size(", kernel_.subgroup_size, ")))");
      }
    }
    return str(language_.kernel, bounds, " void ", entry_name(kernel_, language_.kind), "(", arguments, ")");
  }

  std::string array(const Memory& m) {
    return str(exprs_.type(m->type), " ", exprs_.name(m), "[", *m->elements.constant(), "];");
  }

  void device_body() {
    for (const Memory& m : kernel_.local_buffers) line(str(language_.local, array(m)));
    group_axes();
    for (int i = 0; i < 3; ++i) axis(kernel_.locals[i], language_.local_id[i]);
    body(kernel_.body);
  }

  // CUDA takes 65,535 groups at most along the second and the third axis: a launch of more has all its groups along the
  // first one.
  void group_axes() {
    const auto fits = [](const Axis& a) {
      return a.variable == nullptr || a.extent.constant().value_or(65536) < 65536;
    };
    if (language_.kind != LanguageKind::CudaCpp || (fits(kernel_.groups[1]) && fits(kernel_.groups[2]))) {
      for (int i = 0; i < 3; ++i) axis(kernel_.groups[i], language_.group_id[i]);
      return;
    }
    std::string extents[2];
    for (int i = 0; i < 2; ++i) extents[i] = str("(unsigned int)(", exprs_.print(kernel_.groups[i].extent), ")");
    line(str("const bool folded = gridDim.x != ", extents[0], ";"));
    const std::string numbers[] = {str("blockIdx.x % ", extents[0]),
                                   str("blockIdx.x / ", extents[0], " % ", extents[1]),
                                   str("blockIdx.x / ", extents[0], " / ", extents[1])};
    for (int i = 0; i < 3; ++i) {
      axis(kernel_.groups[i], str("folded ? (int)(", numbers[i], ") : ", language_.group_id[i]));
    }
  }

  void axis(const Axis& a, std::string_view id) {
    if (a.variable == nullptr || !used(a.variable)) return;
    line(str("const int ", exprs_.name(a.variable), " = ", id, ";"));
  }

  bool used(const Variable& v) const {
    for (const auto& stmt : kernel_.body) {
      if (mentions(*stmt, v.get())) return true;
    }
    return false;
  }

  void body(const Body& statements) {
    std::optional<Facts::Mark> mark;
    if (facts_) mark = facts_->mark();
    for (const auto& stmt : statements) std::visit([&](const auto& s) { statement(s); }, stmt->what);
    if (facts_) facts_->rewind(*mark);
  }

  // A variable's definition, or an assignment where it is an array over threads.
  void define(const Variable& v, const std::string& value) {
    const bool spread = exprs_.written_as.contains(v.get());
    line(str(spread ? "" : str("const ", exprs_.type(v->type), " "), exprs_.name(v), " = ", value, ";"));
  }

  void statement(const Let& s) {
    const std::string value = exprs_.print(s.value);
    define(s.variable, value);
    if (facts_) facts_->bind_let(s.variable, s.value);
  }
  void statement(const Declare& s) {
    if (exprs_.written_as.contains(s.buffer.get())) return;
    line(s.buffer->elements.is(1) ? str(exprs_.type(s.buffer->type), " ", exprs_.name(s.buffer), ";")
                                  : array(s.buffer));
  }
  void statement(const Store& s) { line(exprs_.store(s)); }
  void statement(const Loop& s) {
    open(loop_head(s));
    std::optional<Facts::Mark> mark;
    if (facts_) {
      mark = facts_->mark();
      facts_->bind_loop(s.variable, s.begin, s.end);
    }
    body(s.body);
    if (facts_) facts_->rewind(*mark);
    close();
  }
  std::string loop_head(const Loop& s) {
    constexpr int kAboveLess = 10;  // C's precedence of shifts
    const std::string begin = exprs_.print(s.begin), end = exprs_.print(s.end, kAboveLess);
    const std::string v = exprs_.name(s.variable);
    return str("for (int ", v, " = ", begin, "; ", v, " < ", end, "; ++", v, ")");
  }
  void statement(const If& s) {
    open(str("if (", exprs_.print(s.condition), ")"));
    body(s.then_body);
    if (!s.else_body.empty()) {
      --indent_;
      open("} else");
      body(s.else_body);
    }
    close();
  }
  void statement(const Barrier&) { line(std::string(language_.barrier)); }
  void statement(const Atomic& s) {
    const std::string call = exprs_.atomic(s);
    s.old == nullptr || !wanted(s.old) ? line(call + ";") : define(s.old, call);
  }
  bool wanted(const Variable& v) const { return used(v); }
  void statement(const Collective& s) {
    NEO_ASSERT(s.op == CollectiveOp::Shuffle, "in kernel ", kernel_.name);
    const std::string value = exprs_.print(s.value), from = exprs_.print(s.lane);
    if (language_.kind == LanguageKind::CudaCpp) {
      define(s.result, str("__shfl_sync(0xffffffffu, ", value, ", ", from, ", ", kernel_.subgroup_size, ")"));
    } else {
      const bool intel = features_.subgroups == Features::Subgroups::Intel;
      define(s.result, str(intel ? "intel_sub_group_shuffle(" : "sub_group_shuffle(", value, ", ", from, ")"));
    }
  }

  void statement(const MatrixMultiply& s) { define(s.result, exprs_.multiply_matrices(s)); }

  // Plain C: the groups are loops. The code between two barriers is a loop over the threads of the group; a variable
  // that is used beyond the one where it is set is an array over the threads. The verifier's rule that barriers stand
  // in uniform control flow makes the loops and conditions around barriers those of the whole group.
  std::string plain_head() { return str("void ", kernel_.name, "(void *const *args)"); }

  void plain_groups() {
    int number = 0;
    for (const Parameter& p : kernel_.parameters) {
      if (const auto* m = std::get_if<Memory>(&p)) {
        line(str(pointer_type(*m), exprs_.name(*m), " = args[", number, "];"));
      } else {
        const Variable& v = std::get<ScalarParameter>(p).variable;
        const std::string type = exprs_.type(v->type);
        line(str("const ", type, " ", exprs_.name(v), " = *(const ", type, " *)args[", number, "];"));
      }
      ++number;
    }
    int opened = 0;
    for (int i = 2; i >= 0; --i) {
      const Axis& a = kernel_.groups[i];
      if (a.variable == nullptr) continue;
      const std::string v = exprs_.name(a.variable);
      open(str("for (int ", v, " = 0; ", v, " < ", exprs_.print(a.extent), "; ++", v, ")"));
      ++opened;
    }
    for (const Memory& m : kernel_.local_buffers) {
      line(array(m));
      line(str("memset(", exprs_.name(m), ", 0xff, sizeof ", exprs_.name(m), ");"));
    }
    group(kernel_.body);
    for (; opened > 0; --opened) close();
  }

  bool waits(const Stmt& stmt) const {
    if (const auto* loop = std::get_if<Loop>(&stmt.what)) return has_barrier(loop->body);
    if (const auto* branch = std::get_if<If>(&stmt.what)) {
      return has_barrier(branch->then_body) || has_barrier(branch->else_body);
    }
    return std::holds_alternative<Barrier>(stmt.what);
  }

  void group(const Body& statements) {
    std::vector<Body> runs(1);  // a statement that waits is a run of its own
    for (const auto& stmt : statements) {
      if (waits(*stmt)) {
        runs.push_back({stmt});
        runs.emplace_back();
      } else {
        runs.back().push_back(stmt);
      }
    }
    for (const Body& run : runs) spread(run, runs);
    for (const Body& run : runs) {
      if (run.empty()) continue;
      if (waits(*run[0])) {
        together(*run[0]);
      } else {
        threads(run);
      }
    }
  }

  // Arrays over the threads for what a run declares and another one uses.
  void spread(const Body& run, const std::vector<Body>& runs) {
    const auto lasting = [&](const void* what) {
      for (const Body& other : runs) {
        if (&other == &run) continue;
        for (const auto& stmt : other) {
          if (mentions(*stmt, what)) return true;
        }
      }
      return false;
    };
    const auto make = [&](const void* key, const std::string& name, ValueType type, int64_t elements) {
      line(str(exprs_.type(type), " ", name, "[", kernel_.threads(), "]", elements > 1 ? str("[", elements, "]") : "",
               ";"));
      exprs_.written_as[key] = name + "[t]";
      spread_.emplace_back(key, name);
    };
    for (const auto& stmt : run) {
      if (const auto* d = std::get_if<Declare>(&stmt->what)) {
        if (lasting(d->buffer.get())) {
          make(d->buffer.get(), exprs_.name(d->buffer), d->buffer->type, *d->buffer->elements.constant());
        }
        continue;
      }
      Variable v;
      if (const auto* let = std::get_if<Let>(&stmt->what)) v = let->variable;
      if (const auto* atomic = std::get_if<Atomic>(&stmt->what)) v = atomic->old;
      if (v != nullptr && lasting(v.get())) make(v.get(), exprs_.name(v), v->type, 1);
    }
  }

  void threads(const Body& run) {
    open(str("for (int t = 0; t < ", kernel_.threads(), "; ++t)"));
    int64_t inner = 1;
    for (int i = 0; i < 3; ++i) {
      const Axis& a = kernel_.locals[i];
      const int64_t extent = *a.extent.constant();
      if (a.variable != nullptr) {
        bool here = false;
        for (const auto& stmt : run) here = here || mentions(*stmt, a.variable.get());
        const std::string quotient = inner == 1 ? "t" : str("t / ", inner);
        const bool last = inner * extent == kernel_.threads();
        const std::string text = last ? quotient : str(quotient, " % ", extent);
        if (here) line(str("const int ", exprs_.name(a.variable), " = ", text, ";"));
      }
      inner *= extent;
    }
    body(run);
    close();
  }

  // A loop or a condition that the whole group goes through together: its expressions are those of thread 0.
  void together(const Stmt& stmt) {
    const auto of_group = [&](FunctionRef<std::string()> print) {
      for (const auto& [key, name] : spread_) exprs_.written_as[key] = name + "[0]";
      for (const Axis& a : kernel_.locals) {
        if (a.variable != nullptr) exprs_.written_as[a.variable.get()] = "0";
      }
      std::string text = print();
      for (const auto& [key, name] : spread_) exprs_.written_as[key] = name + "[t]";
      for (const Axis& a : kernel_.locals) {
        if (a.variable != nullptr) exprs_.written_as.erase(a.variable.get());
      }
      return text;
    };
    if (const auto* loop = std::get_if<Loop>(&stmt.what)) {
      open(of_group([&] { return loop_head(*loop); }));
      group(loop->body);
      close();
    } else if (const auto* branch = std::get_if<If>(&stmt.what)) {
      open(of_group([&] { return str("if (", exprs_.print(branch->condition), ")"); }));
      group(branch->then_body);
      if (!branch->else_body.empty()) {
        --indent_;
        open("} else");
        group(branch->else_body);
      }
      close();
    }
  }

  const Kernel& kernel_;
  const Language& language_;
  Features features_;
  ExprPrinter exprs_;
  std::optional<Facts> facts_;  // of the place that is printed; CUDA
  std::string out_;
  int indent_ = 0;
  std::vector<std::pair<const void*, std::string>> spread_;
};

}  // namespace

std::string entry_name(const Kernel& kernel, LanguageKind kind) {
  return kind == LanguageKind::CudaCpp ? "neo_" + kernel.name : kernel.name;
}

std::string print(const Kernel& kernel, LanguageKind kind, const Features& features) {
  if (!kernel.is_verified) verify(kernel);
  Kernel lowered = kernel;
  lowered.is_verified = false;
  const bool converts = std::any_of(lowered.parameters.begin(), lowered.parameters.end(), [](const Parameter& p) {
    const auto* memory = std::get_if<Memory>(&p);
    return memory != nullptr && (*memory)->converts();
  });
  lowered = unroll(vectorize(simplify(lowered)));
  if (kind != LanguageKind::CudaCpp || !features.matrices) lowered = lower_matrices(lowered);
  const bool shuffles = kind == LanguageKind::CudaCpp
                            ? kernel.threads() % 32 == 0
                            : kind == LanguageKind::OpenClC && features.subgroups != Features::Subgroups::None;
  if (!shuffles) {
    lowered = lower_subgroups(lowered);
  } else {
    lowered = lower_reductions(lowered);
    if (kind == LanguageKind::CudaCpp || features.subgroups != Features::Subgroups::Intel || converts) {
      lowered = lower_blocks(lowered);
    }
  }
  lowered = hoist(split_registers(simplify(lowered)));
  return Printer(lowered, language(kind), features).print();
}

}  // namespace neo::kernel
