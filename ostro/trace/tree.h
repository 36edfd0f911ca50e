// OSTRO_FIELDS, tree_map: structs as trees. A struct lists its arrays and sub-structs once:
//
//   struct Mlp { Linear gate_up, down; OSTRO_FIELDS(gate_up, down) };
//
// OSTRO_FIELDS makes the struct a tree: its leaves have names and can be listed and replaced. Vectors and
// optionals of trees are trees. An empty Array (a bias that is not there) is not a leaf. Members that are
// neither arrays nor trees change the jit key only when they are listed in OSTRO_STATICS. The name of a
// vector's element is its index, or the result of its function `ostro_name()`.
#pragma once

#include <fmt/core.h>

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "ostro/trace/array.h"

#define OSTRO_FIELDS(...)                                                        \
  static constexpr std::string_view ostro_field_names() { return #__VA_ARGS__; } \
  auto ostro_fields() { return std::tie(__VA_ARGS__); }                          \
  auto ostro_fields() const { return std::tie(__VA_ARGS__); }

#define OSTRO_STATICS(...) \
  auto ostro_statics() const { return std::tie(__VA_ARGS__); }

namespace ostro {
namespace tree_internal {

// Returns the i-th name of "a, b, c", counted from 0.
std::string field_name(std::string_view names, size_t i);

template <typename T>
concept HasFields = requires(T& t) { t.ostro_fields(); };
template <typename T>
concept HasStatics = requires(const T& t) { t.ostro_statics(); };

template <typename T>
concept HasName = requires(const T& t) {
  { t.ostro_name() } -> std::convertible_to<std::string>;
};

template <typename T>
struct IsVector : std::false_type {};
template <typename T>
struct IsVector<std::vector<T>> : std::true_type {};
template <typename T>
struct IsOptional : std::false_type {};
template <typename T>
struct IsOptional<std::optional<T>> : std::true_type {};

inline std::string join_path(const std::string& path, const std::string& name) {
  if (path.empty() || name.empty()) return path + name;
  return path + "/" + name;
}

// The name of element i of a vector.
template <typename T>
std::string element_name(const T& element, size_t i) {
  if constexpr (HasName<T>)
    return element.ostro_name();
  else
    return std::to_string(i);
}

template <typename T>
std::string static_text(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return fmt::format("{}", static_cast<int64_t>(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    return fmt::format("{:a}", value);
  } else if constexpr (IsVector<T>::value) {
    std::string out;
    for (const auto& v : value) out += static_text(v) + ",";
    return fmt::format("[{}]", out);
  } else if constexpr (std::convertible_to<const T&, std::string_view>) {
    // The length in front separates neighbours, whatever characters the text holds.
    const std::string_view text = value;
    return fmt::format("{}:{}", text.size(), text);
  } else {
    return fmt::format("{}", value);
  }
}

}  // namespace tree_internal

// Calls visit(path, Array&) for every leaf in declaration order; works on const trees with const Array&.
template <typename T, typename Visitor>
void for_each_leaf(T& tree, Visitor&& visit, const std::string& path = "") {
  using Bare = std::remove_const_t<T>;
  using namespace tree_internal;
  if constexpr (std::same_as<Bare, Array>) {
    if (tree.valid()) visit(path, tree);
  } else if constexpr (IsVector<Bare>::value) {
    for (size_t i = 0; i < tree.size(); ++i)
      for_each_leaf(tree[i], visit, join_path(path, element_name(tree[i], i)));
  } else if constexpr (IsOptional<Bare>::value) {
    if (tree) for_each_leaf(*tree, visit, path);
  } else if constexpr (HasFields<T>) {
    auto fields = tree.ostro_fields();
    [&]<size_t... I>(std::index_sequence<I...>) {
      (for_each_leaf(std::get<I>(fields), visit, join_path(path, field_name(Bare::ostro_field_names(), I))),
       ...);
    }(std::make_index_sequence<std::tuple_size_v<decltype(fields)>>());
  } else {
    static_assert(HasFields<T>, "not a tree: give the struct OSTRO_FIELDS(...)");
  }
}

// The leaves in declaration order.
template <typename T>
std::vector<Array> tree_leaves(const T& tree) {
  std::vector<Array> out;
  for_each_leaf(tree, [&](const std::string&, const Array& a) { out.push_back(a); });
  return out;
}

// Returns a tree with the structure of `like` whose leaves are leaves[*next], leaves[*next + 1], ... in
// order, and advances *next. Without `next` it begins with leaves[0].
template <typename T>
T tree_with_leaves(const T& like, const std::vector<Array>& leaves, size_t* next = nullptr) {
  size_t local = 0;
  size_t& at = next != nullptr ? *next : local;
  T copy = like;
  for_each_leaf(copy, [&](const std::string&, Array& a) { a = leaves.at(at++); });
  return copy;
}

// Returns the tree with every leaf replaced by f(path, leaf).
template <typename T, typename F>
T tree_map(const T& tree, F&& f) {
  T copy = tree;
  for_each_leaf(copy, [&](const std::string& path, Array& a) { a = f(path, a); });
  return copy;
}

// One line of text that differs when the structure, a shape, a tag or a static member differs: the jit key.
template <typename T>
std::string tree_signature(const T& tree) {
  using namespace tree_internal;
  std::string out;
  if constexpr (std::same_as<T, Array>) {
    if (!tree.valid()) return "-";
    out = tree.shape().str();
    if (tree.use_dtype()) out += fmt::format("!{}", ir::dtype_name(*tree.use_dtype()));
  } else if constexpr (IsVector<T>::value) {
    out = "[";
    for (const auto& t : tree) out += tree_signature(t) + ";";
    out += "]";
  } else if constexpr (IsOptional<T>::value) {
    out = tree ? tree_signature(*tree) : "?";
  } else if constexpr (HasFields<const T>) {
    auto fields = tree.ostro_fields();
    out = "{";
    std::apply([&](const auto&... f) { ((out += tree_signature(f) + ";"), ...); }, fields);
    if constexpr (HasStatics<T>)
      std::apply([&](const auto&... s) { ((out += static_text(s) + "|"), ...); }, tree.ostro_statics());
    out += "}";
  }
  return out;
}

}  // namespace ostro
