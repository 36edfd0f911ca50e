// Attrs: the attributes of an op, a small ordered map from name to value. They are part of a program's
// meaning and of its text form.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace ostro::ir {

// A double is kept exactly (hex float in the text form).
using Attr = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<std::string>>;

// Thrown by the getters when an attribute is absent or of another type. infer_shapes and the verifier turn it
// into an error, so it cannot happen in a verified program.
struct AttrError {
  std::string message;
};

// A value; not thread-safe.
class Attrs {
 public:
  Attrs() = default;
  Attrs(std::initializer_list<std::pair<const std::string, Attr>> init) : map_(init) {}

  bool operator==(const Attrs&) const = default;
  bool has(std::string_view name) const { return map_.find(name) != map_.end(); }
  void set(const std::string& name, Attr value) { map_[name] = std::move(value); }
  void erase(const std::string& name) { map_.erase(name); }

  // Each getter throws AttrError when the attribute is absent or of another type; those with a fallback
  // return it when the attribute is absent.
  int64_t i64(std::string_view name) const;
  int64_t i64(std::string_view name, int64_t fallback) const;
  double f64(std::string_view name) const;
  double f64(std::string_view name, double fallback) const;
  const std::string& str(std::string_view name) const;
  std::string str(std::string_view name, std::string_view fallback) const;
  const std::vector<int64_t>& ints(std::string_view name) const;
  const std::vector<std::string>& strs(std::string_view name) const;

  const std::map<std::string, Attr, std::less<>>& all() const { return map_; }

 private:
  std::map<std::string, Attr, std::less<>> map_;
};

}  // namespace ostro::ir
