#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace neo {

// A shared library opened at run time and never closed: drivers do not survive it.
class DriverLibrary {
 public:
  // Tries the names in order. None there is a Resource error with what the loader said and the hint.
  DriverLibrary(std::string_view where, const std::vector<std::string>& names, std::string_view hint);

  // A function the library must have; null where `optional` and it has not.
  template <class F>
  void get(const char* symbol, F*& function, bool optional = false) const {
    function = reinterpret_cast<F*>(find(symbol, optional));
  }

 private:
  void* find(const char* symbol, bool optional) const;

  std::string where_;
  std::string name_;
  void* handle_ = nullptr;
};

}  // namespace neo
