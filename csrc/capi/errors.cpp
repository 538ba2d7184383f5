#include "capi/errors.h"

#include <algorithm>
#include <string>

#include "capi/neo.h"

namespace neo::capi {
namespace {

constexpr char kNoMemory[] = "[memory] there must be memory for what a call makes. Got none";

struct LastError {
  std::string text;
  const char* shown = "";
  neo_error_kind kind = NEO_ERROR_NONE;
};
thread_local LastError last;

neo_error_kind kind_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::Model:
      return NEO_ERROR_MODEL;
    case ErrorKind::Shape:
      return NEO_ERROR_SHAPE;
    case ErrorKind::Type:
      return NEO_ERROR_DTYPE;
    case ErrorKind::Unsupported:
      return NEO_ERROR_UNSUPPORTED;
    case ErrorKind::Resource:
      return NEO_ERROR_RESOURCE;
    case ErrorKind::Memory:
      return NEO_ERROR_MEMORY;
    case ErrorKind::Cancelled:
      return NEO_ERROR_CANCELLED;
    case ErrorKind::Time:
      return NEO_ERROR_TIME;
    case ErrorKind::Internal:
      return NEO_ERROR_INTERNAL;
  }
  return NEO_ERROR_INTERNAL;
}

}  // namespace

void keep_error(ErrorKind kind, const char* text) noexcept {
  try {
    last.text = text;
  } catch (...) {
    keep_memory_error();
    return;
  }
  std::replace(last.text.begin(), last.text.end(), '\n', ' ');
  last.shown = last.text.c_str();
  last.kind = kind_of(kind);
}

void keep_memory_error() noexcept {
  last.shown = kNoMemory;
  last.kind = NEO_ERROR_MEMORY;
}

}  // namespace neo::capi

const char* neo_last_error(void) {
  return neo::capi::last.shown;
}

neo_error_kind neo_last_error_kind(void) {
  return neo::capi::last.kind;
}
