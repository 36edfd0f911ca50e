// Fields: reads the fields of a request's JSON object, strictly. parse_body: the object of a body.
//
// The first thing that is wrong is kept, and everything after it is skipped; finish() returns it. A field
// that is null counts as absent. Includes nlohmann/json.hpp, so use it in .cc files only.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/serve/json/api_error.h"

namespace ostro::serve {

class Fields {
 public:
  using Json = nlohmann::ordered_json;

  // `inside` names an object in a field ("stream_options"). The object must outlive this.
  explicit Fields(const Json& object, std::string inside = "");

  // The field's value; null when it is absent. The field is known from now on.
  const Json* find(const std::string& name);
  void text(const std::string& name, std::string& out);
  void flag(const std::string& name, bool& out);
  void number(const std::string& name, double& out, double low, double high);
  void integer(const std::string& name, int64_t& out, int64_t low, int64_t high);
  // A string, or a list of strings.
  void texts(const std::string& name, std::vector<std::string>& out);
  // `message` ends a sentence that begins with the name.
  void fail(const std::string& name, const std::string& message);
  void fail_as(ApiError error);
  bool failed() const { return error_.has_value(); }

  // The first error; or a field that was not asked for, with the nearest one that was.
  std::optional<ApiError> finish();

 private:
  std::string full(const std::string& name) const;

  const Json& object_;
  std::string inside_;
  std::vector<std::string> known_;
  std::optional<ApiError> error_;
};

// Sets `out` to the JSON object of a body, or returns what is wrong with it: no UTF-8, no JSON (with the
// word that JSON does not have), a key twice, too deep, an object with too many members, no object.
std::optional<ApiError> parse_body(std::string_view body, nlohmann::ordered_json& out);

// The JSON of a text from outside, with its members in their order; `name` begins errors. Errors: no JSON, a
// key twice, too deep, an object with more than 1,024 members (each is compared with those before it).
Result<nlohmann::ordered_json> parse_ordered(std::string_view text, const std::string& name);

// A list of token ids from 0 to `tokens` - 1; an error of `fields` names the first that is none.
std::vector<int32_t> ids_of(Fields& fields, const std::string& name, const nlohmann::ordered_json& list,
                            int64_t tokens);

// A value as it may stand in a message: at most 40 bytes of its JSON.
std::string shown(const nlohmann::ordered_json& value);

}  // namespace ostro::serve
