#include "routines/gpu/int8/codes.h"

#include "base/check.h"
#include "routines/patterns/code_function.h"

namespace neo::gpu {

using kernel::Builder;
using kernel::Expr;
using kernel::kInt;
using kernel::make;
using kernel::Op;

Expr held(Builder& b, const char* name, const Expr& value) {
  const kernel::Array kept = b.registers(name, value->type, 1);
  kept[0] = value;
  return b.let(name, kept[0]);
}

Expr code_in(const Expr& byte, bool is_signed) {
  const Expr code = cast(byte, DType::Int32);
  return is_signed ? (code ^ 128) - 128 : code;
}

Expr byte_of(const Expr& code) {
  return cast(code & 255, DType::UInt8);
}

Expr four_times(const Expr& byte) {
  return cast(cast(byte & 255, DType::UInt32) * 0x01010101, DType::Int32);
}

Expr wrapping_sum(const Expr& a, const Expr& b) {
  return cast(cast(a, DType::UInt32) + cast(b, DType::UInt32), DType::Int32);
}

CodesDivisor::CodesDivisor(Builder& b, const std::string& name)
    : b_(b),
      by_(b.number(name, DType::Float32)),
      inverse_(b.number(name + "_inverse", DType::Float32)),
      most_(b.number(name + "_most", DType::Float32)) {}

// Markstein's: from the rounded inverse, and a quotient within a unit in the last place, which the first step makes of
// one within two.
Expr exact_quotient(Builder& b, const Expr& x, const Expr& by, const Expr& inverse) {
  Expr q = b.let("q", x * inverse);
  for (int i = 0; i < 2; ++i) {
    const Expr rest = b.let("rest", fma(-q, by, x));
    q = b.let("q", fma(rest, inverse, q));
  }
  return q;
}

// A division may be off by three units in the last place; each step leaves the square of the error, and the rounding.
Expr exact_inverse(Builder& b, const Expr& count) {
  const int lanes = count->type.lanes;
  const Expr one = lanes == 1 ? kernel::real(1) : broadcast(kernel::real(1), lanes);
  Expr inverse = b.let("inverse", one / count);
  for (int i = 0; i < 2; ++i) {
    const Expr rest = b.let("rest", fma(-count, inverse, one));
    inverse = b.let("inverse", fma(rest, inverse, inverse));
  }
  return inverse;
}

Expr CodesDivisor::quotient(const Expr& x) const {
  return exact_quotient(b_, b_.let("bounded", min(max(x, -most_), most_)), by_, inverse_);
}

void CodesDivisor::append(float by, std::vector<LaunchArgument>& arguments) {
  constexpr float kMaxSteps = 1024;  // twice the distance between any two codes
  for (const float v : {by, 1 / by, by * kMaxSteps}) arguments.emplace_back(static_cast<double>(v));
}

Expr rounded_code(const Expr& steps, const Expr& lo, const Expr& hi) {
  return cast(make(Op::Round, {min(hi, max(lo, steps))}), DType::Int32);
}

CodesForm CodesForm::of(const CodesResult& r, bool has_residual, bool has_addend, bool has_table) {
  CodesForm f;
  f.kind = r.is_whole ? Kind::Sums : r.is_float ? Kind::Numbers : Kind::Codes;
  f.has_middle = r.has_middle;
  f.has_residual = has_residual;
  f.residual_is_signed = has_residual && r.residual_is_signed;
  f.has_addend = has_addend;
  f.has_table = has_table;
  return f;
}

std::string CodesForm::tag() const {
  return str(kind == Kind::Codes     ? "c"
             : kind == Kind::Numbers ? "n"
                                     : "s",
             has_middle ? "m" : "", has_residual ? (residual_is_signed ? "ri" : "ru") : "", has_addend ? "a" : "",
             has_table ? "t" : "");
}

DType CodesForm::dtype() const {
  return kind == Kind::Codes ? DType::UInt8 : kind == Kind::Numbers ? DType::Float32 : DType::Int32;
}

CodesParameters::CodesParameters(Builder& b, const CodesForm& form, const Expr& channels, const Expr& results)
    : b_(b), form_(form), channels_(channels) {
  columns_ = b.input("columns", DType::Int32, channels * kCodesColumns);
  if (form.has_residual) residual_ = b.input("residual", DType::UInt8, results);
  if (form.has_table) table_ = b.input("table", DType::UInt8, kCodeTable);
  const auto number = [&](const char* name) { return b.number(name, DType::Float32); };
  if (form.kind == CodesForm::Kind::Sums) return;
  lo_ = number("lo");
  hi_ = number("hi");
  if (form.kind == CodesForm::Kind::Numbers) return;
  zero_ = b.size("zero", -128, 255);
  if (form.has_middle) {
    middle_lo_ = number("middle_lo");
    middle_hi_ = number("middle_hi");
    middle_scale_ = number("middle_scale");
  }
  if (form.has_residual) {
    residual_scale_ = number("residual_scale");
    residual_zero_ = b.size("residual_zero", -128, 255);
  }
  if (form.has_residual || form.has_addend) y_scale_.emplace(b, "y_scale");
}

void append_codes_arguments(const CodesForm& form, const CodesResult& r, LaunchArgument columns,
                            LaunchArgument residual, LaunchArgument table, std::vector<LaunchArgument>& arguments) {
  const auto number = [&](float v) { arguments.emplace_back(static_cast<double>(v)); };
  arguments.push_back(columns);
  if (form.has_residual) arguments.push_back(residual);
  if (form.has_table) arguments.push_back(table);
  if (form.kind == CodesForm::Kind::Sums) return;
  number(r.lo);
  number(r.hi);
  if (form.kind == CodesForm::Kind::Numbers) return;
  arguments.emplace_back(int64_t{r.zero});
  if (form.has_middle) {
    number(r.middle_lo);
    number(r.middle_hi);
    number(r.middle_scale);
  }
  if (form.has_residual) {
    number(r.residual_scale);
    arguments.emplace_back(int64_t{r.residual_zero});
  }
  if (form.has_residual || form.has_addend) CodesDivisor::append(r.y_scale, arguments);
}

Expr CodesParameters::column(CodesColumn array, const Expr& channel) const {
  return (*columns_)[channels_ * static_cast<int>(array) + channel];
}

Expr CodesParameters::number(CodesColumn array, const Expr& channel) const {
  return bitcast(column(array, channel), DType::Float32);
}

Expr CodesParameters::finish(const Expr& sum, const Expr& channel, const Expr& index) const {
  if (form_.kind == CodesForm::Kind::Sums) return sum;
  const auto as_number = [](const Expr& code) { return cast(code, DType::Float32); };
  const Expr product = b_.let("product", as_number(sum) * number(CodesColumn::Scale, channel));
  Expr t = b_.let("t", product + number(CodesColumn::Add, channel));
  if (form_.kind == CodesForm::Kind::Numbers) return min(hi_, max(lo_, t));
  if (y_scale_) {
    if (form_.has_middle) {
      t = b_.let("middle", as_number(rounded_code(t, middle_lo_, middle_hi_)) * middle_scale_);
    }
    Expr added;
    if (form_.has_residual) {
      const Expr code = code_in((*residual_)[index], form_.residual_is_signed);
      added = b_.let("added", as_number(code - residual_zero_) * residual_scale_);
    } else {
      added = number(CodesColumn::Addend, channel);
    }
    t = y_scale_->quotient(t + added);
  }
  const Expr code = b_.let("code", rounded_code(t, lo_, hi_) + zero_);
  return form_.has_table ? Expr((*table_)[code & 255]) : byte_of(code);
}

}  // namespace neo::gpu
