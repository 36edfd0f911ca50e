#include "ostro/io/json/json_fields.h"

#include <optional>
#include <unordered_set>

namespace ostro::io {
namespace {

using Json = nlohmann::json;

// Listens to a parser and stops it at the first key that an object has twice. (The parser's own callbacks,
// which could do that as well, go over all members of an object again for each object in it.)
class KeyWatch : public nlohmann::json_sax<Json> {
 public:
  const std::optional<std::string>& twice() const { return twice_; }
  bool too_deep() const { return depth_ > kMaxDepth; }

  bool start_object(size_t) override {
    open_.emplace_back();
    return ++depth_ <= kMaxDepth;
  }
  bool end_object() override {
    open_.pop_back();
    --depth_;
    return true;
  }
  bool key(string_t& key) override {
    if (open_.back().insert(key).second) return true;
    twice_ = key;
    return false;
  }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_array(size_t) override { return ++depth_ <= kMaxDepth; }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  static constexpr int kMaxDepth = 500;  // writing a value as text takes a stack of its depth

  int depth_ = 0;
  std::vector<std::unordered_set<std::string>> open_;  // the keys of the objects that have not ended
  std::optional<std::string> twice_;
};

}  // namespace

Result<Json> parse_json(std::string_view text, const std::string& path) {
  KeyWatch watch;
  Json::sax_parse(text, &watch);
  if (watch.twice())
    return corrupt(
        fmt::format("{}: an object has the key \"{}\" twice, and programs differ in which value they take",
                    path, *watch.twice()));
  if (watch.too_deep()) return corrupt(fmt::format("{}: nested too deeply", path));
  Json value = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) return corrupt(fmt::format("{}: not valid JSON", path));
  return value;
}

}  // namespace ostro::io
