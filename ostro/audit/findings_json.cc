#include "ostro/audit/findings_json.h"

#include <nlohmann/json.hpp>

namespace ostro::audit {

nlohmann::ordered_json finding_list_json(const std::vector<Finding>& findings) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const Finding& f : findings) out.push_back({{"verdict", verdict_word(f.verdict)}, {"text", f.text}});
  return out;
}

nlohmann::ordered_json findings_json(Verdict verdict, const std::vector<Finding>& findings) {
  return {{"verdict", verdict_word(verdict)}, {"findings", finding_list_json(findings)}};
}

std::string json_line(const nlohmann::ordered_json& document) {
  return document.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace ostro::audit
