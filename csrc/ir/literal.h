#pragma once

#include <string>
#include <string_view>

#include "ir/graph.h"

namespace neo {

// Elements and attributes as print() writes them.
std::string print_float(double x);
std::string print_element(DType dtype, const void* element);
// False where the text is no element of the dtype; strings come without their quotes.
bool parse_element(std::string_view text, DType dtype, void* element);
std::string print_tensor(const Tensor& tensor, int64_t inline_elements);
std::string print_attr(const Attr& attr, int64_t inline_elements);

// Words that names are quoted to tell apart from.
bool is_keyword(std::string_view word);

}  // namespace neo
