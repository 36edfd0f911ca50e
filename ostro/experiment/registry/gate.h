// Gate: which steps may be done: those that a hypothesis uses, or that have seeds of the registration, only
// when the plan is registered as it is now; those that check a forecast only when that is registered, too. A
// value.
#pragma once

#include <functional>
#include <set>

#include "ostro/experiment/plan/plan.h"
#include "ostro/experiment/plan/seeds.h"
#include "ostro/experiment/registry/registry.h"

namespace ostro::lab {

class Gate {
 public:
  // Of a sanity run (Plan::sanity) all steps may be done, with the seeds of a trial. Errors: a registry that
  // does not hold (registry_faults), hypotheses with a mistake.
  static Result<Gate> open(io::FileSystem& fs, const Plan& plan, const Journal& journal);

  // The content of a source, or of the forecast that a step checks, which are known.
  using ContentOf = std::function<std::string(const std::string& step)>;
  // Why a step may not be done; empty: it may. Its sources are known.
  std::string refusal(const Plan& plan, const Step& step, const ContentOf& content_of) const;
  // The registry's last line, for steps that must be registered; else empty.
  std::string registered_by(const std::string& step) const;
  // Those of a trial, unless the plan is registered.
  const Seeds& seeds() const { return seeds_; }

 private:
  std::map<std::string, std::string> why_;  // steps that must be registered -> what for
  std::string missing_;                     // why no such step may be done; empty: they may
  std::string line_;
  std::map<std::string, std::string> sources_;               // as registered
  std::set<std::pair<std::string, std::string>> forecasts_;  // as registered: step and content
  std::string command_;                                      // that registers
  Seeds seeds_;
};

}  // namespace ostro::lab
