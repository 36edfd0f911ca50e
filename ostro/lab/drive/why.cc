#include <fmt/format.h>

#include "ostro/chain/canonical.h"
#include "ostro/config/options.h"
#include "ostro/experiment/journal/journal.h"
#include "ostro/lab/drive/driver.h"

namespace ostro::lab {

Result<std::string> why_text(const Context& context, const Plan& plan, const std::string& name) {
  if (plan.find(name) == nullptr) {
    std::vector<std::string> names;
    for (const Step& step : plan.steps) names.push_back(step.name);
    return not_found(fmt::format("the plan has no step \"{}\"; the nearest is \"{}\"", name,
                                 config::nearest_name(name, names)));
  }
  ASSIGN_OR_RETURN(const LabState state, look_at(context, plan));
  const StepState& step = *state.find(name);
  std::string out = fmt::format("{}: {}: {}\n", name, action_name(step.action), step.reason);
  if (step.fingerprint.empty()) return out;
  out += fmt::format("fingerprint {}\n", step.fingerprint);
  ASSIGN_OR_RETURN(const Journal journal, Journal::open(context.fs, plan.directory()));
  const DoneEntry* last = journal.last_of(name);
  if (last == nullptr || last->fingerprint == step.fingerprint) return out;
  out += fmt::format("when it was done last, the fingerprint was {}:\n", last->fingerprint);
  for (const std::string& difference : chain::object_differences(last->recipe, step.recipe))
    out += "  " + difference + "\n";
  return out;
}

}  // namespace ostro::lab
