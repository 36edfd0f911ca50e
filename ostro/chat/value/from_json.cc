#include "ostro/chat/value/from_json.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "ostro/chat/value/mapping.h"
#include "ostro/io/json/json_words.h"

namespace ostro::chat::jinja {
namespace {

constexpr size_t kMaxLevels = 200;

// Builds values from the parser's events. Containers that are not finished are on a stack.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  Builder(std::string_view text, std::span<const std::string_view> used) : text_(text), used_(used) {}

  Value value;
  std::string error;

  bool null() override { return add(Value()); }
  bool boolean(bool v) override { return add(Value(v)); }
  bool number_integer(number_integer_t v) override { return add(Value(static_cast<int64_t>(v))); }
  bool number_unsigned(number_unsigned_t v) override {
    if (v > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return fail_number(std::to_string(v));
    return add(Value(static_cast<int64_t>(v)));
  }
  bool number_float(number_float_t v, const string_t& text) override {
    if (text.find_first_of(".eE") == std::string::npos) return fail_number(text);
    return add(Value(v));
  }
  bool string(string_t& v) override { return add(Value(std::move(v))); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return open(true); }
  bool key(string_t& v) override {
    open_.back().key = Value(std::move(v));
    return true;
  }
  bool end_object() override {
    Value done(std::shared_ptr<const Mapping>(std::move(open_.back().mapping)));
    open_.pop_back();
    return add(std::move(done));
  }
  bool start_array(size_t) override { return open(false); }
  bool end_array() override {
    Value done = Value::list(std::move(open_.back().items));
    open_.pop_back();
    return add(std::move(done));
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& e) override {
    // 101 is a syntax error; the others mean that a number is out of range.
    error = e.id == 101 ? fmt::format("not valid JSON (near byte {}){}", position, io::json_trouble(text_))
                        : fmt::format("a number near byte {} is out of range", position);
    return false;
  }

 private:
  struct Open {
    std::shared_ptr<Mapping> mapping;  // null: an array
    std::vector<Value> items;
    Value key;
  };
  bool add(Value v) {
    if (open_.empty())
      value = std::move(v);
    else if (open_.back().mapping)
      open_.back().mapping->set(open_.back().key, std::move(v));
    else
      open_.back().items.push_back(std::move(v));
    return true;
  }
  bool open(bool object) {
    if (open_.size() == kMaxLevels) {
      error = fmt::format("more than {} levels of objects and arrays", kMaxLevels);
      return false;
    }
    open_.push_back({object ? std::make_shared<Mapping>() : nullptr, {}, Value()});
    return true;
  }
  // A number that does not fit does no harm in a field that nothing reads.
  bool fail_number(const std::string& text) {
    if (!used_.empty() && !open_.empty() && open_[0].mapping && open_[0].key.is_text() &&
        std::find(used_.begin(), used_.end(), open_[0].key.as_text()) == used_.end())
      return add(Value());
    error = fmt::format("the number {} does not fit 64 bits", text);
    return false;
  }
  std::string_view text_;
  std::span<const std::string_view> used_;
  std::vector<Open> open_;
};

}  // namespace

Result<Value> from_json(std::string_view json, std::span<const std::string_view> used) {
  Builder builder(json, used);
  if (!nlohmann::json::sax_parse(json, &builder)) return invalid_argument(builder.error);
  return std::move(builder.value);
}

}  // namespace ostro::chat::jinja
