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

// NumPy's own dtypes by number, those of other packages by name, which is remembered: comparing names takes longer than
// most small calls.
std::optional<DType> dtype_of(const py::dtype& dtype) {
  using api = py::detail::npy_api;
  constexpr int kHalf = 23, kFirstOfOthers = 256;  // NPY_HALF, NPY_USERDEF
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
    case api::NPY_SHORT_:
      return DType::Int16;
    case api::NPY_USHORT_:
      return DType::UInt16;
    case api::NPY_UINT32_:
      return DType::UInt32;
    case api::NPY_UINT64_:
      return DType::UInt64;
    case kHalf:
      return DType::Float16;
    default:
      break;
  }
  static auto* const others = new std::map<int, DType>();
  if (const auto it = others->find(dtype.num()); it != others->end()) return it->second;
  const auto found = find_dtype(std::string(py::str(dtype.attr("name"))));
  if (found && dtype.num() >= kFirstOfOthers) others->emplace(dtype.num(), *found);
  return found;
}

std::string_view utf8_of(PyObject* text) {
  Py_ssize_t size = 0;
  const char* begin = PyUnicode_AsUTF8AndSize(text, &size);
  if (begin == nullptr) throw py::error_already_set();
  return {begin, static_cast<size_t>(size)};
}

std::string string_of(PyObject* item) {
  if (PyUnicode_Check(item)) return std::string(utf8_of(item));
  if (PyBytes_Check(item)) return py::reinterpret_borrow<py::bytes>(item);
  return std::string(py::str(py::handle(item)));
}

Tensor strings_of(const py::array& array) {
  Tensor tensor(DType::String, Dims(array.shape(), array.shape() + array.ndim()));
  std::string* to = tensor.strings();
  if (array.dtype().kind() == 'O' && (array.flags() & py::array::c_style) != 0) {
    // Unset elements are null.
    auto* const* items = static_cast<PyObject* const*>(array.data());
    for (int64_t i = 0; i < tensor.size(); ++i) to[i] = string_of(items[i] == nullptr ? Py_None : items[i]);
    return tensor;
  }
  const py::list flat = array.attr("ravel")().attr("tolist")();
  for (const py::handle item : flat) *to++ = string_of(item.ptr());
  return tensor;
}

py::str to_text(const std::string& text) {
  PyObject* made = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
  if (made == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::str>(made);
}

py::object to_scalar(const Tensor& tensor, int64_t i) {
  const DType dtype = tensor.dtype();
  if (dtype == DType::String) return to_text(tensor.strings()[i]);
  const auto* element = static_cast<const std::byte*>(tensor.data()) + i * item_bytes(dtype);
  if (dtype == DType::Bool) return py::bool_(load_int64(dtype, element) != 0);
  if (is_float(dtype)) return py::float_(load_double(dtype, element));
  const int64_t number = load_int64(dtype, element);
  return dtype == DType::UInt64 ? py::int_(static_cast<uint64_t>(number)) : py::int_(number);
}

// Writes a key or a value of a map; a DType error where it is none of the dtype.
void store_scalar(const Tensor& tensor, int64_t i, const py::handle& object, std::string_view role) {
  const DType dtype = tensor.dtype();
  try {
    if (dtype == DType::String) {
      tensor.strings()[i] = py::cast<std::string>(object);
      return;
    }
    auto* element = static_cast<std::byte*>(tensor.data()) + i * item_bytes(dtype);
    if (is_float(dtype)) {
      store_double(dtype, element, py::cast<double>(object));
      return;
    }
    const auto number = py::cast<int64_t>(object);
    store_int64(dtype, element, number);
    if (load_int64(dtype, element) == number) return;
  } catch (const py::cast_error&) {
    PyErr_Clear();
  }
  fail(ErrorKind::Type, "run",
       str("every ", role, " of a map must be of dtype ", name(dtype), ". Got ", std::string(py::repr(object))));
}

// The keys of maps as Python's. Maps that follow each other mostly have the same ones.
class KeyObjects {
 public:
  const std::vector<py::object>& of(const Tensor& keys) {
    const bool is_known = keys.dtype() == dtype_ && keys.data() == data_ && keys.size() == std::ssize(objects_);
    if (is_known) return objects_;
    dtype_ = keys.dtype();
    data_ = keys.data();
    objects_.clear();
    for (int64_t i = 0; i < keys.size(); ++i) objects_.push_back(to_scalar(keys, i));
    return objects_;
  }

 private:
  DType dtype_ = DType::Undefined;
  const void* data_ = nullptr;
  std::vector<py::object> objects_;
};

py::dict to_dict(const HostValue& map, KeyObjects& known) {
  const std::vector<py::object>& keys = known.of(map.items[0].tensor);
  const Tensor& values = map.items[1].tensor;
  py::dict dict;
  const float* floats = values.dtype() == DType::Float32 ? values.as<float>() : nullptr;
  for (int64_t i = 0; i < std::ssize(keys); ++i) {
    const py::object value =
        floats != nullptr ? py::object(py::float_(static_cast<double>(floats[i]))) : to_scalar(values, i);
    if (PyDict_SetItem(dict.ptr(), keys[static_cast<size_t>(i)].ptr(), value.ptr()) != 0) throw py::error_already_set();
  }
  return dict;
}

HostValue to_map(const py::dict& dict, const Type& type) {
  NEO_CHECK(type.kind == Type::Kind::Map, Type, "run", "a value of type ", type.to_string(),
            " must not be a dict. Got ", py::len(dict), " entries");
  const auto count = static_cast<int64_t>(py::len(dict));
  Tensor keys(type.key(), {count}), values(type.element->dtype, {count});
  int64_t i = 0;
  for (const auto& [key, value] : dict) {
    store_scalar(keys, i, key, "key");
    store_scalar(values, i++, value, "value");
  }
  return HostValue::map(std::move(keys), std::move(values));
}

}  // namespace

