#include "ostro/ir/program/attrs.h"

#include <fmt/core.h>

namespace ostro::ir {
namespace {

template <typename T>
const T& get(const std::map<std::string, Attr, std::less<>>& map, std::string_view name) {
  const auto it = map.find(name);
  if (it == map.end()) throw AttrError{fmt::format("attribute \"{}\" is missing", name)};
  const T* value = std::get_if<T>(&it->second);
  if (value == nullptr) throw AttrError{fmt::format("attribute \"{}\" has another type", name)};
  return *value;
}

}  // namespace

int64_t Attrs::i64(std::string_view name) const { return get<int64_t>(map_, name); }
int64_t Attrs::i64(std::string_view name, int64_t fallback) const { return has(name) ? i64(name) : fallback; }
double Attrs::f64(std::string_view name) const { return get<double>(map_, name); }
double Attrs::f64(std::string_view name, double fallback) const { return has(name) ? f64(name) : fallback; }
const std::string& Attrs::str(std::string_view name) const { return get<std::string>(map_, name); }
std::string Attrs::str(std::string_view name, std::string_view fallback) const {
  return has(name) ? str(name) : std::string(fallback);
}
const std::vector<int64_t>& Attrs::ints(std::string_view name) const {
  return get<std::vector<int64_t>>(map_, name);
}
const std::vector<std::string>& Attrs::strs(std::string_view name) const {
  return get<std::vector<std::string>>(map_, name);
}

}  // namespace ostro::ir
