#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernel_ir/builder.h"
#include "routines/gpu/program.h"
#include "routines/patterns/int8_columns.h"

// Expressions of 8-bit codes, with the numbers of the CPU's routines bit for bit: kernels of them round every operation
// by itself (Builder::round_each).
namespace neo::gpu {

// A value of which nothing is known but what guards tell.
kernel::Expr held(kernel::Builder& b, const char* name, const kernel::Expr& value);

// The code in a byte of memory, int32.
kernel::Expr code_in(const kernel::Expr& byte, bool is_signed);
// The low byte of a code, as memory holds it.
kernel::Expr byte_of(const kernel::Expr& code);
kernel::Expr four_times(const kernel::Expr& byte);  // a byte in all four of an int32
// Sums that wrap.
kernel::Expr wrapping_sum(const kernel::Expr& a, const kernel::Expr& b);

// x / by and 1 / count, rounded once: devices' own quotients may be off by some units in the last place. `inverse` is
// the rounded one of `by`. Both and the quotient must be normal numbers, and a count none whose bits are all ones.
kernel::Expr exact_quotient(kernel::Builder& b, const kernel::Expr& x, const kernel::Expr& by,
                            const kernel::Expr& inverse);
kernel::Expr exact_inverse(kernel::Builder& b, const kernel::Expr& count);

// A divisor that only a launch knows.
class CodesDivisor {
 public:
  CodesDivisor(kernel::Builder& b, const std::string& name);
  // x / by, where its magnitude is below 512; beyond that a number of the same sign that is no smaller.
  kernel::Expr quotient(const kernel::Expr& x) const;
  static void append(float by, std::vector<LaunchArgument>& arguments);

 private:
  kernel::Builder& b_;
  kernel::Expr by_, inverse_, most_;
};

// The code, less the zero point, of a number of steps: round(steps) between lo and hi.
kernel::Expr rounded_code(const kernel::Expr& steps, const kernel::Expr& lo, const kernel::Expr& hi);

// The part of CodesResult that is written into a kernel.
struct CodesForm {
  enum class Kind : uint8_t { Codes, Numbers, Sums };
  Kind kind = Kind::Codes;
  bool has_middle = false;
  bool has_residual = false, residual_is_signed = false;
  bool has_addend = false;
  bool has_table = false;

  static CodesForm of(const CodesResult& result, bool has_residual, bool has_addend, bool has_table);
  std::string tag() const;
  DType dtype() const;  // of the results in memory
};

// The arrays of a product's columns, one behind the other, as many int32 each as there are channels.
enum class CodesColumn : uint8_t { Init, Scale, Add, Addend, Shift };
constexpr int kCodesColumns = 5;

// The parameters of a kernel's results, which come last.
class CodesParameters {
 public:
  // `results`: elements of the result's memory.
  CodesParameters(kernel::Builder& b, const CodesForm& form, const kernel::Expr& channels, const kernel::Expr& results);
  kernel::Expr column(CodesColumn array, const kernel::Expr& channel) const;
  // As an element of the result, which is the channel's at `index`.
  kernel::Expr finish(const kernel::Expr& sum, const kernel::Expr& channel, const kernel::Expr& index) const;

 private:
  kernel::Expr number(CodesColumn array, const kernel::Expr& channel) const;

  kernel::Builder& b_;
  CodesForm form_;
  kernel::Expr channels_, lo_, hi_, zero_, middle_lo_, middle_hi_, middle_scale_, residual_scale_, residual_zero_;
  std::optional<CodesDivisor> y_scale_;
  std::optional<kernel::Array> columns_, residual_, table_;
};
void append_codes_arguments(const CodesForm& form, const CodesResult& result, LaunchArgument columns,
                            LaunchArgument residual, LaunchArgument table, std::vector<LaunchArgument>& arguments);

}  // namespace neo::gpu
