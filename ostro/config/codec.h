// read_value, write_value, type_text: reading, writing and describing each C++ type that an option may have.
// Included by options.h.
//
//   bool, int64_t, double, std::string, Duration
//   std::optional<T>                 null or a T
//   std::vector<T>                   a list; a list of sections may be one section, without the list
//   std::map<std::string, T>         {name: T, ...}, sorted by name
//   IntMap                           {name: integer, ...}, in the order written
//   Staged<T>                        a T, or a list of [first step, T]
//   Alternatives<A, B, ...>          a value of any of these types; the first that can read it wins
//   enum class E                     one of the words of `option_names(E)`, a function in E's namespace
//   std::variant<StructA, StructB>   a section chosen by `type:` (StructA::kType is its name)
//   a struct with visit_options      a section
//
// Errors of read_value name the place, the path, the wanted type and the value; *out may then be partly read.
// Sections, lists and maps are read to their end, and all errors are returned as one (mistakes.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "ostro/config/mistakes.h"
#include "ostro/config/options.h"

namespace ostro::config {

// A time span, written "90s", "15m", "2h", "1d" or "1h30m".
struct Duration {
  int64_t seconds = 0;
  bool operator==(const Duration&) const = default;
};
// Reads "1h30m"; ErrorCode::kInvalidArgument for any other form.
Result<Duration> parse_duration(const std::string& text);
std::string format_duration(Duration duration);

// Named integers, in the order written.
using IntMap = std::vector<std::pair<std::string, int64_t>>;

// A value that may be of several types: `shuffle: true | false | 4096`.
template <class... Ts>
struct Alternatives {
  std::variant<Ts...> value;
  bool operator==(const Alternatives&) const = default;
};

// A value that changes at given steps: `16`, or `[[0, 16], [1000, 32]]`.
template <class T>
struct Staged {
  struct Stage {
    int64_t step = 0;  // first step that has this value
    T value{};
    bool operator==(const Stage&) const = default;
  };
  std::vector<Stage> stages = {Stage{}};  // at least one; steps ascend, the first is 0

