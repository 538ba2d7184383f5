#include "base/check.h"
#include "kernel_ir/print_expr.h"

// Memory in float16 or bfloat16, read and written as float32.
namespace neo::kernel {
namespace {

std::string count_of(int lanes) {
  return lanes == 1 ? "" : std::to_string(lanes);
}

// OpenCL C from the half at `p` to what a function returns. Exponents are shifted; those of zeros and denormal numbers,
// and of infinities and NaN, by other amounts.
std::string software_widen(const std::string& bits, const std::string& of, int lanes) {
  const std::string n = count_of(lanes), ushorts = "((const __global ushort *)p)";
  const std::string from = lanes == 1 ? "*" + ushorts : str("convert_", bits, "(vload", n, "(0, ", ushorts, "))");
  return str("  const ", bits, " u = ", from, ", m = (u & 0x7fffu) << 13;\n  const ", of, " small = as_", of,
             "(m + 0x38800000u) - 0x1p-14f;\n  ", bits, " r = select(m + 0x38000000u, as_", bits,
             "(small), m < 0x800000u);\n  r = select(r, m + 0x70000000u, m >= 0xf800000u);\n  return as_", of,
             "(r | (u & 0x8000u) << 16);\n");
}

// OpenCL C from the float `a` to the half at `p`, to the nearest, ties to even.
std::string software_narrow(const std::string& bits, int lanes) {
  const std::string n = count_of(lanes), floats = "float" + n;
  const auto all = [&](const char* number) {
    return lanes == 1 ? std::string(number) : str("(", bits, ")(", number, ")");
  };
  const std::string result = lanes == 1 ? "*(__global ushort *)p = (ushort)(r | s);"
                                        : str("vstore", n, "(convert_ushort", n, "(r | s), 0, (__global ushort *)p);");
  return str("  const ", bits, " u = as_", bits, "(a), s = (u >> 16) & 0x8000u, m = u & 0x7fffffffu;\n  const ", bits,
             " small = as_", bits, "(as_", floats, "(m) + 0.5f) - 0x3f000000u;\n  ", bits,
             " r = select((m - 0x38000000u + 0xfffu + ((m >> 13) & 1u)) >> 13, small, m < 0x38800000u);\n",
             "  r = select(r, ", all("0x7c00u"), ", m >= 0x47800000u);\n  r = select(r, ", all("0x7e00u"),
             ", m > 0x7f800000u);\n  ", result, "\n");
}

}  // namespace

std::string ExprPrinter::half_type(DType storage) const {
  // A pointer to half needs no extension of OpenCL C. CUDA's half would need a header.
  const bool is_bits = storage == DType::BFloat16 || language_.kind == LanguageKind::CudaCpp;
  return is_bits ? language_.type({DType::UInt16, 1}) : std::string(language_.half);
}

std::string ExprPrinter::convert_function(DType storage, bool loads, int lanes) {
  const ValueType wide = kFloat.with_lanes(lanes);
  const std::string of = type(wide), name = str(loads ? "widen_" : "narrow_", ValueType{storage, lanes}.to_string());
  const bool opencl = language_.has_vectors, cuda = language_.kind == LanguageKind::CudaCpp;
  if (lanes > 1 && !opencl) {
    const std::string one = convert_function(storage, loads, 1);
    const std::string element = half_type(storage);
    const std::string body = str(language_.unrolled, "for (int i = 0; i < ", lanes, "; ++i) ",
                                 loads ? str("r[i] = ", one, "(p + i);") : str(one, "(a[i], p + i);"));
    return helper(
        name, loads ? str(language_.function, " ", of, " ", name, "(const ", element, " *p) {\n  ", of, " r;\n  ", body,
                          "\n  return r;\n}\n")
                    : str(language_.function, " void ", name, "(", of, " a, ", element, " *p) {\n  ", body, "\n}\n"));
  }
  const std::string bits = language_.type({DType::UInt32, lanes}), count = lanes == 1 ? "" : std::to_string(lanes);
  const std::string space(language_.global), element = half_type(storage);
  const std::string head = loads ? str(language_.function, " ", of, " ", name, "(const ", space, element, " *p) {\n")
                                 : str(language_.function, " void ", name, "(", of, " a, ", space, element, " *p) {\n");
  std::string body;
  if (storage == DType::Float16) {
    if (opencl) {
      body = loads ? software_widen(bits, of, lanes) : software_narrow(bits, lanes);
    } else if (cuda) {
      body = loads ? "  float r;\n  asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(r) : \"h\"(*p));\n  return r;\n"
                   : "  unsigned short u;\n  asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(u) : \"f\"(a));\n  *p = u;\n";
    } else {
      body = loads ? "  return (float)*p;\n" : "  *p = (_Float16)a;\n";
    }
    return helper(name, str(head, body, "}\n"));
  }
  if (loads && opencl) {
    const std::string from = lanes == 1 ? "(uint)*p" : str("convert_uint", lanes, "(vload", lanes, "(0, p))");
    body = str("  return as_float", count, "(", from, " << 16);\n");
  } else if (loads) {
    body = cuda ? "  return __uint_as_float((unsigned int)*p << 16);\n"
                : "  const unsigned int u = (unsigned int)*p << 16;\n  float r;\n  memcpy(&r, &u, sizeof r);\n  return "
                  "r;\n";
  } else {  // to the nearest, ties to even
    const std::string in = opencl ? str("as_uint", count, "(a)") : cuda ? "__float_as_uint(a)" : "0";
    body = str("  ", bits, " u = ", in, ";\n", opencl || cuda ? "" : "  memcpy(&u, &a, sizeof u);\n");
    body += "  u = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;\n";
    body += lanes == 1 ? str("  *p = (", element, ")(a == a ? u : 0x7fc0u);\n")
                       : str("  vstore", lanes, "(convert_ushort", lanes, "(select((", bits,
                             ")(0x7fc0u), u, a == a)), 0, p);\n");
  }
  return helper(name, str(head, body, "}\n"));
}

std::string ExprPrinter::load_converted(const Memory& m, const Expr& index, int lanes) {
  if (language_.has_vectors && m->stored() == DType::Float16 && !features_.software_halves) {
    if (lanes == 1) return str("vload_half(", print(index, 0), ", ", name(m), ")");
    return str("vload_half", lanes, "(0, ", address(m, index), ")");
  }
  return str(convert_function(m->stored(), true, lanes), "(", address(m, index), ")");
}

std::string ExprPrinter::store_converted(const Store& s) {
  const int lanes = s.value->type.lanes;
  const std::string value = print(s.value, 0);
  if (language_.has_vectors && s.buffer->stored() == DType::Float16 && !features_.software_halves) {
    if (lanes == 1) return str("vstore_half_rte(", value, ", ", print(s.index, 0), ", ", name(s.buffer), ");");
    return str("vstore_half", lanes, "_rte(", value, ", 0, ", address(s.buffer, s.index), ");");
  }
  return str(convert_function(s.buffer->stored(), false, lanes), "(", value, ", ", address(s.buffer, s.index), ");");
}

}  // namespace neo::kernel
