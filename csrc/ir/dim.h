#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"

namespace neo {

// The largest size a dim or a tensor may have; everything above is refused as overflow.
inline constexpr int64_t kMaxExtent = int64_t{1} << 46;

// The largest value a symbol takes unless its range says otherwise; checked when a call binds its sizes.
inline constexpr int64_t kMaxSymbol = 1'000'000'000;

// The size that costs assume where a model says nothing.
inline constexpr int64_t kDefaultHint = 512;

// A closed interval of integers.
struct Range {
  int64_t lo = 0;
  int64_t hi = kMaxExtent;
};

class Dim;

// A named unknown size. Two symbols are the same when their names are.
struct Symbol {
  std::string name;
  Range range{0, kMaxSymbol};          // what the size may be
  int64_t hint = 0;                    // the value that costs are taken at; 0: none given
  std::shared_ptr<const Dim> formula;  // set: the symbol stands for this expression (SymbolTable::define)
};

using SymbolValues = std::map<std::string, int64_t, std::less<>>;
using SymbolLookup = std::function<std::optional<Symbol>(std::string_view name)>;

// An integer, or an expression over symbols. Closed under + - * floordiv ceildiv mod min max broadcast.
// Kept in a canonical form (a polynomial over atoms), so == on equal sums and products of the same atoms is true;
// false means "not known to be equal". Arithmetic that overflows throws a Shape error.
class Dim {
 public:
  Dim() = default;
  Dim(int64_t value) : constant_(value) {}  // NOLINT: integers are dims
  static Dim symbol(std::string name, Range range = {0, kMaxSymbol}, int64_t hint = 0);
  static Dim symbol(Symbol symbol);

  bool is_constant() const { return terms_ == nullptr; }
  int64_t value() const;  // a constant's; asserts otherwise
  bool is(int64_t value) const { return is_constant() && constant_ == value; }
  int node_count() const;                   // of the expression, a constant being one node
  std::optional<Symbol> as_symbol() const;  // set when this is one bare symbol

  friend bool operator==(const Dim& a, const Dim& b);
  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  friend Dim floordiv(const Dim& a, const Dim& b);  // towards minus infinity; division by constant 0 throws
  friend Dim ceildiv(const Dim& a, const Dim& b);
  friend Dim mod(const Dim& a, const Dim& b);  // sign of the divisor
  friend Dim min(const Dim& a, const Dim& b);
  friend Dim max(const Dim& a, const Dim& b);
  friend Dim broadcast(const Dim& a, const Dim& b);  // a == 1 ? b : a, the size of a broadcast axis

  // An interval that holds every value this can take; the bounds of int64 stand for none.
  Range range() const;
  // The value with every symbol at its hint, or at kDefaultHint within its range where it has none.
  int64_t hint() const;

  // Throws an Internal error for a symbol without a value, a Shape error on overflow.
  int64_t evaluate(const SymbolValues& values) const;
  // Symbols without a replacement stay.
  Dim substitute(const std::function<std::optional<Dim>(const Symbol&)>& replacement) const;
  // Adds the symbols this depends on.
  void collect_symbols(std::map<std::string, Symbol>& out) const;

  // "64", "N", "2*N + 1", "floordiv(N + 1, 2)"; parses back.
  std::string to_string() const;
  // Symbols are taken from `symbols` where it knows them, else they have no range and no hint.
  static Dim parse(std::string_view text, const SymbolLookup& symbols = {});

  struct Terms;

 private:
  explicit Dim(std::shared_ptr<const Terms> terms) : terms_(std::move(terms)) {}
  static Dim from_terms(Terms terms);
  friend struct DimAccess;

  int64_t constant_ = 0;
  std::shared_ptr<const Terms> terms_;
};

Dim floordiv(const Dim& a, const Dim& b);
Dim ceildiv(const Dim& a, const Dim& b);
Dim mod(const Dim& a, const Dim& b);
Dim min(const Dim& a, const Dim& b);
Dim max(const Dim& a, const Dim& b);
Dim broadcast(const Dim& a, const Dim& b);

// Whether arithmetic refused an expression with more nodes or a higher degree than a Dim may have. Inference then goes
// on with symbols that stand for the parts.
bool is_large_expression(const Error& error);

// Three-valued comparison: true, false, or not provable from the symbols' ranges.
std::optional<bool> prove_equal(const Dim& a, const Dim& b);
std::optional<bool> prove_less(const Dim& a, const Dim& b);

}  // namespace neo
