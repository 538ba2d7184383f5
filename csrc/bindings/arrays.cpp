#include <map>

#include "base/check.h"
#include "bindings/bindings.h"

namespace neo::python {
namespace {

// NumPy's own dtypes by name; the others come from ml_dtypes.
py::dtype make_numpy_dtype(DType dtype) {
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

// Kept for the life of the process, because finding a dtype by name costs more than a small call.
py::dtype numpy_dtype(DType dtype) {
  static auto* const known = new std::map<DType, py::dtype>();
  const auto it = known->find(dtype);
  return it != known->end() ? it->second : known->emplace(dtype, make_numpy_dtype(dtype)).first->second;
}

// NumPy's own dtypes by number, those of other packages by name.
std::optional<DType> dtype_of(const py::dtype& dtype) {
  using api = py::detail::npy_api;
  switch (dtype.normalized_num()) {
    case api::NPY_BOOL_:
      return DType::Bool;
    case api::NPY_FLOAT_:
      return DType::Float32;
    case api::NPY_DOUBLE_:
      return DType::Float64;
    case api::NPY_INT32_:
      return DType::Int32;
    case api::NPY_INT64_:
      return DType::Int64;
    case api::NPY_BYTE_:
      return DType::Int8;
    case api::NPY_UBYTE_:
      return DType::UInt8;
    default:
      break;
  }
  return find_dtype(std::string(py::str(dtype.attr("name"))));
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
  const auto dtype = dtype_of(array.dtype());
  NEO_CHECK(dtype.has_value(), Type, "run", "an array's dtype must be known. Got ",
            std::string(py::str(array.dtype().attr("name"))));
  const char order = array.dtype().byteorder();
  const bool native = order == '=' || order == '|';
  constexpr int kDense = int{py::array::c_style} | int{py::detail::npy_api::NPY_ARRAY_ALIGNED_};
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
  constexpr int kMostAxes = 64;  // NumPy's
  NEO_CHECK(tensor.rank() <= kMostAxes, Unsupported, "run", "an array must have at most ", kMostAxes,
            " axes. Got a result of ", tensor.rank());
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
