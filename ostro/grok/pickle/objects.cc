// The calls, objects and states that a pickle of the release may have, with their arguments.
#include <fmt/core.h>

#include <algorithm>
#include <string_view>

#include "ostro/grok/pickle/value.h"

namespace ostro::grok {
namespace {

constexpr int64_t kMaxRank = 8;

struct GlobalName {
  Global global;
  std::string_view module, name;
};

constexpr GlobalName kGlobals[] = {{Global::kQuantizedWeight, "__main__", "QuantizedWeight8bit"},
                                   {Global::kReconstruct, "numpy.core.multiarray", "_reconstruct"},
                                   {Global::kReconstruct, "numpy._core.multiarray", "_reconstruct"},
                                   {Global::kNdarray, "numpy", "ndarray"},
                                   {Global::kDtype, "numpy", "dtype"},
                                   {Global::kBfloat16, "ml_dtypes", "bfloat16"}};

bool is_global(const Value& value, Global global) {
  return value.kind == Kind::kGlobal && value.number == static_cast<int64_t>(global);
}

bool is_int(const Value& value, int64_t number) { return value.kind == Kind::kInt && value.number == number; }
bool is_bool(const Value& value, bool truth) {
  return value.kind == Kind::kBool && value.number == (truth ? 1 : 0);
}
bool is_text(const Value& value, std::string_view text) {
  return value.kind == Kind::kText && value.text == text;
}

// The items of a tuple; null when `value` is not a tuple of `count`.
const std::vector<int>* tuple_of(const Value& value, size_t count) {
  return value.kind == Kind::kTuple && value.items.size() == count ? &value.items : nullptr;
}

const Value& at(const Values& values, const std::vector<int>& items, size_t i) {
  return values[static_cast<size_t>(items[i])];
}

Result<Value> make_array(const Values& values, const Value& arguments) {
  const auto* items = tuple_of(arguments, 3);
  const std::vector<int>* shape = items == nullptr ? nullptr : tuple_of(at(values, *items, 1), 1);
  const bool good = shape != nullptr && is_global(at(values, *items, 0), Global::kNdarray) &&
                    is_int(at(values, *shape, 0), 0) && at(values, *items, 2).kind == Kind::kBytes &&
                    at(values, *items, 2).text == "b";
  if (!good) return unsupported("_reconstruct: only the arguments (numpy.ndarray, (0,), b'b') are known");
  return Value{.kind = Kind::kArray};
}

Result<Value> make_dtype(const Values& values, const Value& arguments) {
  const auto* items = tuple_of(arguments, 3);
  if (items == nullptr || !is_bool(at(values, *items, 1), false) || !is_bool(at(values, *items, 2), true))
    return unsupported("numpy.dtype: only the arguments (code, False, True) are known");
  const Value& code = at(values, *items, 0);
  Value made{.kind = Kind::kDtype};
  if (is_text(code, "f4")) {
    made.tensor.weight.dtype = Dtype::kF32;
  } else if (is_text(code, "i1")) {
    made.tensor.weight.dtype = Dtype::kInt8;
  } else if (is_global(code, Global::kBfloat16)) {
    made.tensor.weight.dtype = Dtype::kBf16;
  } else {
    return unsupported(fmt::format("numpy.dtype: its code is {}; known are 'f4', 'i1' and ml_dtypes.bfloat16",
                                   code.kind == Kind::kText ? quoted(code.text) : kind_name(code.kind)));
  }
  return made;
}

// (version 3, byte order, None, None, None, element size, alignment, flags). Sizes are -1 for NumPy's own
// dtypes.
Status set_dtype_state(const Values& values, Value& target, const Value& state) {
  const Dtype dtype = target.tensor.weight.dtype;
  const auto* items = tuple_of(state, 8);
  if (items == nullptr || !is_int(at(values, *items, 0), 3))
    return unsupported("state of a dtype: not a tuple of 8 of version 3");
  const Value& order = at(values, *items, 1);
  if (!is_text(order, dtype == Dtype::kInt8 ? "|" : "<"))
    return unsupported(fmt::format(
        "state of dtype {}: its byte order is {}; only little-endian arrays are read", dtype_name(dtype),
        order.kind == Kind::kText ? quoted(order.text) : kind_name(order.kind)));
  const int64_t size = dtype == Dtype::kBf16 ? 2 : -1;
  // NumPy's own have no flags. Others may be accessed by functions and need Python's lock (0x70); the other
  // flags say that elements are pointers to objects.
  const int64_t allowed = dtype == Dtype::kBf16 ? 0x70 : 0;
  const Value& flags = at(values, *items, 7);
  bool good = is_int(at(values, *items, 5), size) && is_int(at(values, *items, 6), size) &&
              flags.kind == Kind::kInt && (flags.number & ~allowed) == 0;
  for (size_t i = 2; i < 5; ++i) good = good && at(values, *items, i).kind == Kind::kNone;
  if (!good)
    return unsupported(
        fmt::format("state of dtype {}: fields, sizes or flags of another dtype", dtype_name(dtype)));
  return {};
}

// (version 1, shape, dtype, whether the order is Fortran's, elements).
Status set_array_state(const Values& values, Value& target, const Value& state) {
  const auto* items = tuple_of(state, 5);
  if (items == nullptr || !is_int(at(values, *items, 0), 1))
    return unsupported("state of an array: not a tuple of 5 of version 1");
  const Value &shape = at(values, *items, 1), &dtype = at(values, *items, 2),
              &fortran = at(values, *items, 3), &elements = at(values, *items, 4);
  if (shape.kind != Kind::kTuple || static_cast<int64_t>(shape.items.size()) > kMaxRank)
    return unsupported(fmt::format("state of an array: its shape is not a tuple of at most {}", kMaxRank));
  StoredArray& array = target.tensor.weight;
  for (size_t i = 0; i < shape.items.size(); ++i) {
    const Value& extent = at(values, shape.items, i);
    if (extent.kind != Kind::kInt || extent.number < 0)
      return corrupt(
          fmt::format("state of an array: extent {} of its shape is {}", i,
                      extent.kind == Kind::kInt ? fmt::format("{}", extent.number) : kind_name(extent.kind)));
    array.shape.push_back(extent.number);
  }
  if (dtype.kind != Kind::kDtype || !dtype.is_built)
    return unsupported("state of an array: its dtype is not a numpy.dtype with a state");
  if (!is_bool(fortran, false))
    return unsupported(
        "state of an array: its elements are in Fortran's order; only row-major arrays are read");
  if (elements.kind != Kind::kBytes)
    return unsupported(
        fmt::format("state of an array: its elements are {}, not bytes", kind_name(elements.kind)));
  array.dtype = dtype.tensor.weight.dtype;
  array.begin = elements.begin;
  array.bytes = elements.bytes;
  const std::optional<int64_t> needed = bytes_needed(array.dtype, array.shape);
  if (needed != array.bytes)
    return corrupt(fmt::format("state of an array: {} needs {} bytes, the file holds {}",
                               describe(target.tensor),
                               needed ? fmt::format("{}", *needed) : "more than 2^63", array.bytes));
  return {};
}

Status set_quantized_state(const Values& values, Value& target, const Value& state) {
  if (state.kind != Kind::kDict || state.items.size() != 4 ||
      !is_text(at(values, state.items, 0), "weight") || !is_text(at(values, state.items, 2), "scales"))
    return unsupported("state of a QuantizedWeight8bit: not a dict of weight and scales, in this order");
  const Value &weight = at(values, state.items, 1), &scales = at(values, state.items, 3);
  for (const Value* array : {&weight, &scales}) {
    if (array->kind != Kind::kArray || !array->is_built)
      return unsupported(fmt::format("state of a QuantizedWeight8bit: {} is not an array with a state",
                                     array == &weight ? "weight" : "scales"));
  }
  target.tensor = {weight.tensor.weight, scales.tensor.weight};
  return {};
}

}  // namespace

const char* kind_name(Kind kind) {
  static constexpr const char* kNames[] = {"None",
                                           "a bool",
                                           "an int",
                                           "a text",
                                           "bytes",
                                           "a tuple",
                                           "a dict",
                                           "a name",
                                           "a dtype",
                                           "an array",
                                           "a quantised weight"};
  return kNames[static_cast<size_t>(kind)];
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte >= 0x20 && byte < 0x7f ? std::string(1, c) : fmt::format("\\x{:02x}", byte);
  }
  return out + "\"";
}

