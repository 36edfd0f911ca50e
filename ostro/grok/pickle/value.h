// Value: the values that a pickle of the release is made of. They live in one list, refer to each other by
// index and are never freed: the machine makes at most kMaxValues of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ostro/grok/pickle/stored.h"

namespace ostro::grok {

// The only names that a pickle may import. They stand for themselves; nothing is imported or called.
enum class Global {
  kQuantizedWeight,  // __main__.QuantizedWeight8bit
  kReconstruct,      // numpy.core.multiarray._reconstruct, or numpy._core.multiarray, as NumPy 2 calls it
  kNdarray,          // numpy.ndarray
  kDtype,            // numpy.dtype
  kBfloat16,         // ml_dtypes.bfloat16
};

enum class Kind { kNone, kBool, kInt, kText, kBytes, kTuple, kDict, kGlobal, kDtype, kArray, kQuantized };

// "an int", "a tuple", ...
const char* kind_name(Kind kind);

struct Value {
  Kind kind = Kind::kNone;
  int64_t number = 0;  // kInt, kBool; kGlobal: which
  std::string text;    // kText; kBytes: the byte, if it is a single one
  int64_t begin = 0;   // kBytes: where in the file, and how many
  int64_t bytes = 0;
  std::vector<int> items;  // kTuple; kDict: keys and values in turn
  bool is_built = false;   // kDtype, kArray, kQuantized: its state was set
  StoredTensor tensor;     // kDtype: only weight.dtype; kArray: only weight; kQuantized: all
};

using Values = std::vector<Value>;

// Text from the file for an error: in quotes, without control characters.
std::string quoted(const std::string& text);

// STACK_GLOBAL: the global of this module and name. Error: any other name.
Result<Global> find_global(const std::string& module, const std::string& name);

// REDUCE: an array or a dtype without a state. Error: any other call, or other arguments.
Result<Value> call(const Values& values, const Value& callable, const Value& arguments);
// NEWOBJ: a quantised weight without a state. Error: any other type or arguments.
Result<Value> make_object(const Value& type, const Value& arguments);
// BUILD: gives `target` the state. Error: a state that the release's objects do not have.
Status set_state(const Values& values, Value& target, const Value& state);

}  // namespace ostro::grok