  Staged() = default;
  Staged(T value) : stages{{0, std::move(value)}} {}  // NOLINT: a plain value is a schedule of one stage
  const T& at(int64_t step) const {
    size_t i = stages.size() - 1;
    while (i > 0 && stages[i].step > step) --i;
    return stages[i].value;
  }
  bool operator==(const Staged&) const = default;
};

template <class T>
concept OptionStruct = requires(T t, OptionTable& table) { t.visit_options(table); };

template <class T>
OptionTable table_of(T& options) {
  OptionTable table;
  options.visit_options(table);
  return table;
}

// ---- scalars (codec.cc) ----
Status read_value(const Node& node, const std::string& path, bool* out);
Status read_value(const Node& node, const std::string& path, int64_t* out);
Status read_value(const Node& node, const std::string& path, double* out);
Status read_value(const Node& node, const std::string& path, std::string* out);
Status read_value(const Node& node, const std::string& path, Duration* out);
Status read_value(const Node& node, const std::string& path, IntMap* out);
Node write_value(bool value, Write which);
Node write_value(int64_t value, Write which);
Node write_value(double value, Write which);
Node write_value(const std::string& value, Write which);
Node write_value(Duration value, Write which);
Node write_value(const IntMap& value, Write which);
std::string type_text(const bool*);
std::string type_text(const int64_t*);
std::string type_text(const double*);
std::string type_text(const std::string*);
std::string type_text(const Duration*);
std::string type_text(const IntMap*);

// An enum with a function `std::vector<std::string> option_names(E)`. It gives the names of the values 0, 1,
// 2, ... in this order.
template <class T>
concept OptionEnum = std::is_enum_v<T> && requires(T t) { option_names(t); };

// The index of the node's text in `words`. If it is none of them, the error lists all words.
Result<size_t> read_word(const Node& node, const std::string& path, const std::vector<std::string>& words);
std::string join_words(const std::vector<std::string>& words);

template <OptionEnum T>
Status read_value(const Node& node, const std::string& path, T* out) {
  ASSIGN_OR_RETURN(const size_t index, read_word(node, path, option_names(T{})));
  *out = static_cast<T>(index);
  return {};
}
template <OptionEnum T>
Node write_value(T value, Write) {
  return Node::string(option_names(value)[static_cast<size_t>(value)]);
}
template <OptionEnum T>
std::string type_text(const T*) {
  return join_words(option_names(T{}));
}

// Composite types can contain each other, so all functions are declared before the first definition.
template <OptionStruct T>
Status read_value(const Node&, const std::string&, T*);
template <OptionStruct T>
Node write_value(const T&, Write);
template <OptionStruct T>
std::string type_text(const T*);
template <class T>
Status read_value(const Node&, const std::string&, std::optional<T>*);
template <class T>
Node write_value(const std::optional<T>&, Write);
template <class T>
std::string type_text(const std::optional<T>*);
template <class T>
Status read_value(const Node&, const std::string&, std::vector<T>*);
template <class T>
Node write_value(const std::vector<T>&, Write);
template <class T>
std::string type_text(const std::vector<T>*);
template <class... Ts>
Status read_value(const Node&, const std::string&, Alternatives<Ts...>*);
template <class... Ts>
Node write_value(const Alternatives<Ts...>&, Write);
template <class... Ts>
std::string type_text(const Alternatives<Ts...>*);
template <OptionStruct... Ts>
Status read_value(const Node&, const std::string&, std::variant<Ts...>*);
template <OptionStruct... Ts>
Node write_value(const std::variant<Ts...>&, Write);
template <OptionStruct... Ts>
std::string type_text(const std::variant<Ts...>*);

template <class T>
Status read_value(const Node&, const std::string&, std::map<std::string, T>*);
template <class T>
Node write_value(const std::map<std::string, T>&, Write);
template <class T>
std::string type_text(const std::map<std::string, T>*);
template <class T>
Status read_value(const Node&, const std::string&, Staged<T>*);
template <class T>
Node write_value(const Staged<T>&, Write);
template <class T>
std::string type_text(const Staged<T>*);

// ---- structs ----
template <OptionStruct T>
Status read_value(const Node& node, const std::string& path, T* out) {
  return table_of(*out).read(node, path);
}
template <OptionStruct T>
Node write_value(const T& value, Write which) {
  return table_of(const_cast<T&>(value)).write(which);  // writing does not change the fields
}
template <OptionStruct T>
std::string type_text(const T*) {
  return "section";
}

// ---- null or a value ----
template <class T>
Status read_value(const Node& node, const std::string& path, std::optional<T>* out) {
  if (node.kind == Node::Kind::kNull) {
    out->reset();
    return {};
  }
  T value{};
  RETURN_IF_ERROR(read_value(node, path, &value));
  *out = std::move(value);
  return {};
}
template <class T>
Node write_value(const std::optional<T>& value, Write which) {
  return value ? write_value(*value, which) : Node::null();
}
template <class T>
std::string type_text(const std::optional<T>*) {
  return type_text(static_cast<const T*>(nullptr)) + " or null";
}

// ---- lists ----
template <class T>
Status read_value(const Node& node, const std::string& path, std::vector<T>* out) {
  const bool is_one = node.kind == Node::Kind::kMap && type_text(static_cast<const T*>(nullptr)) == "section";
  if (node.kind != Node::Kind::kList && !is_one)
    return wrong_type(node, path, "a list (" + type_text(static_cast<const std::vector<T>*>(nullptr)) + ")");
  std::vector<T> values;
  Mistakes mistakes;
  const auto read = [&](const Node& item) {
    T value{};
    mistakes.add(read_value(item, path + "[" + std::to_string(values.size()) + "]", &value));
    values.push_back(std::move(value));
  };
  if (is_one)
    read(node);
  else
    for (const Node& item : node.items) read(item);
  *out = std::move(values);
  return mistakes.status();
}
template <class T>
Node write_value(const std::vector<T>& values, Write) {
  std::vector<Node> items;
  for (const T& value : values) items.push_back(write_value(value, Write::kAll));
  return Node::list(std::move(items));
}
template <class T>
std::string type_text(const std::vector<T>*) {
  return "list of " + type_text(static_cast<const T*>(nullptr)) + "s";
}

// ---- maps ----
template <class T>
Status read_value(const Node& node, const std::string& path, std::map<std::string, T>* out) {
  if (node.kind != Node::Kind::kMap)
    return wrong_type(node, path, "a " + type_text(static_cast<const std::map<std::string, T>*>(nullptr)));
  std::map<std::string, T> values;
  Mistakes mistakes;
  for (const Node& item : node.items) {
    const std::string full = join_path(path, item.key);
    if (mistakes.add(given_once(node, item, full))) mistakes.add(read_value(item, full, &values[item.key]));
  }
  *out = std::move(values);
  return mistakes.status();
}
template <class T>
Node write_value(const std::map<std::string, T>& values, Write which) {
  Node map = Node::map();
  for (const auto& [name, value] : values) map.put(name, write_value(value, which));
  return map;
}
template <class T>
std::string type_text(const std::map<std::string, T>*) {
  return "map of " + type_text(static_cast<const T*>(nullptr)) + "s";
}

// Reads the step of stage `index` in a list of [step, value]. It must be greater than `before`, the step of
// the previous stage.
Result<int64_t> read_stage_step(const Node& stage, const std::string& path, size_t index, int64_t before);

template <class T>
Status read_value(const Node& node, const std::string& path, Staged<T>* out) {
  if (node.kind != Node::Kind::kList) {
    T value{};
    RETURN_IF_ERROR(read_value(node, path, &value));
    *out = Staged<T>(std::move(value));
    return {};
  }
  std::vector<typename Staged<T>::Stage> stages;
  for (const Node& item : node.items) {
    const std::string here = path + "[" + std::to_string(stages.size()) + "]";
    ASSIGN_OR_RETURN(const int64_t step,
                     read_stage_step(item, here, stages.size(), stages.empty() ? -1 : stages.back().step));
    T value{};
    RETURN_IF_ERROR(read_value(item.items[1], here + "[1]", &value));
    stages.push_back({step, std::move(value)});
  }
  if (stages.empty()) return wrong_type(node, path, "at least one stage, [0, value]");
  out->stages = std::move(stages);
  return {};
}
template <class T>
Node write_value(const Staged<T>& value, Write which) {
  if (value.stages.size() == 1) return write_value(value.stages[0].value, which);
  std::vector<Node> stages;
  for (const auto& stage : value.stages)
    stages.push_back(Node::list({Node::integer(stage.step), write_value(stage.value, which)}));
  return Node::list(std::move(stages));
}
template <class T>
std::string type_text(const Staged<T>*) {
  return type_text(static_cast<const T*>(nullptr)) + " or list of [step, " +
         type_text(static_cast<const T*>(nullptr)) + "]";
}

// ---- one of several types ----
template <class... Ts>
Status read_value(const Node& node, const std::string& path, Alternatives<Ts...>* out) {
  bool done = false;
  Status inside;  // an error inside a section; it is more exact than a list of all types
  auto attempt = [&](auto* none) {
    using T = std::remove_pointer_t<decltype(none)>;
    if (done) return;
    T value{};
    const Status read = read_value(node, path, &value);
    done = read.ok();
    if (done)
      out->value = std::move(value);
    else if (node.kind == Node::Kind::kMap && type_text(none) == "section")
      inside = read;
  };
  (attempt(static_cast<Ts*>(nullptr)), ...);
  if (done) return {};
  RETURN_IF_ERROR(inside);
  return wrong_type(node, path, type_text(static_cast<const Alternatives<Ts...>*>(nullptr)));
}
template <class... Ts>
Node write_value(const Alternatives<Ts...>& value, Write which) {
  return std::visit([&](const auto& v) { return write_value(v, which); }, value.value);
}
template <class... Ts>
std::string type_text(const Alternatives<Ts...>*) {
  std::string text;
  ((text += (text.empty() ? "" : " or ") + type_text(static_cast<const Ts*>(nullptr))), ...);
  return text;
}

// The value of a section's `type` key, or `current` if there is none. If the value is not in `known`, `error`
// says so, and `type` is the known one that was probably meant, as which the rest of the section is read.
struct ChosenType {
  std::string type;
  Status error;
};
ChosenType chosen_type(const Node& node, const std::string& path, const std::string& current,
                       const std::vector<std::string>& known);
// A copy of the section without its `type` key.
Node without_type(const Node& node);
// The section with a `type` key added in front.
Node with_type(const std::string& type, Node section);

template <OptionStruct... Ts>
Status read_value(const Node& node, const std::string& path, std::variant<Ts...>* out) {
  const std::string current = std::visit([](const auto& v) { return std::string(v.kType); }, *out);
  if (node.kind != Node::Kind::kMap) return wrong_type(node, path, "a section with a `type` key");
  const ChosenType chosen = chosen_type(node, path, current, {std::string(Ts::kType)...});
  const std::string& type = chosen.type;
  auto choose = [&](auto* none) {
    using T = std::remove_pointer_t<decltype(none)>;
    if (type == T::kType && !std::holds_alternative<T>(*out)) out->template emplace<T>();
  };
  (choose(static_cast<Ts*>(nullptr)), ...);
  Mistakes mistakes;
  mistakes.add(chosen.error);
  mistakes.add(std::visit([&](auto& v) { return read_value(without_type(node), path, &v); }, *out));
  return mistakes.status();
}
template <OptionStruct... Ts>
Node write_value(const std::variant<Ts...>& value, Write which) {
  return std::visit([&](const auto& v) { return with_type(std::string(v.kType), write_value(v, which)); },
                    value);
}
template <OptionStruct... Ts>
std::string type_text(const std::variant<Ts...>*) {
  return "section";
}

// ---- describing the options inside a type ----
//
// The current value gives the defaults; choices of a variant that are not the current one show their own
// defaults.
inline void describe_inside(const auto&, const OptionInfo&, std::vector<OptionInfo>&) {}

template <OptionStruct T>
void describe_inside(const T& value, const OptionInfo& self, std::vector<OptionInfo>& out) {
  table_of(const_cast<T&>(value)).describe(self, out);
}

// The row for a variant's `type` key. `types` lists all choices; `current` is shown as the default.
OptionInfo type_key_info(const OptionInfo& self, const std::string& current,
                         const std::vector<std::string>& types);

template <OptionStruct... Ts>
void describe_inside(const std::variant<Ts...>& value, const OptionInfo& self, std::vector<OptionInfo>& out) {
  const std::string current = std::visit([](const auto& v) { return std::string(v.kType); }, value);
  out.push_back(type_key_info(self, current, {std::string(Ts::kType)...}));
  auto one = [&](auto* none) {
    using T = std::remove_pointer_t<decltype(none)>;
    OptionInfo inner = self;
    inner.selects.emplace_back(join_path(self.path, "type"), std::string(T::kType));
    if (const T* held = std::get_if<T>(&value))
      describe_inside(*held, sizeof...(Ts) > 1 ? inner : self, out);
    else
      describe_inside(T{}, inner, out);
  };
  (one(static_cast<Ts*>(nullptr)), ...);
}

// Describes a section that is one of several alternatives, as if it were chosen.
inline void describe_choice(const auto*, const OptionInfo&, std::vector<OptionInfo>&) {}
template <OptionStruct T>
void describe_choice(const std::variant<T>*, const OptionInfo& self, std::vector<OptionInfo>& out) {
  OptionInfo inner = self;
  inner.selects.emplace_back(self.path, "{type: " + std::string(T::kType) + "}");
  describe_inside(std::variant<T>{}, inner, out);
}
template <class... Ts>
void describe_inside(const Alternatives<Ts...>&, const OptionInfo& self, std::vector<OptionInfo>& out) {
  (describe_choice(static_cast<const Ts*>(nullptr), self, out), ...);
}

template <class T>
void describe_inside(const std::map<std::string, T>&, const OptionInfo& self, std::vector<OptionInfo>& out) {
  OptionInfo inner = self;
  inner.path += kAnyName;
  describe_inside(T{}, inner, out);
}

template <class T>
void describe_inside(const std::vector<T>&, const OptionInfo& self, std::vector<OptionInfo>& out) {
  OptionInfo inner = self;
  inner.path += "[]";
  describe_inside(T{}, inner, out);
}

// ---- OptionTable ----
template <class T>
Option& OptionTable::add(T* field, std::string name, Effect effect, std::string unit, std::string help) {
  Option& option = options_.emplace_back();
  option.name = std::move(name);
  option.effect = effect;
  option.unit = std::move(unit);
  option.help = std::move(help);
  option.type = type_text(static_cast<const T*>(field));
  option.read = [field](const Node& node, const std::string& path) { return read_value(node, path, field); };
  option.write = [field](Write which) { return write_value(*field, which); };
  option.describe = [field](const OptionInfo& self, std::vector<OptionInfo>& out) {
    describe_inside(*field, self, out);
  };
  return option;
}

template <class T>
Option& OptionTable::section(T* field, std::string name, std::string help) {
  Option& option = add(field, std::move(name), Effect::kBits, "", std::move(help));
  option.is_section = true;
  return option;
}

}  // namespace ostro::config
