#include "ostro/serve/json/standing_fields.h"

#include <fmt/format.h>

#include <algorithm>

namespace ostro::serve {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostLabel = 512;  // bytes of one
constexpr size_t kMostPairs = 16, kMostKey = 64;

// Refuses values other than these; `why` ends the message.
void stands(Fields& fields, const char* name, const std::vector<Json>& values, const char* why) {
  const Json* given = fields.find(name);
  if (given == nullptr || std::find(values.begin(), values.end(), *given) != values.end()) return;
  fields.fail(name, fmt::format("is {}; {}", shown(*given), why));
}

void label(Fields& fields, const char* name) {
  std::string text;
  fields.text(name, text);
  if (text.size() > kMostLabel)
    fields.fail(name, fmt::format("has {} bytes; at most {} are taken", text.size(), kMostLabel));
}

void pairs(Fields& fields, const char* name) {
  const Json* given = fields.find(name);
  if (given == nullptr) return;
  const bool texts = given->is_object() &&
                     std::all_of(given->begin(), given->end(), [](const Json& v) { return v.is_string(); });
  if (!texts)
    fields.fail(name, fmt::format("is {}; it is an object of texts", shown(*given)));
  else if (given->size() > kMostPairs)
    fields.fail(name, fmt::format("has {} members; at most {} are taken", given->size(), kMostPairs));
  else
    for (const auto& [key, value] : given->items())
      if (key.size() > kMostKey || value.get<std::string>().size() > kMostLabel)
        fields.fail(name, fmt::format("has a member of more than {} and {} bytes", kMostKey, kMostLabel));
}

void conversation(Fields& fields) {
  for (const char* name : {"user", "safety_identifier", "prompt_cache_key"}) label(fields, name);
  pairs(fields, "metadata");
  stands(fields, "service_tier", {"auto", "default"},
         "there is one tier: leave the field out, or use \"auto\"");
  stands(fields, "parallel_tool_calls", {true},
         "this server does not keep an answer from holding several calls");
}

}  // namespace

void read_standing_completion(Fields& fields, int64_t answers) {
  label(fields, "user");
  stands(fields, "best_of", {answers}, "every answer is given, so it has to be \"n\"");
  stands(fields, "suffix", {""}, "this server continues texts and fills no gaps");
}

void read_standing_chat(Fields& fields) {
  conversation(fields);
  stands(fields, "response_format", {Json::object({{"type", "text"}})},
         "this server does not force answers into a format");
  stands(fields, "store", {false}, "this server keeps no answers");
}

void read_standing_response(Fields& fields) {
  conversation(fields);
  stands(fields, "truncation", {"disabled"}, "this server cuts no conversation");
  stands(fields, "background", {false}, "this server answers at once");
}

}  // namespace ostro::serve
