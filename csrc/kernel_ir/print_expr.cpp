#include "kernel_ir/print_expr.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/check.h"

namespace neo::kernel {
namespace {

constexpr int kUnary = 13, kPrimary = 15;

// C's operator of an operation and how strongly it binds; no text where it is none.
struct Sign {
  std::string_view text;
  int precedence;
};
Sign sign(Op op) {
  switch (op) {
    case Op::Mul:
      return {"*", 12};
    case Op::Div:
      return {"/", 12};
    case Op::Mod:
      return {"%", 12};
    case Op::Add:
      return {"+", 11};
    case Op::Sub:
      return {"-", 11};
    case Op::ShiftLeft:
      return {"<<", 10};
    case Op::ShiftRight:
      return {">>", 10};
    case Op::Less:
      return {"<", 9};
    case Op::LessEqual:
      return {"<=", 9};
    case Op::Equal:
      return {"==", 8};
    case Op::NotEqual:
      return {"!=", 8};
    case Op::BitAnd:
      return {"&", 7};
    case Op::BitXor:
      return {"^", 6};
    case Op::BitOr:
      return {"|", 5};
    case Op::And:
      return {"&&", 4};
    case Op::Or:
      return {"||", 3};
    default:
      return {"", 0};
  }
}

}  // namespace

std::string ExprPrinter::unique(const void* key, const std::string& wanted) {
  if (const auto at = written_as.find(key); at != written_as.end()) return at->second;
  if (const auto at = names_.find(key); at != names_.end()) return at->second;
  // Words that one of the languages keeps for itself.
  static const std::set<std::string> kReserved = {
      "auto",   "break",  "case",   "char",  "const",    "continue", "do",   "double", "else", "float",   "for",
      "global", "half",   "if",     "int",   "kernel",   "local",    "long", "max",    "min",  "private", "register",
      "folded", "return", "select", "short", "t",        "this",     "void", "while",  "args", "j0",      "j1",
      "jn",     "y0",     "y1",     "yn",    "template", "class",    "new",  "delete"};
  std::string name = wanted;
  for (int i = 2; taken_.contains(name) || kReserved.contains(name); ++i) name = str(wanted, "_", i);
  taken_.insert(name);
  return names_[key] = name;
}

std::string ExprPrinter::type(ValueType type) {
  const std::string name = language_.type(type);
  if (type.dtype == DType::Float16) extensions_.insert("fp16");
  if (type.dtype == DType::Float64) extensions_.insert("fp64");
  if (type.lanes > 1 && !language_.has_vectors && made_.insert(name).second) {
    const ValueType element{type.dtype == DType::Bool ? DType::Int32 : type.dtype, 1};
    const std::string scalar = language_.type(element);
    if (language_.kind == LanguageKind::PlainC) {
      helpers_.push_back(str("typedef ", scalar, " ", name, " __attribute__((vector_size(",
                             type.lanes * item_bytes(element.dtype), ")));\n"));
    } else {
      extensions_.insert("vec");
      helpers_.push_back(str("typedef vec<", scalar, ", ", type.lanes, "> ", name, ";\n"));
    }
  }
  return name;
}

std::string ExprPrinter::helper(const std::string& name, const std::string& text) {
  if (made_.insert(name).second) helpers_.push_back(text);
  return name;
}

std::string ExprPrinter::lanewise(const std::string& name, ValueType result, const std::vector<ValueType>& operands,
                                  const std::string& body) {
  std::string arguments;
  for (size_t i = 0; i < operands.size(); ++i) {
    arguments += str(i == 0 ? "" : ", ", type(operands[i]), " ", std::string(1, static_cast<char>('a' + i)));
  }
  const std::string of = type(result);
  return helper(
      name, str(language_.function, " ", of, " ", name, "(", arguments, ") {\n  ", of, " r;\n  ", language_.unrolled,
                "for (int i = 0; i < ", result.lanes, "; ++i) r[i] = ", body, ";\n  return r;\n}\n"));
}

int64_t ExprPrinter::unit_bytes(const Memory& m, const Expr& index, ValueType t) const {
  if (!is_multiple || (m->space != Space::Global && m->space != Space::Local)) return 0;
  const int64_t bytes = std::min<int64_t>(t.bytes(), 16), item = item_bytes(t.dtype);
  return bytes >= 8 && is_multiple(index, bytes / item) ? bytes : 0;
}

std::string ExprPrinter::load_function(ValueType t, int64_t unit) {
  const std::string name = str(unit > 0 ? "load_aligned_" : "load_", t.to_string()), of = type(t);
  const std::string body =
      language_.kind == LanguageKind::PlainC ? "memcpy(&r, p, sizeof r);"
      : unit > 0 ? str(language_.unrolled, "for (int i = 0; i < ", t.bytes() / unit, "; ++i) {\n    const uint",
                       unit / 4, " a = ((const uint", unit / 4, " *)p)[i];\n    memcpy(&r.s[i * ",
                       unit / item_bytes(t.dtype), "], &a, sizeof a);\n  }")
                 : str(language_.unrolled, "for (int i = 0; i < ", t.lanes, "; ++i) r[i] = p[i];");
  return helper(name, str(language_.function, " ", of, " ", name, "(const ", language_.type(t.scalar()), " *p) {\n  ",
                          of, " r;\n  ", body, "\n  return r;\n}\n"));
}

std::string ExprPrinter::store_function(ValueType t, int64_t unit) {
  const std::string name = str(unit > 0 ? "store_aligned_" : "store_", t.to_string()), of = type(t);
  const std::string element = language_.type(t.scalar());
  const std::string body = language_.kind == LanguageKind::PlainC ? "memcpy(p, &a, sizeof a);"
                           : unit > 0
                               ? str(language_.unrolled, "for (int i = 0; i < ", t.bytes() / unit, "; ++i) {\n    uint",
                                     unit / 4, " b;\n    memcpy(&b, &a.s[i * ", unit / item_bytes(t.dtype),
                                     "], sizeof b);\n    ((uint", unit / 4, " *)p)[i] = b;\n  }")
                               : str(language_.unrolled, "for (int i = 0; i < ", t.lanes, "; ++i) p[i] = a[i];");
  return helper(name, str(language_.function, " void ", name, "(", element, " *p, ", of, " a) {\n  ", body, "\n}\n"));
}

std::string ExprPrinter::address(const Memory& m, const Expr& index) {
  return index.is(0) ? name(m) : str(name(m), " + ", print(index, 12));
}

std::string ExprPrinter::element(const Memory& m, const Expr& index) {
  if (m->space == Space::Register && m->elements.is(1)) return name(m);
  if (m->space == Space::Image && !language_.image.empty()) return texel(m, index);
  return str(name(m), "[", print(index, 0), "]");
}

std::string ExprPrinter::element_type(const BufferInfo& m) {
  return m.converts() ? half_type(m.stored()) : type(m.type);
}

std::string ExprPrinter::texel(const Memory& m, const Expr& index) {
  if (language_.has_vectors) {
    const std::string behind = index.is(0) ? "" : str(" + ", print(index, 12));
    return str("read_imagef(", name(m), ", ", first_texel(m), behind, ")");
  }
  const std::string of = type(m->type);
  const std::string function = helper(
      "read_texel", str(language_.function, " ", of, " read_texel(const float4 *p) {\n  const float4 a = __ldg(p);",
                        "\n  return ", of, "{{a.x, a.y, a.z, a.w}};\n}\n"));
  return str(function, "(", address(m, index), ")");
}

std::string ExprPrinter::store(const Store& s) {
  const int count = s.value->type.lanes / s.buffer->type.lanes;
  if (s.block) {
    extensions_.insert("intel_subgroups");
    const std::string lanes = s.value->type.lanes == 1 ? "" : std::to_string(s.value->type.lanes);
    return str("intel_sub_group_block_write", lanes, "((__global uint *)(", address(s.buffer, s.index), "), as_uint",
               lanes, "(", print(s.value, 0), "));");
  }
  if (s.buffer->converts()) return store_converted(s);
  if (count == 1) return str(element(s.buffer, s.index), " = ", print(s.value, 0), ";");
  type(s.value->type);
  if (language_.has_vectors) {
    return str("vstore", count, "(", print(s.value, 0), ", 0, ", address(s.buffer, s.index), ");");
  }
  return str(store_function(s.value->type, unit_bytes(s.buffer, s.index, s.value->type)), "(",
             address(s.buffer, s.index), ", ", print(s.value, 0), ");");
}

std::string ExprPrinter::atomic(const Atomic& s) {
  static constexpr std::string_view kOpenCl[] = {"atomic_add", "atomic_min", "atomic_max", "atomic_or", "atomic_xchg"};
  static constexpr std::string_view kCuda[] = {"atomicAdd", "atomicMin", "atomicMax", "atomicOr", "atomicExch"};
  static constexpr std::string_view kPlain[] = {"o + v", "v < o ? v : o", "v > o ? v : o", "o | v", "v"};
  const int op = static_cast<int>(s.op);
  const DType dtype = s.buffer->type.dtype;
  const std::string element_type = type(s.buffer->type);
  std::string function;
  if (language_.kind == LanguageKind::CudaCpp) {
    function = kCuda[op];
  } else if (language_.kind == LanguageKind::PlainC) {
    function = helper(
        str(kOpenCl[op], "_", neo::name(dtype)),
        str("static inline ", element_type, " ", kOpenCl[op], "_", neo::name(dtype), "(", element_type, " *p, ",
            element_type, " v) {\n  const ", element_type, " o = *p;\n  *p = ", kPlain[op], ";\n  return o;\n}\n"));
  } else if (dtype == DType::Float32) {
    const std::string space(s.buffer->space == Space::Global ? "__global" : "__local");
    const std::string name = "atomic_add_float32" + space;
    function = helper(name, str("inline float ", name, "(volatile ", space,
                                " float *p, float v) {\n"
                                "  uint seen, wanted;\n"
                                "  do {\n"
                                "    seen = as_uint(*p);\n"
                                "    wanted = as_uint(as_float(seen) + v);\n"
                                "  } while (atomic_cmpxchg((volatile ",
                                space,
                                " uint *)p, seen, wanted) != seen);\n"
                                "  return as_float(seen);\n}\n"));
  } else {
    function = kOpenCl[op];
  }
  return str(function, "(", address(s.buffer, s.index), ", ", print(s.value, 0), ")");
}

std::string ExprPrinter::multiply_matrices(const MatrixMultiply& s) {
  const std::string four = type(s.c->type), two = type(s.b->type);
  const auto bits = [](const char* name, int lanes) {
    std::string out;
    for (int i = 0; i < lanes; ++i) out += str(i == 0 ? "" : ", ", "\"r\"(__float_as_uint(", name, "[", i, "]))");
    return out;
  };
  helper("multiply_matrices",
         str(language_.function, " ", four, " multiply_matrices(const ", four, " &a, const ", two, " &b, ", four,
             " c) {\n"
             "  asm volatile(\"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, \"\n"
             "               \"{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\"\n"
             "               : \"+f\"(c[0]), \"+f\"(c[1]), \"+f\"(c[2]), \"+f\"(c[3])\n"
             "               : ",
             bits("a", 4), ",\n                 ", bits("b", 2), ");\n  return c;\n}\n"));
  return str("multiply_matrices(", print(s.a, 0), ", ", print(s.b, 0), ", ", print(s.c, 0), ")");
}

std::string ExprPrinter::to_tf32(const Expr& e) {
  const std::string operand = print(e->operands[0], 0);
  std::string body;  // gives r of a
  if (language_.kind == LanguageKind::CudaCpp && features_.matrices) {
    body =
        "  unsigned int u;\n  asm(\"cvt.rna.tf32.f32 %0, %1;\" : \"=r\"(u) : \"f\"(a));\n"
        "  return __uint_as_float(u);\n";
  } else {
    const bool opencl = language_.has_vectors, cuda = language_.kind == LanguageKind::CudaCpp;
    const std::string in = opencl ? "uint u = as_uint(a);"
                           : cuda ? "unsigned int u = __float_as_uint(a);"
                                  : "unsigned int u;\n  memcpy(&u, &a, sizeof u);";
    const std::string out = opencl ? "return as_float(u);"
                            : cuda ? "return __uint_as_float(u);"
                                   : "memcpy(&a, &u, sizeof a);\n  return a;";
    body = str("  ", in, "\n  if ((u & 0x7f800000u) != 0x7f800000u) u = (u + 0x1000u) & 0xffffe000u;\n  ", out, "\n");
  }
  const std::string name = helper("to_tf32", str(language_.function, " float to_tf32(float a) {\n", body, "}\n"));
  return str(name, "(", operand, ")");
}

std::string ExprPrinter::dot4(const Expr& e) {
  const bool opencl = language_.has_vectors, native = features_.dots == Features::Dots::Native;
  std::string body;  // of a, b and the sum c
  if (opencl && native) {
    extensions_.insert("cl_khr_integer_dot_product");
    body = "  return c + dot_4x8packed_ss_int((uint)a, (uint)b);\n";
  } else if (opencl && features_.dots == Features::Dots::Arm) {
    extensions_.insert("cl_arm_integer_dot_product_accumulate_int8");
    body = "  return arm_dot_acc(as_char4(a), as_char4(b), c);\n";
  } else if (language_.kind == LanguageKind::CudaCpp && native) {
    body =
        "  int d;\n  asm(\"dp4a.s32.s32 %0, %1, %2, %3;\" : \"=r\"(d) : \"r\"(a), \"r\"(b), \"r\"(c));\n"
        "  return d;\n";
  } else {
    const std::string byte = language_.type({DType::Int8, 1});
    std::string sum;
    for (const int shift : {0, 8, 16, 24}) {
      const std::string of = shift == 0 ? "" : str(" >> ", shift);
      const auto operand = [&](const char* name) {
        return str("(", byte, ")", of.empty() ? std::string(name) : str("(", name, of, ")"));
      };
      sum += str(shift == 0 ? "" : " + ", operand("a"), " * ", operand("b"));
    }
    const std::string word = language_.type({DType::UInt32, 1});  // sums wrap
    body = str("  return (int)((", word, ")c + (", word, ")(", sum, "));\n");
  }
  const std::string name = helper("dot4", str(language_.function, " int dot4(int a, int b, int c) {\n", body, "}\n"));
  return str(name, "(", print(e->operands[0], 0), ", ", print(e->operands[1], 0), ", ", print(e->operands[2], 0), ")");
}

std::string ExprPrinter::literal(const Expr& e) const {
  const DType dtype = e->type.dtype;
  if (e->op == Op::Integer) {
    if (dtype == DType::Bool) return std::to_string(e->integer);
    if (dtype == DType::Int32 && e->integer == INT32_MIN) return "(-2147483647 - 1)";
    const bool wide = dtype == DType::Int64 || dtype == DType::UInt64;
    const std::string suffix = str(is_signed(dtype) ? "" : "u", wide ? (language_.has_vectors ? "L" : "LL") : "");
    const std::string digits =
        is_signed(dtype) ? std::to_string(e->integer) : std::to_string(static_cast<uint64_t>(e->integer));
    return e->integer < 0 ? str("(", digits, suffix, ")") : digits + suffix;
  }
  const double x = e->real;
  std::string text;
  if (std::isnan(x)) {
    text = language_.nan;
  } else if (std::isinf(x)) {
    text = str(x < 0 ? "-" : "", language_.infinity);
  } else {
    char buffer[40];
    const auto end = dtype == DType::Float64 ? std::to_chars(buffer, buffer + sizeof buffer, x)
                                             : std::to_chars(buffer, buffer + sizeof buffer, static_cast<float>(x));
    text.assign(buffer, end.ptr);
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    if (dtype != DType::Float64) text += "f";
  }
  if (dtype == DType::Float16) text = str("(", language_.half, ")", text);
  return text.front() == '-' ? str("(", text, ")") : text;
}

std::string ExprPrinter::math(const Expr& e) {
  const DType dtype = e->type.dtype;
  const int lanes = e->type.lanes;
  std::string operands;
  for (const Expr& operand : e->operands) operands += str(operands.empty() ? "" : ", ", print(operand, 0));
  const bool whole = is_integer(dtype);
  if (language_.has_vectors) {
    if (whole && e->op == Op::Abs) return str("(", type(e->type), ")abs(", operands, ")");
    const std::string function = whole ? (e->op == Op::Min ? "min" : "max") : language_.function_name(e->op, dtype);
    return str(function, "(", operands, ")");
  }
  // One lane, of a, b, c.
  const auto lane_text = [&](const std::vector<std::string>& a) {
    if (whole && e->op == Op::Abs) return str(a[0], " < 0 ? -", a[0], " : ", a[0]);
    if (whole) return str(a[0], e->op == Op::Min ? " < " : " > ", a[1], " ? ", a[0], " : ", a[1]);
    std::string text = language_.function_name(e->op, dtype) + "(";
    const bool narrow = dtype == DType::Float16;
    for (size_t i = 0; i < a.size(); ++i) text += str(i == 0 ? "" : ", ", narrow ? "(float)" : "", a[i]);
    return str(narrow ? str("(", language_.half, ")") : "", text, ")");
  };
  if (lanes == 1 && !whole) {
    std::vector<std::string> a;
    for (const Expr& operand : e->operands) a.push_back(print(operand, dtype == DType::Float16 ? kPrimary : 0));
    return lane_text(a);
  }
  std::vector<std::string> a;
  std::vector<ValueType> types;
  for (size_t i = 0; i < e->operands.size(); ++i) {
    a.push_back(std::string(1, static_cast<char>('a' + i)) + (lanes > 1 ? "[i]" : ""));
    types.push_back(e->type);
  }
  const std::string name = str(kernel::name(e->op), "_", e->type.to_string());
  if (lanes > 1) {
    lanewise(name, e->type, types, lane_text(a));
  } else {
    const std::string of = type(e->type);
    helper(name, str(language_.function, " ", of, " ", name, "(", of, " a", types.size() > 1 ? ", " + of + " b" : "",
                     ") {\n  return ", lane_text(a), ";\n}\n"));
  }
  return str(name, "(", operands, ")");
}

std::string ExprPrinter::converted(const Expr& e) {
  const Expr& a = e->operands[0];
  const ValueType to = e->type, from = a->type;
  if (e->op == Op::Bitcast) {
    if (language_.has_vectors) return str("as_", type(to), "(", print(a, 0), ")");
    const std::string name = str("bits_", from.to_string(), "_", to.to_string());
    const std::string in = type(from), out = type(to);
    helper(name, str(language_.function, " ", out, " ", name, "(", in, " a) {\n  ", out,
                     " r;\n  memcpy(&r, &a, sizeof r);\n  return r;\n}\n"));
    return str(name, "(", print(a, 0), ")");
  }
  if (to.lanes == 1) {
    if (to.dtype == DType::Bool) return str(print(a, 9), " != 0");
    return str("(", type(to), ")", print(a, kUnary));
  }
  if (from.dtype == DType::Bool) {
    const bool whole = is_integer(to.dtype);
    return print(select(a, whole ? integer(1, to) : real(1, to), whole ? integer(0, to) : real(0, to)), 0);
  }
  if (language_.has_vectors) return str("convert_", type(to), "(", print(a, 0), ")");
  const std::string name = str("convert_", from.to_string(), "_", to.to_string());
  lanewise(name, to, {from}, str("(", language_.type(to.scalar()), ")a[i]"));
  return str(name, "(", print(a, 0), ")");
}

std::string ExprPrinter::block_read(const Expr& e) {
  extensions_.insert("intel_subgroups");
  const std::string lanes = e->type.lanes == 1 ? "" : std::to_string(e->type.lanes);
  return str("as_", type(e->type), "(intel_sub_group_block_read", lanes, "((const __global uint *)(",
             address(e->buffer, e->operands[0]), ")))");
}

std::string ExprPrinter::print(const Expr& e, int precedence) {
  const auto wrapped = [&](int own, const std::string& text) { return own < precedence ? str("(", text, ")") : text; };
  const int lanes = e->type.lanes;
  const Sign s = sign(e->op);
  if (!s.text.empty()) {
    const bool mask = lanes > 1 && e->type.dtype == DType::Bool;
    NEO_CHECK(!mask || item_bytes(e->operands[0]->type.dtype) == 4 || e->operands[0]->type.dtype == DType::Bool,
              Unsupported, "kernel", "vectors are compared in elements of 32 bits. Got ",
              e->operands[0]->type.to_string());
    std::string_view text = s.text;
    int own = s.precedence;
    if (mask && (e->op == Op::And || e->op == Op::Or)) {
      text = e->op == Op::And ? "&" : "|";
      own = e->op == Op::And ? 7 : 5;
    }
    // Shifts and bits beside other operators are easily misread: they get parentheses.
    const bool tight = own >= 11;
    const auto side = [&](const Expr& operand, int at_least) {
      const Sign inner = sign(operand->op);
      return print(operand,
                   !tight && own != 9 && own != 8 && own != 4 && own != 3 && !inner.text.empty() ? kPrimary : at_least);
    };
    if (e->op == Op::Add && e->operands[1].constant() && lanes == 1 && *e->operands[1].constant() < 0 &&
        is_signed(e->type.dtype) && *e->operands[1].constant() > INT32_MIN) {
      return wrapped(own, str(print(e->operands[0], own), " - ", -*e->operands[1].constant()));
    }
    const bool mixed = own == 3;  // && inside ||
    return wrapped(
        own, str(side(e->operands[0], mixed ? 5 : own), " ", text, " ", side(e->operands[1], mixed ? 5 : own + 1)));
  }
  switch (e->op) {
    case Op::Integer:
    case Op::Real:
      return literal(e);
    case Op::Variable:
      return name(e->variable);
    case Op::Neg:
      return wrapped(kUnary, "-" + print(e->operands[0], kPrimary));
    case Op::BitNot:
      return wrapped(kUnary, "~" + print(e->operands[0], kPrimary));
    case Op::Not:
      return wrapped(
          kUnary, (lanes > 1 && language_.kind != LanguageKind::CudaCpp ? "~" : "!") + print(e->operands[0], kPrimary));
    case Op::Select: {
      const Expr& c = e->operands[0];
      if (c->type.lanes == 1) {
        return wrapped(2, str(print(c, 3), " ? ", print(e->operands[1], 3), " : ", print(e->operands[2], 3)));
      }
      NEO_CHECK(item_bytes(e->type.dtype) == 4, Unsupported, "kernel",
                "vectors are selected in elements of 32 bits. Got ", e->type.to_string());
      if (language_.has_vectors) {
        return str("select(", print(e->operands[2], 0), ", ", print(e->operands[1], 0), ", ", print(c, 0), ")");
      }
      const std::string function = "select_" + e->type.to_string();
      lanewise(function, e->type, {c->type, e->type, e->type}, "a[i] ? b[i] : c[i]");
      return str(function, "(", print(c, 0), ", ", print(e->operands[1], 0), ", ", print(e->operands[2], 0), ")");
    }
    case Op::Cast: {
      const int own = lanes > 1 ? kPrimary : e->type.dtype == DType::Bool ? 8 : kUnary;
      return wrapped(own, converted(e));
    }
    case Op::Bitcast:
      return converted(e);
    case Op::Broadcast: {
      const std::string of = type(e->type);
      if (language_.has_vectors) return wrapped(kUnary, str("(", of, ")(", print(e->operands[0], 0), ")"));
      const std::string function = "splat_" + e->type.to_string();
      const std::string scalar = language_.type(e->operands[0]->type);
      helper(function, str(language_.function, " ", of, " ", function, "(", scalar, " a) {\n  ", of, " r;\n  ",
                           language_.unrolled, "for (int i = 0; i < ", lanes, "; ++i) r[i] = a;\n  return r;\n}\n"));
      return str(function, "(", print(e->operands[0], 0), ")");
    }
    case Op::Lane: {
      const int i = static_cast<int>(e->integer);
      const std::string of = print(e->operands[0], kPrimary);
      return language_.has_vectors ? str(of, ".s", "0123456789abcdef"[i]) : str(of, "[", i, "]");
    }
    case Op::Vector: {
      std::string parts;
      for (const Expr& part : e->operands) parts += str(parts.empty() ? "" : ", ", print(part, 0));
      const std::string of = type(e->type);
      if (language_.has_vectors) return wrapped(kUnary, str("(", of, ")(", parts, ")"));
      return language_.kind == LanguageKind::PlainC ? str("(", of, "){", parts, "}") : str(of, "{{", parts, "}}");
    }
    case Op::Load: {
      if (e->buffer->converts()) return load_converted(e->buffer, e->operands[0], lanes);
      if (lanes == e->buffer->type.lanes) return element(e->buffer, e->operands[0]);
      if (language_.has_vectors) return str("vload", lanes, "(0, ", address(e->buffer, e->operands[0]), ")");
      return str(load_function(e->type, unit_bytes(e->buffer, e->operands[0], e->type)), "(",
                 address(e->buffer, e->operands[0]), ")");
    }
    case Op::BlockRead:
      return block_read(e);
    case Op::ToTf32:
      return to_tf32(e);
    case Op::Dot4:
      return dot4(e);
    default:
      return math(e);
  }
}

std::string ExprPrinter::preamble() const {
  std::string out;
  if (language_.kind == LanguageKind::OpenClC) {
    for (const std::string& extension : extensions_) {
      if (extension.starts_with("cl_")) out += str("#pragma OPENCL EXTENSION ", extension, " : enable\n");
    }
    if (extensions_.contains("fp64")) out += "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n";
    if (extensions_.contains("fp16")) out += "#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n";
    if (features_.subgroups == Features::Subgroups::Khronos) {
      out += "#pragma OPENCL EXTENSION cl_khr_subgroups : enable\n";
      out += "#pragma OPENCL EXTENSION cl_khr_subgroup_shuffle : enable\n";
    } else if (features_.subgroups == Features::Subgroups::Intel) {
      out += "#pragma OPENCL EXTENSION cl_intel_subgroups : enable\n";
    }
  } else if (language_.kind == LanguageKind::PlainC) {
    out += "#include <math.h>\n#include <string.h>\n";
  } else {
    if (extensions_.contains("fp16")) out += "#include <cuda_fp16.h>\n";
    if (extensions_.contains("vec")) {
      out +=
          "template <class T, int N>\n"
          "struct vec {\n"
          "  T s[N];\n"
          "  __device__ __forceinline__ T &operator[](int i) { return s[i]; }\n"
          "  __device__ __forceinline__ const T &operator[](int i) const { return s[i]; }\n"
          "};\n"
          "#define VEC_OPERATOR(op, R)                                                            \\\n"
          "  template <class T, int N>                                                            \\\n"
          "  __device__ __forceinline__ vec<R, N> operator op(const vec<T, N> &a, const vec<T, N> &b) { \\\n"
          "    vec<R, N> r;                                                                       \\\n"
          "    _Pragma(\"unroll\") for (int i = 0; i < N; ++i) r.s[i] = a.s[i] op b.s[i];           \\\n"
          "    return r;                                                                          \\\n"
          "  }\n";
      for (const char* op : {"+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"}) {
        out += str("VEC_OPERATOR(", op, ", T)\n");
      }
      for (const char* op : {"<", "<=", "==", "!="}) out += str("VEC_OPERATOR(", op, ", int)\n");
      out +=
          "template <class T, int N>\n"
          "__device__ __forceinline__ vec<T, N> operator-(const vec<T, N> &a) {\n"
          "  vec<T, N> r;\n"
          "#pragma unroll\n"
          "  for (int i = 0; i < N; ++i) r.s[i] = -a.s[i];\n"
          "  return r;\n"
          "}\n"
          "template <class T, int N>\n"
          "__device__ __forceinline__ vec<T, N> operator~(const vec<T, N> &a) {\n"
          "  vec<T, N> r;\n"
          "#pragma unroll\n"
          "  for (int i = 0; i < N; ++i) r.s[i] = ~a.s[i];\n"
          "  return r;\n"
          "}\n"
          "template <int N>\n"
          "__device__ __forceinline__ vec<int, N> operator!(const vec<int, N> &a) {\n"
          "  vec<int, N> r;\n"
          "#pragma unroll\n"
          "  for (int i = 0; i < N; ++i) r.s[i] = a.s[i] == 0;\n"
          "  return r;\n"
          "}\n";
    }
  }
  for (const std::string& text : helpers_) out += text;
  return out;
}

}  // namespace neo::kernel
