#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "base/check.h"
#include "bindings/bindings.h"

namespace neo::python {
namespace {

constexpr int kMaxMessageDepth = 100;  // where protobuf's own parsers stop
constexpr size_t kMaxFieldNumber = 32;

// Ends the reading of bytes that protobuf's own parser has to judge.
[[noreturn]] void refuse_message() {
  fail(ErrorKind::Model, "import", "a message must be laid out as writers of ONNX do it. Got another form");
}

enum class FieldKind : uint8_t { Int32, Int64, UInt64, Enum, Float, Double, Text, Bytes, Message };

enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

WireType wire_type_of(FieldKind kind) {
  if (kind == FieldKind::Float) return kFixed32;
  if (kind == FieldKind::Double) return kFixed64;
  return kind < FieldKind::Float ? kVarint : kBytes;
}

struct MessageField {
  py::object name;  // null: nobody asks for the field of this number
  FieldKind kind = FieldKind::Int32;
  bool is_repeated = false;
  bool is_array = false;  // repeated numbers as an array of NumPy's
  int group = 0;          // of fields that exclude each other; 0: none
  uint64_t limit = 0;     // greatest number of an enumeration; index of a message's class
};

struct MessageClass {
  py::object type;
  std::array<MessageField, kMaxFieldNumber> fields;  // by number
};

// The rest of a message that is read.
struct MessageBytes {
  const uint8_t* at;
  const uint8_t* end;

  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (at == end) refuse_message();
      const uint8_t byte = *at++;
      if (shift < 64) value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    refuse_message();
  }
  MessageBytes take(uint64_t count) {
    if (count > static_cast<uint64_t>(end - at)) refuse_message();
    const MessageBytes part{at, at + count};
    at = part.end;
    return part;
  }
  MessageBytes field() { return take(varint()); }
  template <class T>
  T fixed() {
    T value;
    std::memcpy(&value, take(sizeof(T)).at, sizeof(T));
    return value;
  }
  void skip(uint64_t wire) {
    if (wire == kVarint) {
      varint();
    } else if (wire == kBytes) {
      field();
    } else if (wire == kFixed32 || wire == kFixed64) {
      take(wire == kFixed32 ? 4 : 8);
    } else {
      refuse_message();
    }
  }
  const char* text() const { return static_cast<const char*>(static_cast<const void*>(at)); }
  Py_ssize_t size() const { return end - at; }
};

py::object owned(PyObject* made) {
  if (made == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(made);
}

void set_field(const py::object& message, const MessageField& field, const py::object& value) {
  if (PyObject_SetAttr(message.ptr(), field.name.ptr(), value.ptr()) != 0) throw py::error_already_set();
}

// The elements of repeated numbers.
struct NumberArray {
  const MessageField* field = nullptr;
  std::unique_ptr<std::vector<char>> bytes = std::make_unique<std::vector<char>>();

  template <class T>
  void add(T number) {
    const auto* first = static_cast<const char*>(static_cast<const void*>(&number));
    bytes->insert(bytes->end(), first, first + sizeof(T));
  }
  // Makes room for the numbers of the next field, which lie there as they are.
  void reserve_for(MessageBytes next) { bytes->reserve(bytes->size() + static_cast<size_t>(next.field().size())); }
  void add_next(MessageBytes& in) {
    if (field->kind == FieldKind::Float) return add(in.fixed<float>());
    if (field->kind == FieldKind::Double) return add(in.fixed<double>());
    if (field->kind == FieldKind::Int32) return add(static_cast<int32_t>(in.varint()));
    add(in.varint());
  }
  // Takes the bytes away.
  py::object to_python() {
    constexpr const char* kDTypes[] = {"i4", "i8", "u8", "", "f4", "f8"};
    const py::dtype dtype(kDTypes[static_cast<size_t>(field->kind)]);
    const auto count = static_cast<py::ssize_t>(bytes->size()) / dtype.itemsize();
    const char* const data = bytes->data();
    const py::capsule owner(bytes.release(), [](void* p) { delete static_cast<std::vector<char>*>(p); });
    return py::array(dtype, count, data, owner);
  }
};

// Reads messages in protobuf's wire format (protobuf.dev, "Encoding") into objects of Python's, by a table of their
// fields.
class MessageReader {
 public:
  // Number, name, kind, whether it is repeated, as an array; group; limit.
  using FieldSpec = std::tuple<size_t, std::string, int, bool, bool, int, uint64_t>;
  using ClassSpec = std::pair<py::object, std::vector<FieldSpec>>;

  explicit MessageReader(const std::vector<ClassSpec>& classes) {
    for (const auto& [type, fields] : classes) {
      MessageClass& made = classes_.emplace_back();
      made.type = type;
      for (const auto& [number, name, kind, is_repeated, is_array, group, limit] : fields) {
        made.fields.at(number) = {owned(PyUnicode_InternFromString(name.c_str())),
                                  static_cast<FieldKind>(kind),
                                  is_repeated,
                                  is_array,
                                  group,
                                  limit};
      }
    }
  }

  py::object read(const py::bytes& data, size_t index) const {
    const std::string_view text(data);
    const auto* begin = static_cast<const uint8_t*>(static_cast<const void*>(text.data()));
    try {
      return message({begin, begin + text.size()}, classes_.at(index), 0);
    } catch (const Error&) {
      return py::none();
    }
  }

 private:
  py::object message(MessageBytes in, const MessageClass& type, int depth) const {
    if (depth > kMaxMessageDepth) refuse_message();
    auto* const python_type = static_cast<PyTypeObject*>(static_cast<void*>(type.type.ptr()));
    const py::object made = owned(python_type->tp_new(python_type, py::tuple().ptr(), nullptr));
    std::array<PyObject*, kMaxFieldNumber> seen{};  // values of singular fields, lists of repeated ones
    std::vector<NumberArray> arrays;
    uint32_t groups = 0;
    while (in.at != in.end) {
      const uint64_t tag = in.varint();
      const uint64_t wire = tag & 7, number = tag >> 3;
      if (number == 0 || tag > std::numeric_limits<uint32_t>::max()) refuse_message();
      if (number >= kMaxFieldNumber || !type.fields[number].name) {
        in.skip(wire);
        continue;
      }
      const MessageField& field = type.fields[number];
      const WireType expected = wire_type_of(field.kind);
      const bool is_packed = field.is_repeated && expected != kBytes && wire == kBytes;
      if (wire != expected && !is_packed) refuse_message();
      if (field.group != 0) {
        if (((groups >> field.group) & 1) != 0) refuse_message();
        groups |= 1U << field.group;
      }
      const auto each = [&](auto&& add) {
        if (!is_packed) return add(in);
        for (MessageBytes part = in.field(); part.at != part.end;) add(part);
      };
      PyObject*& found = seen[number];
      if (field.is_array) {
        if (found == nullptr) {
          arrays.push_back({&field});
          found = made.ptr();
        }
        if (arrays.back().field != &field) refuse_message();  // no writer puts other numbers between them
        if (is_packed && expected != kVarint) arrays.back().reserve_for(in);
        each([&](MessageBytes& from) { arrays.back().add_next(from); });
      } else if (field.is_repeated) {
        if (found == nullptr) {
          const py::list items;
          set_field(made, field, items);
          found = items.ptr();
        }
        each([&](MessageBytes& from) {
          if (PyList_Append(found, value(from, field, depth).ptr()) != 0) throw py::error_already_set();
        });
      } else {
        if (found != nullptr && field.kind == FieldKind::Message) refuse_message();  // protobuf merges the two
        const py::object one = value(in, field, depth);
        set_field(made, field, one);
        found = one.ptr();
      }
    }
    for (NumberArray& array : arrays) set_field(made, *array.field, array.to_python());
    return made;
  }

  py::object value(MessageBytes& in, const MessageField& field, int depth) const {
    switch (field.kind) {
      case FieldKind::Float:
        return owned(PyFloat_FromDouble(static_cast<double>(in.fixed<float>())));
      case FieldKind::Double:
        return owned(PyFloat_FromDouble(in.fixed<double>()));
      case FieldKind::Int32:
        return owned(PyLong_FromLong(static_cast<int32_t>(in.varint())));
      case FieldKind::Int64:
        return owned(PyLong_FromLongLong(static_cast<int64_t>(in.varint())));
      case FieldKind::UInt64:
        return owned(PyLong_FromUnsignedLongLong(in.varint()));
      case FieldKind::Enum: {
        const uint64_t number = in.varint();
        if (number > field.limit) refuse_message();  // to protobuf it is a field that nobody knows
        return owned(PyLong_FromUnsignedLongLong(number));
      }
      case FieldKind::Text: {
        const MessageBytes part = in.field();
        PyObject* const text = PyUnicode_DecodeUTF8(part.text(), part.size(), nullptr);
        if (text != nullptr) return owned(text);
        PyErr_Clear();
        refuse_message();
      }
      case FieldKind::Bytes: {
        const MessageBytes part = in.field();
        return owned(PyBytes_FromStringAndSize(part.text(), part.size()));
      }
      case FieldKind::Message:
        break;
    }
    return message(in.field(), classes_.at(field.limit), depth + 1);
  }

  std::vector<MessageClass> classes_;
};

}  // namespace

void bind_messages(py::module_& m) {
  py::class_<MessageReader>(m, "MessageReader", "Reads protobuf's wire format into objects.")
      .def("read", &MessageReader::read, py::arg("data"), py::arg("index"),
           "An object of the class with an attribute for each field that is there; None where protobuf must judge.");
  m.def(
      "make_message_reader",
      [](const std::vector<MessageReader::ClassSpec>& classes) { return std::make_unique<MessageReader>(classes); },
      py::arg("classes"),
      "Each class with its fields: number, name, kind, whether it is repeated and an array, group of fields that "
      "exclude each other, greatest number of an enumeration or index of a message's class.");
}

}  // namespace neo::python
