// ConfigFields::State: the members of ConfigFields. It is private to the files of ConfigFields.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "ostro/hf/families/config_fields.h"

namespace ostro::hf {

// The file that is read or written, the keys that count as known, and the first error.
struct ConfigFields::State {
  using Json = nlohmann::ordered_json;
  bool reading = false;
  Json json = Json::object();
  std::string where;
  std::set<std::string, std::less<>> known;  // keys that were asked for
  Status status;

  // The value of a key, which then counts as known; nothing when it is absent or null.
  const Json* find(std::string_view key) {
    known.emplace(key);
    const auto at = json.find(key);
    return at == json.end() || at->is_null() ? nullptr : &*at;
  }
  bool there(std::string_view key) const { return json.find(key) != json.end(); }
  void fail(Error error) {
    if (status.ok()) status = std::move(error);
  }
  void bad(std::string_view key, std::string_view wanted) {
    fail(corrupt(fmt::format("{}: \"{}\" is {}; {}", where, key, json[std::string(key)].dump(), wanted)));
  }
  // A list of items of one kind, read or written. Empty when the key is absent.
  template <class T>
  void list(std::string_view key, std::vector<T>* field, bool (Json::*is_item)() const noexcept,
            std::string_view wanted) {
    if (!reading) {
      json[std::string(key)] = *field;
      return;
    }
    field->clear();
    const Json* value = find(key);
    if (value == nullptr) return;
    for (const Json& item : value->is_array() ? *value : Json::array({nullptr})) {
      if (!(item.*is_item)()) return bad(key, wanted);
      field->push_back(item.template get<T>());
    }
  }
};

}  // namespace ostro::hf
