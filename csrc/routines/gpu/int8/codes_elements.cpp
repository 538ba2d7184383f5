#include "routines/gpu/int8/codes_elements.h"

#include "base/function_ref.h"
#include "routines/gpu/int8/codes.h"
#include "routines/gpu/movement/axes.h"
#include "routines/gpu/remember.h"
#include "routines/patterns/code_function.h"

namespace neo::gpu {
namespace {

using kernel::Array;
using kernel::Builder;
using kernel::Expr;

// Calls `body` with each element of a thread; neighbouring threads have neighbouring elements.
void each_element(Builder& b, const Expr& count, const ElementsSchedule& s, FunctionRef<void(const Expr&)> body) {
  const int of_group = s.threads * s.elements;
  const Expr first = b.let("first", b.group(0, "gx", ceildiv(count, of_group)) * of_group);
  const Expr lx = b.local(0, "lx", s.threads);
  b.unroll("e", s.elements, [&](Expr e) {
    const Expr at = b.let("at", first + lx + e * s.threads);
    b.when(at < count, [&] { body(at); });
  });
}

std::string kernel_name(std::string_view kind, const ElementsSchedule& s) {
  return str("codes_", kind, "_t", s.threads, "e", s.elements);
}

Expr element_count_of(Builder& b) {
  return b.size("count", 1, kMaxElements);
}

kernel::Kernel linear_kernel(bool quantizes, bool is_signed, const ElementsSchedule& s) {
  Builder b(kernel_name(str(quantizes ? "from_numbers_" : "to_numbers_", is_signed ? "i" : "u"), s));
  b.round_each();
  const Expr count = element_count_of(b), zero = b.size("zero", -128, 255);
  const Array x = b.input("x", quantizes ? DType::Float32 : DType::UInt8, count);
  const Array y = b.output("y", quantizes ? DType::UInt8 : DType::Float32, count);
  if (!quantizes) {
    const Expr scale = b.number("scale", DType::Float32);
    each_element(b, count, s,
                 [&](const Expr& at) { y[at] = cast(code_in(x[at], is_signed) - zero, DType::Float32) * scale; });
    return b.finish();
  }
  const Expr lo = b.number("lo", DType::Float32), hi = b.number("hi", DType::Float32);
  const CodesDivisor scale(b, "scale");
  each_element(b, count, s, [&](const Expr& at) {
    const Expr number = b.let("number", x[at]);
    const Expr steps = b.let("steps", scale.quotient(number));
    y[at] = byte_of(rounded_code(select(number == number, steps, kernel::real(0)), lo, hi) + zero);
  });
  return b.finish();
}

kernel::Kernel binary_kernel(const CodesEltwise& f, CodesRepeat repeat, const ElementsSchedule& s) {
  const char* const ops[] = {"add", "sub", "mul"};
  const char* const repeats[] = {"", "_planes", "_last"};
  Builder b(kernel_name(str(ops[static_cast<int>(f.op)], repeats[static_cast<int>(repeat)], "_",
                            f.x_grid.is_signed() ? "i" : "u", f.other_grid.is_signed() ? "i" : "u"),
                        s));
  b.round_each();
  const Expr count = element_count_of(b);
  Expr plane, channels, others = count;
  if (repeat != CodesRepeat::None) {
    plane = b.size("plane", 1, kMaxElements);
    channels = b.size("channels", 1, kMaxElements);
    others = b.size("others", 1, kMaxElements);
  }
  const Array x = b.input("x", DType::UInt8, count), other = b.input("other", DType::UInt8, others);
  const Array y = b.output("y", DType::UInt8, count);
  const auto number = [&](const char* name) { return b.number(name, DType::Float32); };
  const Expr x_zero = b.size("x_zero", -128, 255), other_zero = b.size("other_zero", -128, 255);
  const Expr zero = b.size("zero", -128, 255);
  const Expr x_scale = number("x_scale"), other_scale = number("other_scale"), lo = number("lo"), hi = number("hi");
  const CodesDivisor scale(b, "scale");
  each_element(b, count, s, [&](const Expr& at) {
    const auto put = [&](const Expr& from) {
      const Expr p = b.let("p", cast(code_in(x[at], f.x_grid.is_signed()) - x_zero, DType::Float32) * x_scale);
      const Expr q =
          b.let("q", cast(code_in(other[from], f.other_grid.is_signed()) - other_zero, DType::Float32) * other_scale);
      const Expr made = f.op == CodesEltwise::Op::Add ? p + q : f.op == CodesEltwise::Op::Sub ? p - q : p * q;
      y[at] = byte_of(rounded_code(scale.quotient(made), lo, hi) + zero);
    };
    if (repeat == CodesRepeat::None) return put(at);
    const Expr from = held(
        b, "from", repeat == CodesRepeat::Planes ? at / plane : at / (plane * channels) * channels + at % channels);
    b.when(from >= 0 && from < others, [&] { put(from); });
  });
  return b.finish();
}

kernel::Kernel table_kernel(const ElementsSchedule& s) {
  Builder b(kernel_name("table", s));
  const Expr count = element_count_of(b);
  const Array x = b.input("x", DType::UInt8, count), table = b.input("table", DType::UInt8, kCodeTable);
  const Array y = b.output("y", DType::UInt8, count);
  each_element(b, count, s, [&](const Expr& at) {
    const Expr code = b.let("code", cast(x[at], DType::Int32) & 255);
    y[at] = table[code];
  });
  return b.finish();
}

std::unique_ptr<const Program> program_of(kernel::Kernel kernel, LaunchFunction launches) {
  std::vector<kernel::Kernel> kernels;
  kernels.push_back(std::move(kernel));
  return make_program(std::move(kernels), std::move(launches));
}

// The bounds of codes, less the zero point.
void append_bounds(const CodeGrid& grid, std::vector<LaunchArgument>& arguments) {
  arguments.emplace_back(static_cast<double>(grid.lo() - grid.zero));
  arguments.emplace_back(static_cast<double>(grid.hi() - grid.zero));
}

}  // namespace

std::unique_ptr<const Program> make_codes_linear(const CodeGrid& grid, bool quantizes, const ElementsSchedule& s) {
  return program_of(linear_kernel(quantizes, grid.is_signed(), s), [grid, quantizes](std::span<const Dims> shapes) {
    Launches all;
    const int64_t count = element_count(shapes[0]);
    if (count == 0) return all;
    KernelLaunch launch{0, {count, int64_t{grid.zero}, Operand{0}, Operand{1}}};
    if (quantizes) {
      append_bounds(grid, launch.arguments);
      CodesDivisor::append(grid.scale, launch.arguments);
    } else {
      launch.arguments.emplace_back(static_cast<double>(grid.scale));
    }
    all.launches.push_back(std::move(launch));
    return all;
  });
}

std::unique_ptr<const Program> make_codes_table(const ElementsSchedule& s) {
  return program_of(table_kernel(s), [](std::span<const Dims> shapes) {
    Launches all;
    const int64_t count = element_count(shapes[0]);
    if (count > 0) all.launches.push_back({0, {count, Operand{0}, Packed{0}, Operand{1}}});
    return all;
  });
}

std::unique_ptr<const Program> make_codes_binary(const CodesBinaryForm& form, const ElementsSchedule& s) {
  return program_of(binary_kernel(form.of, form.repeat, s), [form](std::span<const Dims> shapes) {
    Launches all;
    const CodesEltwise& f = form.of;
    const Dims& dims = shapes[static_cast<size_t>(form.x)];
    const int64_t count = element_count(dims);
    if (count == 0) return all;
    KernelLaunch launch{0, {count}};
    if (form.repeat != CodesRepeat::None) {
      const int64_t images = dims[0], channels = dims[1];
      for (const int64_t v : {count / (images * channels), channels, images * channels})
        launch.arguments.emplace_back(v);
    }
    for (const int operand : {form.x, form.other, form.y}) launch.arguments.emplace_back(Operand{operand});
    for (const CodeGrid* grid : {&f.x_grid, &f.other_grid, &f.y_grid})
      launch.arguments.emplace_back(int64_t{grid->zero});
    for (const float v : {f.x_grid.scale, f.other_grid.scale}) launch.arguments.emplace_back(static_cast<double>(v));
    for (const int32_t v : {f.lo, f.hi}) launch.arguments.emplace_back(static_cast<double>(v - f.y_grid.zero));
    CodesDivisor::append(f.y_grid.scale, launch.arguments);
    all.launches.push_back(std::move(launch));
    return all;
  });
}

}  // namespace neo::gpu
