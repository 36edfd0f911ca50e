#include "ostro/chat/value/mapping.h"

#include <fmt/core.h>

#include <cmath>

namespace ostro::chat::jinja {
namespace {

// Equal keys have equal texts: 1, 1.0 and True are one key.
std::string hash_key(const Value& key) {
  if (key.is_text()) return "s" + key.as_text();
  if (key.is_none()) return "n";
  if (key.is_bool() || key.is_int()) return fmt::format("i{}", key.as_int());
  if (key.is_float()) {
    const double v = key.as_double();
    if (v == std::floor(v) && std::abs(v) < 9e18) return fmt::format("i{}", static_cast<int64_t>(v));
    return "f" + repr_of_double(v);
  }
  if (key.is_sequence(SequenceKind::kTuple)) {
    std::string out = "t";
    for (const Value& item : key.as_sequence().items) {
      const std::string part = hash_key(item);
      out += fmt::format("{}:{}", part.size(), part);
    }
    return out;
  }
  throw TemplateError(fmt::format("unhashable type: '{}' as a key", key.type_name()));
}

}  // namespace

void Mapping::set(const Value& key, Value value) {
  const auto [it, is_new] = index_.emplace(hash_key(key), items_.size());
  if (is_new)
    items_.emplace_back(key, std::move(value));
  else
    items_[it->second].second = std::move(value);
}

const Value* Mapping::find(const Value& key) const {
  const auto it = index_.find(hash_key(key));
  return it == index_.end() ? nullptr : &items_[it->second].second;
}

}  // namespace ostro::chat::jinja