Tensor to_tensor(const py::handle& object) {
  // Asking NumPy for an array costs more than a small call, of one that is there already, too.
  const bool is_array = py::isinstance<py::array>(object);
  py::array array = is_array ? py::reinterpret_borrow<py::array>(object) : py::array::ensure(object);
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
  void* const data = const_cast<void*>(array.data());
  std::shared_ptr<void> owner(array.release().ptr(), [](void* p) {
    const py::gil_scoped_acquire gil;
    Py_DECREF(static_cast<PyObject*>(p));
  });
  return Tensor(*dtype, std::move(dims), data, std::move(owner));
}

py::array to_array(const Tensor& tensor) {
  constexpr int kMaxAxes = 64;  // NumPy's
  NEO_CHECK(tensor.rank() <= kMaxAxes, Unsupported, "run", "an array must have at most ", kMaxAxes,
            " axes. Got a result of ", tensor.rank());
  const std::vector<py::ssize_t> shape(tensor.dims().begin(), tensor.dims().end());
  if (tensor.dtype() == DType::String) {
    py::array_t<py::object> array(shape);
    auto* out = static_cast<PyObject**>(static_cast<void*>(array.mutable_data()));
    for (int64_t i = 0; i < tensor.size(); ++i) {
      Py_XSETREF(out[i], to_text(tensor.strings()[i]).release().ptr());
    }
    return array;
  }
  auto* holder = new std::shared_ptr<void>(tensor.owner());
  const py::capsule base(holder, [](void* p) { delete static_cast<std::shared_ptr<void>*>(p); });
  tensor.data();
  return py::array(numpy_dtype(tensor.dtype()), shape, tensor.data(), base);
}

HostValue to_host(const py::handle& object, const Type& type) {
  if (object.is_none()) return {};
  const Type& inner = type.kind == Type::Kind::Optional ? *type.element : type;
  if (py::isinstance<py::dict>(object)) return to_map(py::reinterpret_borrow<py::dict>(object), inner);
  if (py::isinstance<py::list>(object) || py::isinstance<py::tuple>(object)) {
    std::vector<HostValue> items;
    const Type& element = inner.kind == Type::Kind::Sequence ? *inner.element : inner;
    for (const py::handle item : object) items.push_back(to_host(item, element));
    return HostValue::sequence(std::move(items));
  }
  return to_tensor(object);
}

std::vector<HostValue> to_hosts(const py::list& objects, const Plan& plan) {
  std::vector<HostValue> values;
  values.reserve(py::len(objects));
  for (const py::handle x : objects) {
    const size_t i = values.size();
    NEO_ASSERT(i < plan.root->arguments.size(), "got ", py::len(objects), " inputs");
    try {
      values.push_back(to_host(x, plan.root->slots[static_cast<size_t>(plan.root->arguments[i])].type));
    } catch (const Error& error) {
      fail_at(error, str("input '", plan.input_names[i], "'"));
    }
  }
  return values;
}

py::object to_python(const HostValue& value) {
  switch (value.kind) {
    case HostValue::Kind::Empty:
      return py::none();
    case HostValue::Kind::Tensor:
      return to_array(value.tensor);
    case HostValue::Kind::Map: {
      KeyObjects keys;
      return to_dict(value, keys);
    }
    case HostValue::Kind::Sequence: {
      KeyObjects keys;
      py::list list(value.items.size());
      for (size_t i = 0; i < value.items.size(); ++i) {
        const HostValue& item = value.items[i];
        list[i] = item.kind == HostValue::Kind::Map ? to_dict(item, keys) : to_python(item);
      }
      return list;
    }
  }
  return py::none();
}

}  // namespace neo::python
