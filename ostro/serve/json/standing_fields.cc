#include "ostro/serve/json/standing_fields.h"

#include <fmt/format.h>

#include <algorithm>

namespace ostro::serve {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostLabel = 512;  // bytes of one
constexpr size_t kMostPairs = 16;

// Refuses values other than these.
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
}

}  // namespace

void read_standing_fields(Fields& fields, bool chat) {
  label(fields, "user");
  if (!chat) {
    stands(fields, "best_of", {1}, "every answer is given; ask for several with \"n\"");
    stands(fields, "suffix", {""}, "this server continues texts and fills no gaps");
    return;
  }
  label(fields, "safety_identifier");
  label(fields, "prompt_cache_key");
  pairs(fields, "metadata");
  stands(fields, "service_tier", {"auto", "default"},
         "there is one tier: leave the field out, or use \"auto\"");
  stands(fields, "parallel_tool_calls", {true},
         "this server does not keep an answer from holding several calls: use true");
}

}  // namespace ostro::serve
