#include "ostro/serve/json/reply_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "ostro/base/sha256.h"
#include "ostro/chain/version.h"

namespace ostro::serve {

using Json = nlohmann::ordered_json;

std::string json_text(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

http::Response json_response(const Json& value) { return {200, "application/json", json_text(value) + "\n"}; }

std::string new_id(const char* prefix) {
  const Nonce nonce = new_nonce();
  return prefix + sha256_hex(std::string_view(nonce.data(), nonce.size())).substr(0, 24);
}

int64_t seconds_since_1970() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string fingerprint(std::string parameters) {
  std::replace(parameters.begin(), parameters.end(), ' ', '-');
  return fmt::format("ostro-{}-{}", chain::kNumericsVersion, parameters);
}

Json calls_json(const std::vector<ToolCall>& calls, bool numbered) {
  Json out = Json::array();
  for (size_t i = 0; i < calls.size(); ++i) {
    Json call = numbered ? Json{{"index", i}} : Json::object();
    call["id"] = new_id("call_");
    call["type"] = "function";
    call["function"] = {{"name", calls[i].name}, {"arguments", calls[i].arguments}};
    out.push_back(std::move(call));
  }
  return out;
}

}  // namespace ostro::serve