Result<Global> find_global(const std::string& module, const std::string& name) {
  for (const GlobalName& known : kGlobals) {
    if (known.module == module && known.name == name) return known.global;
  }
  return unsupported(
      fmt::format("the name {} of module {} is not one that Grok-1's files use; nothing was executed",
                  quoted(name), quoted(module)));
}

Result<Value> call(const Values& values, const Value& callable, const Value& arguments) {
  if (is_global(callable, Global::kReconstruct)) return make_array(values, arguments);
  if (is_global(callable, Global::kDtype)) return make_dtype(values, arguments);
  return unsupported(
      fmt::format("only _reconstruct and numpy.dtype may be called, not {}", kind_name(callable.kind)));
}

Result<Value> make_object(const Value& type, const Value& arguments) {
  if (!is_global(type, Global::kQuantizedWeight) || tuple_of(arguments, 0) == nullptr)
    return unsupported("only QuantizedWeight8bit may be made, without arguments");
  return Value{.kind = Kind::kQuantized};
}

Status set_state(const Values& values, Value& target, const Value& state) {
  if (target.is_built)
    return unsupported(fmt::format("the state of {} is set twice", kind_name(target.kind)));
  Status set = unsupported(fmt::format("{} has no state", kind_name(target.kind)));
  if (target.kind == Kind::kDtype) set = set_dtype_state(values, target, state);
  if (target.kind == Kind::kArray) set = set_array_state(values, target, state);
  if (target.kind == Kind::kQuantized) set = set_quantized_state(values, target, state);
  target.is_built = set.ok();
  return set;
}

}  // namespace ostro::grok
