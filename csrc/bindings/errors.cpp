#include <stdexcept>

#include "base/check.h"
#include "bindings/bindings.h"

namespace neo::python {
namespace {

const char* class_name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::Model:
      return "ModelError";
    case ErrorKind::Shape:
      return "ShapeError";
    case ErrorKind::Type:
      return "DTypeError";
    case ErrorKind::Unsupported:
      return "UnsupportedError";
    case ErrorKind::Resource:
      return "ResourceError";
    case ErrorKind::Memory:
      return "OutOfMemoryError";
    case ErrorKind::Time:
      return "TimeLimitError";
    case ErrorKind::Cancelled:
      return "CancelledError";
    case ErrorKind::Internal:
      return "InternalError";
  }
  return "InternalError";
}

void set_memory_error() {
  const py::object type = py::module_::import("neo.errors").attr("OutOfMemoryError");
  PyErr_SetString(type.ptr(), "[neo] memory must be available. Got none, expected more");
}

}  // namespace

void bind_errors(py::module_&) {
  py::register_exception_translator([](std::exception_ptr p) {
    try {
      if (p) std::rethrow_exception(p);
    } catch (const Error& e) {
      const py::object type = py::module_::import("neo.errors").attr(class_name(e.kind()));
      PyErr_SetString(type.ptr(), e.what());
    } catch (const std::bad_alloc&) {
      set_memory_error();
    } catch (const std::length_error&) {
      set_memory_error();
    }
  });
}

}  // namespace neo::python
