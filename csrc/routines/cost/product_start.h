#pragma once

#include <string_view>

namespace neo {

// Microseconds that a product takes between the steps of a plan beyond its estimate, which is of large products by
// themselves: a small one feels its start (product_rows.inc).
double start_us(std::string_view routine);

}  // namespace neo
