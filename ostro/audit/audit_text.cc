// The two forms of an Audit.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ostro/audit/audit_run.h"
#include "ostro/audit/findings_json.h"
#include "ostro/base/one_line.h"
#include "ostro/io/files/path.h"

namespace ostro::audit {
namespace {

// " (steps 5, 10, 15)"; of many the first and the last, since all that are not fine are named.
std::string steps_text(const std::vector<int64_t>& steps) {
  constexpr size_t kMany = 8;
  if (steps.empty()) return "";
  if (steps.size() == 1) return fmt::format(" (step {})", steps[0]);
  if (steps.size() > kMany) return fmt::format(" (steps {} to {})", steps.front(), steps.back());
  return fmt::format(" (steps {})", fmt::join(steps, ", "));
}

// "steps 1 to 20 replayed, 24 chain entries compared".
std::string replay_text(const VerifyReport& r, int64_t steps) {
  std::string out = fmt::format("steps {} to {} replayed, {} chain entries compared", r.start_step + 1,
                                r.last_step, r.entries);
  if (const int64_t done = r.last_step - r.start_step; done < steps)
    out += fmt::format("; {} of {} steps were not replayed", steps - done, steps);
  return out;
}

std::string verdict_line(const Audit& a) {
  if (!a.findings.empty()) return finding_text(a.findings.front());
  if (a.replay) return "equal: " + replay_text(*a.replay, a.steps - a.before);
  if (a.sample) return "equal: " + replayed_text(*a.sample);
  return "equal: chain and checkpoints; no step was replayed (--no_replay)";
}

}  // namespace

std::string audit_text(const Audit& a) {
  std::string out = verdict_line(a) + "\n";
  for (size_t i = 1; i < a.findings.size(); ++i) out += finding_text(a.findings[i]) + "\n";
  if (a.head.empty()) return out;
  if (a.replay && a.replay->equal && !a.findings.empty() && a.replay->last_step > a.replay->start_step)
    out += "replay is equal: " + replay_text(*a.replay, a.steps - a.before) + "\n";
  if (a.sample && a.sample->report.equal && !a.findings.empty())
    out += "replay is equal: " + replayed_text(*a.sample) + "\n";
  if (!a.given.empty() && a.hash_fits()) out += fmt::format("run hash: {}, {}\n", a.head, a.given_from);
  if (!a.beginning.empty()) out += fmt::format("began with: {}\n", a.beginning);
  std::vector<int64_t> fine;
  for (const CheckedCheckpoint& c : a.checkpoints)
    if (c.fine()) fine.push_back(c.step);
  out += fmt::format("checkpoints: {} fine{}\n", fine.size(), steps_text(fine));
  for (const CheckedCheckpoint& c : a.checkpoints)
    if (c.verdict == CheckpointVerdict::kTemporary)
      out += fmt::format("{} is temporary: {}\n", io::base_name(c.path), one_line(c.detail));
  if (a.sample) out += shown_text(*a.sample);
  for (const std::string& line : a.not_shown) out += fmt::format("not shown: {}\n", one_line(line));
  return out;
}

std::string audit_json(const Audit& a) {
  nlohmann::ordered_json j = findings_json(a.verdict(), a.findings);
  if (a.replay) {
    const VerifyReport& r = *a.replay;
    j["equal"] = r.equal;
    j["start_step"] = r.start_step;
    j["last_step"] = r.last_step;
    j["entries"] = r.entries;
    if (!r.equal) {
      j["different_step"] = r.different_step;
      j["what"] = r.what;
      j["recorded"] = r.recorded;
      j["replayed"] = r.replayed;
      if (!r.cause.empty()) j["cause"] = r.cause;
    }
  }
  if (a.sample) {
    j["equal"] = a.sample->report.equal;
    j["sample"] = nlohmann::ordered_json::parse(sample_json(*a.sample));
  }
  if (!a.head.empty()) {
    j["run_hash"] = a.head;
    j["steps"] = a.steps;
    if (a.before > 0) j["before"] = a.before;
    if (a.length) j["length"] = *a.length;
  }
  if (!a.given.empty()) j["run_hash_as_given"] = a.hash_fits();
  if (!a.beginning.empty()) j["beginning"] = a.beginning;
  j["not_shown"] = a.not_shown;
  j["checkpoints"] = nlohmann::ordered_json::array();
  for (const CheckedCheckpoint& c : a.checkpoints)
    j["checkpoints"].push_back({{"step", c.step},
                                {"path", c.path},
                                {"verdict", verdict_name(c.verdict)},
                                {"name", c.name},
                                {"detail", c.detail}});
  return json_line(j);
}

}  // namespace ostro::audit
