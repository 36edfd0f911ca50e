// The two forms of a ModelCheck.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ostro/audit/findings_json.h"
#include "ostro/convert/check_model.h"

namespace ostro::convert {
namespace {

std::vector<std::string> not_shown(const ModelCheck& check) {
  std::vector<std::string> out = check.open;
  out.insert(out.end(), check.limits.begin(), check.limits.end());
  return out;
}

}  // namespace

std::string model_check_text(const ModelCheck& check) {
  std::vector<audit::Finding> lines = check.findings;
  for (const std::string& text : check.shown) lines.push_back({audit::Verdict::kEqual, text});
  std::string out;
  for (const audit::Finding& line : lines) out += audit::finding_text(line) + "\n";
  for (const std::string& text : not_shown(check)) {
    const std::string line = audit::finding_text({audit::Verdict::kEqual, text});
    out += "not shown" + line.substr(line.find(':')) + "\n";
  }
  return out;
}

std::string model_check_json(const ModelCheck& check) {
  nlohmann::ordered_json j = audit::findings_json(check.verdict(), check.findings);
  j["model"] = check.model;
  if (!check.record.empty()) j["record"] = check.record;
  if (!check.head.empty()) j["run_hash"] = check.head;
  if (check.provenance) {
    const provenance::Source& source = check.provenance->sources.front();
    j["made"] = provenance::made_word(check.provenance->made);
    j["state"] = source.state;
    j["step"] = source.step;
    if (source.genesis) j["genesis"] = *source.genesis;
  }
  j["shown"] = check.shown;
  j["not_shown"] = not_shown(check);
  return audit::json_line(j);
}

}  // namespace ostro::convert
