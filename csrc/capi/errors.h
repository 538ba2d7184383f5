#pragma once

#include <exception>
#include <new>
#include <stdexcept>
#include <utility>

#include "base/check.h"

namespace neo::capi {

// Keep a line for neo_last_error() of this thread.
void keep_error(ErrorKind kind, const char* text) noexcept;
void keep_memory_error() noexcept;

// Runs the body of a function of neo.h: no exception leaves it.
template <class Body>
int guarded(Body&& body) noexcept {
  try {
    std::forward<Body>(body)();
    return 0;
  } catch (const Error& error) {
    keep_error(error.kind(), error.what());
  } catch (const std::bad_alloc&) {
    keep_memory_error();
  } catch (const std::length_error&) {
    keep_memory_error();
  } catch (const std::exception& error) {
    keep_error(ErrorKind::Internal, error.what());
  } catch (...) {
    keep_error(ErrorKind::Internal, "[neo] an exception must be known. Got another");
  }
  return -1;
}

inline void check_pointer(const void* pointer, const char* where, const char* what) {
  NEO_CHECK(pointer, Model, where, what, " must not be NULL. Got NULL");
}

}  // namespace neo::capi
