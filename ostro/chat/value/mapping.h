// Mapping: Python's dict, with its keys in the order in which they were first set.
#pragma once

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ostro/chat/value/value.h"

namespace ostro::chat::jinja {

// Lookups take constant time. Immutable once it is part of a Value.
class Mapping {
 public:
  // Sets the value of a key. An existing key keeps its position. TemplateError for a key that cannot be
  // hashed.
  void set(const Value& key, Value value);

  // Null when absent.
  const Value* find(const Value& key) const;

  const std::vector<std::pair<Value, Value>>& items() const { return items_; }
  size_t size() const { return items_.size(); }

 private:
  std::vector<std::pair<Value, Value>> items_;
  std::unordered_map<std::string, size_t> index_;  // by hash_key
};

}  // namespace ostro::chat::jinja
