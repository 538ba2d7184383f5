#include <gtest/gtest.h>

#include "base/check.h"
#include "saved/short_text.h"

namespace neo {
namespace {

constexpr size_t kMax = size_t{1} << 20;

TEST(ShortText, GivesTheTextBack) {
  std::string items;
  for (int i = 0; i < 2000; ++i) items += str("{\"node\":\"Mul_", i, "\",\"reads\":[", i, ",", 7 * i, "]},");
  const std::string texts[] = {"",
                               "~",
                               "~~~~~~~~~~~~~~~~~~~~~~~~",
                               "short",
                               std::string(100'000, 'a'),
                               "\u00e4\u00f6\u00fc\u00e4\u00f6\u00fc\u00e4\u00f6\u00fc\u00e4\u00f6\u00fd tail",
                               items,
                               items + items};
  for (const std::string& text : texts) {
    const std::string shortened = shorten(text);
    EXPECT_EQ(lengthen(shortened, kMax), text);
  }
  EXPECT_LT(shorten(items).size(), items.size() / 2);
  EXPECT_LT(shorten(std::string(100'000, 'a')).size(), 1200u);
}

TEST(ShortText, IsCutBetweenCharacters) {
  // Two characters that share their first byte behind a long match: a reference that ended inside them would leave a
  // text that is not UTF-8.
  const std::string text = "prefix of the text \u00e4 prefix of the text \u00e5";
  const std::string shortened = shorten(text);
  ASSERT_LT(shortened.size(), text.size());
  EXPECT_TRUE(shortened.ends_with("\u00e5"));
}

TEST(ShortText, RefusesWhatIsNoShortText) {
  const char* const wrong[] = {"~",        "abc~",     "abc~  ",   "abc~   ",   "abc~  #",
                               "abc~  \"", "abc~   !", "abc~  %!", "abc~  !}}", "~  ! "};
  for (const char* text : wrong) EXPECT_THROW(lengthen(text, kMax), Error) << text;
  EXPECT_EQ(lengthen("abc~  $ ", kMax), "abcabcabca") << "three bytes back, seven bytes";
}

TEST(ShortText, StaysWithinItsLimit) {
  const std::string shortened = shorten(std::string(1000, 'a'));
  EXPECT_EQ(lengthen(shortened, 1000).size(), 1000u);
  EXPECT_THROW(lengthen(shortened, 999), Error);
  EXPECT_THROW(lengthen("abcdefg", 6), Error);
  EXPECT_THROW(lengthen("a~  !" + std::string(100'000, '}') + " ", 1000), Error);
}

}  // namespace
}  // namespace neo
