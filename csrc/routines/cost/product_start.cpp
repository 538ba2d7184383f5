#include "routines/cost/product_start.h"

namespace neo {
namespace {

struct ProductRow {
  std::string_view routine;
  double start_us;
};

constexpr ProductRow kProductRows[] = {
#define NEO_PRODUCT_ROW(routine, start_us) {routine, start_us},
#include "routines/cost/product_rows.inc"
#undef NEO_PRODUCT_ROW
};

}  // namespace

double start_us(std::string_view routine) {
  for (const ProductRow& row : kProductRows) {
    if (row.routine == routine) return row.start_us;
  }
  return 0;
}

}  // namespace neo
