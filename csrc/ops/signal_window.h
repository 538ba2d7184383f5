#pragma once

#include <string_view>

namespace neo {

// a + b cos(2 pi n / N) + c cos(4 pi n / N)
struct SignalWindow {
  std::string_view op;
  double a;
  double b;
  double c;
};

// That of HannWindow, HammingWindow or BlackmanWindow.
const SignalWindow& signal_window(std::string_view op);

}  // namespace neo
