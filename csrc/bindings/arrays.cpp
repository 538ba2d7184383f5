#include "base/check.h"
#include "bindings/bindings.h"

namespace neo::python {
namespace {

// NumPy's own dtypes by name; the others come from ml_dtypes.
py::dtype numpy_dtype(DType dtype) {
  const std::string text(name(dtype));
  switch (dtype) {
    case DType::String:
      return py::dtype("O");
    case DType::BFloat16:
    case DType::Float8E4M3FN:
    case DType::Float8E4M3FNUZ:
    case DType::Float8E5M2:
    case DType::Float8E5M2FNUZ:
    case DType::Float8E8M0:
    case DType::Float4E2M1:
    case DType::Int4:
    case DType::Int2:
    case DType::UInt4:
    case DType::UInt2:
      return py::dtype::from_args(py::module_::import("ml_dtypes").attr(text.c_str()));
    default:
      return py::dtype(text);
  }
}

Tensor strings_of(const py::array& array) {
  const py::list flat = array.attr("ravel")().attr("tolist")();
  Dims dims(array.shape(), array.shape() + array.ndim());
  Tensor tensor(DType::String, dims);
  int64_t i = 0;
  for (const py::handle item : flat) {
    tensor.strings()[i++] =
        py::isinstance<py::bytes>(item) ? std::string(py::cast<py::bytes>(item)) : std::string(py::str(item));
  }
  return tensor;
}

}  // namespace

Tensor to_tensor(const py::handle& object) {
  py::array array = py::array::ensure(object);
  if (!array) {
    PyErr_Clear();
    fail(ErrorKind::Type, "run",
         str("an input must be an array. Got ", std::string(py::str(py::type::of(object).attr("__name__")))));
  }
  const char kind = array.dtype().kind();
  if (kind == 'U' || kind == 'S' || kind == 'O') return strings_of(array);
  const std::string text = py::str(array.dtype().attr("name"));
  const auto dtype = find_dtype(text);
  NEO_CHECK(dtype.has_value(), Type, "run", "an array's dtype must be known. Got ", text);
  const bool native = py::cast<bool>(array.dtype().attr("isnative"));
  constexpr int kDense = py::array::c_style | py::detail::npy_api::NPY_ARRAY_ALIGNED_;
  if ((array.flags() & kDense) != kDense || !native) {
    const py::object wanted = native ? array.dtype() : py::object(array.dtype().attr("newbyteorder")("="));
    array = py::module_::import("numpy").attr("array")(array, wanted, py::arg("order") = "C");
  }
  Dims dims(array.shape(), array.shape() + array.ndim());
  auto* holder = new py::object(array);
  std::shared_ptr<void> owner(holder, [](void* p) {
    const py::gil_scoped_acquire gil;
    delete static_cast<py::object*>(p);
  });
  return Tensor(*dtype, std::move(dims), const_cast<void*>(array.data()), std::move(owner));
}

py::array to_array(const Tensor& tensor) {
  const std::vector<py::ssize_t> shape(tensor.dims().begin(), tensor.dims().end());
  if (tensor.dtype() == DType::String) {
    py::array_t<py::object> array(shape);
    auto* out = static_cast<PyObject**>(static_cast<void*>(array.mutable_data()));
    for (int64_t i = 0; i < tensor.size(); ++i) {
      Py_XSETREF(out[i], PyUnicode_DecodeUTF8(tensor.strings()[i].data(),
                                              static_cast<Py_ssize_t>(tensor.strings()[i].size()), "replace"));
    }
    return array;
  }
  auto* holder = new std::shared_ptr<void>(tensor.owner());
  const py::capsule base(holder, [](void* p) { delete static_cast<std::shared_ptr<void>*>(p); });
  tensor.data();
  return py::array(numpy_dtype(tensor.dtype()), shape, tensor.data(), base);
}

HostValue to_host(const py::handle& object) {
  if (object.is_none()) return {};
  if (py::isinstance<py::list>(object) || py::isinstance<py::tuple>(object)) {
    std::vector<HostValue> items;
    for (const py::handle item : object) items.push_back(to_host(item));
    return HostValue::sequence(std::move(items));
  }
  return to_tensor(object);
}

py::object to_python(const HostValue& value) {
  switch (value.kind) {
    case HostValue::Kind::Empty:
      return py::none();
    case HostValue::Kind::Tensor:
      return to_array(value.tensor);
    case HostValue::Kind::Sequence: {
      py::list list;
      for (const HostValue& item : value.items) list.append(to_python(item));
      return list;
    }
  }
  return py::none();
}

}  // namespace neo::python
