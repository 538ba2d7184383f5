#pragma once

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

namespace neo {

// A function that is called before the expression it is given in ends: a parameter, never a member or a result. It
// points at the caller's object, so that passing a lambda makes no copy and takes no memory. A function's name is no
// object: such a function is given as a lambda.
template <class Signature>
class FunctionRef;

template <class Result, class... Args>
class FunctionRef<Result(Args...)> {
 public:
  template <class F>
  requires(!std::same_as<std::remove_cvref_t<F>, FunctionRef> && !std::is_function_v<std::remove_reference_t<F>> &&
           std::is_invocable_r_v<Result, F&, Args...>) FunctionRef(F&& function)  // NOLINT: a lambda is given as it is
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(function)))),
        call_([](void* object, Args... args) -> Result {
          return (*static_cast<std::remove_reference_t<F>*>(object))(std::forward<Args>(args)...);
        }) {}

  Result operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;
  Result (*call_)(void*, Args...);
};

}  // namespace neo
