#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <sstream>
#include <string>

#include "base/check.h"
#include "base/function_ref.h"

namespace neo {
namespace {

template <class... Args>
std::string streamed(const Args&... args) {
  std::ostringstream out;
  (out << ... << args);
  return out.str();
}

TEST(Check, str_prints_what_a_stream_prints) {
  const std::string text = "text";
  const std::string_view view = std::string_view(text).substr(1, 2);
  enum Plain { kFirst, kSecond };
  EXPECT_EQ(str(text, view, "literal", 'c', kSecond), streamed(text, view, "literal", 'c', kSecond));
  EXPECT_EQ(str(true, int16_t{-3}, uint32_t{4}, size_t{5}), streamed(true, int16_t{-3}, uint32_t{4}, size_t{5}));
  EXPECT_EQ(str(std::numeric_limits<int64_t>::min(), std::numeric_limits<uint64_t>::max()),
            streamed(std::numeric_limits<int64_t>::min(), std::numeric_limits<uint64_t>::max()));
  EXPECT_EQ(str(0.1, 1e20, 1.5f, -0.0, 1.0 / 3), streamed(0.1, 1e20, 1.5f, -0.0, 1.0 / 3));
  EXPECT_EQ(str(), "");
}

TEST(Check, a_message_has_its_place_and_its_parts) {
  const std::string place = "Conv";
  try {
    NEO_CHECK(place.empty(), Shape, place, "sizes must agree. Got ", 3, ", expected ", 4.5);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Shape);
    EXPECT_STREQ(error.what(), "[Conv] sizes must agree. Got 3, expected 4.5");
  }
}

int twice(FunctionRef<int(const int&)> function, int x) {
  return function(function(x));
}

TEST(FunctionRef, calls_the_object_that_it_was_given) {
  int calls = 0;
  const auto counted = [&calls, kept = std::make_unique<int>(3)](int x) {
    ++calls;
    return x + *kept;
  };
  EXPECT_EQ(twice(counted, 1), 7);
  EXPECT_EQ(twice([](int x) { return x * x; }, 3), 81);
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace neo
