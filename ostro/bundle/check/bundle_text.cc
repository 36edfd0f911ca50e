// The two forms of a BundleAudit.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ostro/audit/findings_json.h"
#include "ostro/base/one_line.h"
#include "ostro/bundle/check/check_bundle.h"

namespace ostro::bundle {

std::string bundle_text(const BundleAudit& a) {
  return audit_text(
      a,
      fmt::format("equal: {} files, the record, the weights and the ledger; no step was replayed", a.files));
}

std::string audit_text(const BundleAudit& a, const std::string& when_equal) {
  std::string out;
  if (a.findings.empty()) out = when_equal + "\n";
  for (const audit::Finding& finding : a.findings) out += audit::finding_text(finding) + "\n";
  if (!a.shown.empty()) out += "shown:\n";
  for (const std::string& line : a.shown) out += "  " + one_line(line) + "\n";
  if (!a.not_shown.empty()) out += "not shown:\n";
  for (const std::string& line : a.not_shown) out += "  " + one_line(line) + "\n";
  return out;
}

std::string bundle_json(const BundleAudit& a) {
  nlohmann::ordered_json j = audit::findings_json(a.verdict(), a.findings);
  j["shown"] = a.shown;
  j["not_shown"] = a.not_shown;
  if (!a.chain.head.empty()) {
    j["genesis"] = a.chain.genesis;
    j["run_hash"] = a.chain.head;
    j["step"] = a.chain.step;
    j["state"] = a.chain.state;
  }
  j["key"] = a.key.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(a.key);
  j["time"] = a.time.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(a.time);
  j["files"] = a.files;
  j["bytes"] = a.bytes;
  return audit::json_line(j);
}

}  // namespace ostro::bundle
