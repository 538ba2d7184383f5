#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>

#include "base/check.h"
#include "base/knobs.h"

namespace neo {
namespace {

// Sets a variable for one scope.
class ScopedEnv {
 public:
  ScopedEnv(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~ScopedEnv() { unsetenv(name_); }

 private:
  const char* name_;
};

template <class F>
std::string knob_message(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Unsupported);
    return error.what();
  }
  return "no error";
}

TEST(Knobs, are_declared_once_in_order_with_a_sentence) {
  std::set<std::string> names;
  int position = 0;
  for (const KnobInfo& info : all_knobs()) {
    EXPECT_EQ(static_cast<int>(info.knob), position++);
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_EQ(std::string(info.name).rfind("NEO_", 0), 0u) << info.name;
    EXPECT_EQ(std::string(info.summary).back(), '.') << info.name;
    EXPECT_EQ(&get_knob_info(info.knob), &info);
  }
  EXPECT_EQ(position, static_cast<int>(Knob::Device) + 1);
}

TEST(Knobs, default_passes_its_own_check) {
  for (const KnobInfo& info : all_knobs()) {
    unsetenv(info.name);
    switch (info.type) {
      case KnobType::Bool:
        EXPECT_NO_THROW(knob_bool(info.knob)) << info.name;
        break;
      case KnobType::Int:
        EXPECT_NO_THROW(knob_int(info.knob)) << info.name;
        break;
      case KnobType::Choice:
      case KnobType::Text:
        EXPECT_EQ(knob_string(info.knob), info.default_value);
        break;
    }
  }
}

TEST(Knobs, value_is_read_at_each_use) {
  ScopedEnv env("NEO_SPIN_US", "7");
  EXPECT_EQ(knob_int(Knob::SpinUs), 7);
  setenv("NEO_SPIN_US", "8", 1);
  EXPECT_EQ(knob_int(Knob::SpinUs), 8);
}

TEST(Knobs, empty_value_is_the_default) {
  ScopedEnv env("NEO_SPIN_US", "");
  EXPECT_EQ(knob_int(Knob::SpinUs), 50);
}

TEST(Knobs, bool_takes_six_words) {
  for (const char* word : {"1", "true", "on"}) {
    ScopedEnv env("NEO_VERIFY", word);
    EXPECT_TRUE(knob_bool(Knob::Verify)) << word;
  }
  for (const char* word : {"0", "false", "off"}) {
    ScopedEnv env("NEO_VERIFY", word);
    EXPECT_FALSE(knob_bool(Knob::Verify)) << word;
  }
}

TEST(Knobs, bad_bool_names_the_variable_and_the_value) {
  ScopedEnv env("NEO_VERIFY", "yes");
  const std::string message = knob_message([] { knob_bool(Knob::Verify); });
  EXPECT_NE(message.find("[NEO_VERIFY]"), std::string::npos) << message;
  EXPECT_NE(message.find("Got 'yes'"), std::string::npos) << message;
}

TEST(Knobs, bad_integer_names_the_variable_and_the_range) {
  for (const char* text : {"two", "4x", "-1", "1025", "99999999999999999999", " 4", "4 ", "0x4", "1.5"}) {
    ScopedEnv env("NEO_NUM_THREADS", text);
    const std::string message = knob_message([] { knob_int(Knob::NumThreads); });
    EXPECT_NE(message.find("[NEO_NUM_THREADS]"), std::string::npos) << message;
    EXPECT_NE(message.find("expected 0 to 1024"), std::string::npos) << message;
  }
}

TEST(Knobs, bad_choice_lists_the_choices) {
  for (const char* text : {"loud", "of", "off auto", "automatic"}) {
    ScopedEnv env("NEO_PIN", text);
    const std::string message = knob_message([] { knob_string(Knob::Pin); });
    EXPECT_NE(message.find("[NEO_PIN]"), std::string::npos) << message;
    EXPECT_NE(message.find("expected one of off, auto, on"), std::string::npos) << message;
  }
}

TEST(Knobs, type_prints_for_a_list) {
  EXPECT_EQ(knob_type_text(get_knob_info(Knob::Verify)), "bool");
  EXPECT_EQ(knob_type_text(get_knob_info(Knob::NumThreads)), "int 0..1024");
  EXPECT_EQ(knob_type_text(get_knob_info(Knob::Pin)), "off|auto|on");
  EXPECT_EQ(knob_type_text(get_knob_info(Knob::MaxIsa)), "text");
}

TEST(Knobs, reading_as_another_type_is_a_bug) {
  EXPECT_THROW(knob_int(Knob::Verify), Error);
  EXPECT_THROW(knob_bool(Knob::SpinUs), Error);
  EXPECT_THROW(knob_string(Knob::SpinUs), Error);
}

}  // namespace
}  // namespace neo
