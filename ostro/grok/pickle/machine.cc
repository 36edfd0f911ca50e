// The machine that runs a pickle: a stack of values, marks in it, and a memo. See stored.h for the pickles
// that it refuses.
#include <fmt/core.h>

#include "ostro/grok/pickle/input.h"
#include "ostro/grok/pickle/opcodes.h"
#include "ostro/grok/pickle/value.h"

namespace ostro::grok {
namespace {

// The release's files need 39 values, a stack of 12, two marks, and tuples of 8.
constexpr size_t kMaxValues = 512, kMaxStack = 64, kMaxMarks = 8, kMaxItems = 32;
constexpr int64_t kMaxOpcodes = 2048;

class Machine {
 public:
  explicit Machine(const io::RandomAccessFile& file) : input_(file) {}

  Result<StoredTensor> run();
  // "byte 123: opcode 0x52 (REDUCE)".
  std::string where() const;

 private:
  Status step(uint8_t opcode);
  Result<StoredTensor> result() const;

  Status push(Value value);
  Status push_index(int index);
  Result<int> pop();
  Status push_tuple(size_t count);
  Result<std::vector<int>> pop_to_mark();
  Status push_text(int length_bytes);
  Status push_bytes(int length_bytes);
  Status push_int(int bytes);
  Status get(int index_bytes);
  Status set_items();
  Status call_or_make(bool make);
  Status build();
  Status import();

  Value& value(int index) { return values_[static_cast<size_t>(index)]; }

