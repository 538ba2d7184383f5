#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fuzz/random.h"

namespace neo::fuzz {

// A value in a JSON text. A member of an object begins at its key.
struct Value {
  size_t member = 0;  // where its key begins, or the value itself
  size_t begin = 0;
  size_t end = 0;
  char kind = 0;  // { [ " n (a number) w (true, false, null)
};

// Every value of a text that begins like JSON, in order of their begins; what does not parse ends the list.
std::vector<Value> find_values(std::string_view json);

// The text of a string's value without its escapes, and back.
std::string unescape(std::string_view quoted);
std::string escape(std::string_view text);

// Changes one to three values, so that the text stays JSON for the most part. `donor` gives values of its own; it may
// be empty.
std::string edit(std::string json, std::string_view donor, Random& random);

}  // namespace neo::fuzz