  PickleInput input_;
  int64_t opcode_at_ = 0;
  std::optional<uint8_t> opcode_;
  Values values_;
  std::vector<int> stack_, memo_;
  std::vector<size_t> marks_;
};

std::string Machine::where() const {
  std::string text = fmt::format("byte {}", opcode_at_);
  if (opcode_) {
    const char* name = opcode_name(*opcode_);
    text += fmt::format(": opcode {:#04x}{}", *opcode_, name == nullptr ? "" : fmt::format(" ({})", name));
  }
  return text;
}

Status Machine::push_index(int index) {
  if (stack_.size() == kMaxStack)
    return unsupported(fmt::format("more than {} values on the stack", kMaxStack));
  stack_.push_back(index);
  return {};
}

Status Machine::push(Value value) {
  if (values_.size() == kMaxValues) return unsupported(fmt::format("more than {} values", kMaxValues));
  values_.push_back(std::move(value));
  return push_index(static_cast<int>(values_.size()) - 1);
}

// Values below a mark are out of reach until the mark is taken.
Result<int> Machine::pop() {
  if (stack_.size() == (marks_.empty() ? 0 : marks_.back())) return corrupt("the stack has too few values");
  const int top = stack_.back();
  stack_.pop_back();
  return top;
}

Status Machine::push_tuple(size_t count) {
  Value tuple{.kind = Kind::kTuple};
  tuple.items.resize(count);
  for (size_t i = count; i-- > 0;) {
    ASSIGN_OR_RETURN(tuple.items[i], pop());
  }
  return push(std::move(tuple));
}

Result<std::vector<int>> Machine::pop_to_mark() {
  if (marks_.empty()) return corrupt("there is no mark");
  const auto begin = stack_.begin() + static_cast<ptrdiff_t>(marks_.back());
  std::vector<int> items(begin, stack_.end());
  if (items.size() > kMaxItems)
    return unsupported(fmt::format("{} items; at most {}", items.size(), kMaxItems));
  stack_.erase(begin, stack_.end());
  marks_.pop_back();
  return items;
}

Status Machine::push_text(int length_bytes) {
  ASSIGN_OR_RETURN(const uint64_t length, input_.number(length_bytes));
  if (length > 255) return unsupported(fmt::format("a text of {} bytes; at most 255", length));
  Value text{.kind = Kind::kText};
  ASSIGN_OR_RETURN(text.text, input_.text(static_cast<int64_t>(length)));
  return push(std::move(text));
}

// Notes the place of the bytes and skips them: they are the elements of an array. A single byte is kept,
// since _reconstruct has the argument b'b'.
Status Machine::push_bytes(int length_bytes) {
  ASSIGN_OR_RETURN(const uint64_t length, input_.number(length_bytes));
  Value bytes{.kind = Kind::kBytes, .begin = input_.at()};
  if (length == 1) {
    ASSIGN_OR_RETURN(bytes.text, input_.text(1));
  } else {
    RETURN_IF_ERROR(input_.skip(length));
  }
  bytes.bytes = static_cast<int64_t>(length);
  return push(std::move(bytes));
}

Status Machine::push_int(int bytes) {
  ASSIGN_OR_RETURN(const uint64_t number, input_.number(bytes));
  // BININT has a sign, the shorter ones have none.
  const int64_t value = bytes == 4 ? static_cast<int32_t>(number) : static_cast<int64_t>(number);
  return push({.kind = Kind::kInt, .number = value});
}

Status Machine::get(int index_bytes) {
  ASSIGN_OR_RETURN(const uint64_t index, input_.number(index_bytes));
  if (index >= memo_.size())
    return corrupt(fmt::format("entry {} of the memo, which has {}", index, memo_.size()));
  return push_index(memo_[index]);
}

Status Machine::set_items() {
  ASSIGN_OR_RETURN(const std::vector<int> items, pop_to_mark());
  ASSIGN_OR_RETURN(const int index, pop());
  Value& dict = value(index);
  if (dict.kind != Kind::kDict) return unsupported(fmt::format("items are set in {}", kind_name(dict.kind)));
  if (items.size() % 2 != 0) return corrupt("a key has no value");
  if (dict.items.size() + items.size() > kMaxItems)
    return unsupported(
        fmt::format("a dict of {} items; at most {}", dict.items.size() + items.size(), kMaxItems));
  dict.items.insert(dict.items.end(), items.begin(), items.end());
  return push_index(index);
}

Status Machine::call_or_make(bool make) {
  ASSIGN_OR_RETURN(const int arguments, pop());
  ASSIGN_OR_RETURN(const int callable, pop());
  Result<Value> made = make ? make_object(value(callable), value(arguments))
                            : call(values_, value(callable), value(arguments));
  if (!made.ok()) return made.error();
  return push(std::move(*made));
}

Status Machine::build() {
  ASSIGN_OR_RETURN(const int state, pop());
  ASSIGN_OR_RETURN(const int target, pop());
  RETURN_IF_ERROR(set_state(values_, value(target), value(state)));
  return push_index(target);
}

// STACK_GLOBAL: pushes one of the few globals of value.h. Nothing is imported.
Status Machine::import() {
  ASSIGN_OR_RETURN(const int name, pop());
  ASSIGN_OR_RETURN(const int module, pop());
  if (value(name).kind != Kind::kText || value(module).kind != Kind::kText)
    return unsupported(fmt::format("module and name are {} and {}, not texts", kind_name(value(module).kind),
                                   kind_name(value(name).kind)));
  ASSIGN_OR_RETURN(const Global global, find_global(value(module).text, value(name).text));
  return push({.kind = Kind::kGlobal, .number = static_cast<int64_t>(global)});
}

Status Machine::step(uint8_t opcode) {
  switch (opcode) {
    case kFrame: {
      ASSIGN_OR_RETURN(const uint64_t length, input_.number(8));
      return input_.begin_frame(length);
    }
    case kMark:
      if (marks_.size() == kMaxMarks) return unsupported(fmt::format("more than {} marks", kMaxMarks));
      marks_.push_back(stack_.size());
      return {};
    case kMemoize:
      if (stack_.size() == (marks_.empty() ? 0 : marks_.back()))
        return corrupt("the stack has too few values");
      memo_.push_back(stack_.back());
      return {};
    case kBinGet: return get(1);
    case kLongBinGet: return get(4);
    case kNone: return push({.kind = Kind::kNone});
    case kNewFalse:
    case kNewTrue: return push({.kind = Kind::kBool, .number = opcode == kNewTrue ? 1 : 0});
    case kBinInt1: return push_int(1);
    case kBinInt2: return push_int(2);
    case kBinInt: return push_int(4);
    case kShortBinUnicode: return push_text(1);
    case kBinUnicode: return push_text(4);
    case kShortBinBytes: return push_bytes(1);
    case kBinBytes: return push_bytes(4);
    case kBinBytes8: return push_bytes(8);
    case kEmptyTuple: return push_tuple(0);
    case kTuple1: return push_tuple(1);
    case kTuple2: return push_tuple(2);
    case kTuple3: return push_tuple(3);
    case kTuple: {
      Value tuple{.kind = Kind::kTuple};
      ASSIGN_OR_RETURN(tuple.items, pop_to_mark());
      return push(std::move(tuple));
    }
    case kEmptyDict: return push({.kind = Kind::kDict});
    case kSetItems: return set_items();
    case kStackGlobal: return import();
    case kReduce: return call_or_make(/*make=*/false);
    case kNewObj: return call_or_make(/*make=*/true);
    case kBuild: return build();
    default:
      return unsupported(
          opcode_name(opcode) == nullptr
              ? "not an opcode: the file is not a pickle, or a download has not written this part"
              : "not an opcode that Grok-1's files use; nothing was executed");
  }
}

Result<StoredTensor> Machine::result() const {
  if (stack_.size() != 1 || !marks_.empty())
    return corrupt(fmt::format("{} values and {} marks are left on the stack, not one value", stack_.size(),
                               marks_.size()));
  const Value& top = values_[static_cast<size_t>(stack_.back())];
  if ((top.kind != Kind::kArray && top.kind != Kind::kQuantized) || !top.is_built)
    return unsupported(fmt::format("the file holds {}{}, not an array or a QuantizedWeight8bit",
                                   kind_name(top.kind),
                                   top.is_built || top.kind < Kind::kDtype ? "" : " without a state"));
  if (input_.left() != 0) return corrupt(fmt::format("{} bytes follow the pickle's end", input_.left()));
  return top.tensor;
}

// Runs opcodes until STOP. Each limit (values, stack, marks, items, opcodes) is a little above the release's
// need, so time and memory are bounded for any file.
Result<StoredTensor> Machine::run() {
  for (int64_t count = 0; count < kMaxOpcodes; ++count) {
    opcode_.reset();
    opcode_at_ = input_.at();
    ASSIGN_OR_RETURN(const uint64_t next, input_.number(1));
    const auto opcode = static_cast<uint8_t>(next);
    opcode_ = opcode;
    if (count == 0) {
      if (opcode != kProto)
        return corrupt(opcode == 0
                           ? "not a pickle: it begins with zeros, so a download has not written it yet"
                           : "not a pickle of protocol 4: it does not begin with PROTO");
      ASSIGN_OR_RETURN(const uint64_t protocol, input_.number(1));
      if (protocol != 4)
        return unsupported(fmt::format("a pickle of protocol {}; Grok-1's are of 4", protocol));
    } else if (opcode == kStop) {
      return result();
    } else {
      RETURN_IF_ERROR(step(opcode));
    }
  }
  return unsupported(fmt::format("more than {} opcodes", kMaxOpcodes));
}

}  // namespace

Result<StoredTensor> read_pickle(const io::RandomAccessFile& file) {
  Machine machine(file);
  Result<StoredTensor> tensor = machine.run();
  if (tensor.ok()) return tensor;
  // Errors of the file system name the file already.
  if (tensor.error().code() != ErrorCode::kCorrupt && tensor.error().code() != ErrorCode::kUnsupported)
    return tensor.error();
  return tensor.error().with_context(fmt::format("{}: {}", file.path(), machine.where()));
}

}  // namespace ostro::grok
