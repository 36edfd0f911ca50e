#include "ostro/experiment/registry/gate.h"

#include <fmt/format.h>

#include "ostro/experiment/registry/check.h"
#include "ostro/experiment/registry/frozen.h"
#include "ostro/experiment/registry/uses.h"

namespace ostro::lab {
namespace {

// The first source among the steps that a step needs whose content is not the registered one.
std::string other_source(const Plan& plan, const Step& step, const std::map<std::string, std::string>& wanted,
                         const Gate::ContentOf& content_of) {
  std::set<std::string> seen;
  for (const Step* needed : plan.needed_by(step, seen)) {
    if (needed->kind->name != "source") continue;
    const auto found = wanted.find(needed->name);
    if (found == wanted.end() || found->second != content_of(needed->name)) return needed->name;
  }
  return "";
}

}  // namespace

Result<Gate> Gate::open(io::FileSystem& fs, const Plan& plan, const Journal& journal) {
  Gate gate;
  if (plan.sanity) return gate;
  ASSIGN_OR_RETURN(const auto uses, used_steps(plan));
  for (const Step& step : plan.steps)
    if (has_seeds(step.parameters)) gate.why_[step.name] = "has seeds of the registration";
  for (const Step& step : plan.steps)
    if (const std::string* forecast = checked_forecast(step); forecast != nullptr)
      gate.why_[step.name] = fmt::format("checks {}", *forecast);
  for (const auto& [hypothesis, steps] : uses)
    for (const std::string& step : steps)
      gate.why_[step] = fmt::format("is used by the hypothesis {}", hypothesis);
  ASSIGN_OR_RETURN(const std::vector<std::string> faults, registry_faults(fs, plan.directory(), journal));
  if (!faults.empty())
    return corrupt(fmt::format(
        "{}{}. Put back a copy; `ostro lab register {} --check` names all that is wrong", faults[0],
        faults.size() > 1 ? fmt::format(" (and {} more)", faults.size() - 1) : "", plan.file));
  gate.command_ = fmt::format("ostro lab register {}", plan.file);
  ASSIGN_OR_RETURN(const Registry registry, Registry::open(fs, plan.directory()));
  const RegistryEntry* registered = registry.registration();
  if (registered == nullptr) {
    gate.missing_ = "the plan is not registered";
    return gate;
  }
  ASSIGN_OR_RETURN(const std::string before,
                   fs.read_file(frozen_path(plan.directory(), registered->registration)));
  // What waited for the registration does not stop to because the plan has lost its hypotheses.
  for (const auto& [name, step] : frozen_steps(before))
    if (step.waits()) gate.why_.emplace(name, "waits for the registration of the plan");
  ASSIGN_OR_RETURN(const std::string now, frozen_text(fs, plan, {}));
  const std::vector<std::string> changes = frozen_changes(before, now, /*sources=*/false);
  if (!changes.empty()) {
    gate.missing_ = fmt::format("the plan is not what was registered ({}{})", changes[0],
                                changes.size() > 1 ? fmt::format("; and {} more", changes.size() - 1) : "");
  } else if (registered->queries != frozen_queries(plan)) {
    gate.missing_ = "the plan's queries are not those that were registered";
  }
  for (const RegistryEntry& entry : registry.entries())
    if (entry.kind == "forecast") gate.forecasts_.emplace(entry.forecast, entry.content);
  gate.line_ = registry.head();
  gate.sources_ = frozen_sources(before);
  gate.seeds_ = {registered->registration, registry.beacon_of(registered->registration)};
  return gate;
}

std::string Gate::refusal(const Plan& plan, const Step& step, const ContentOf& content_of) const {
  const auto found = why_.find(step.name);
  if (found == why_.end()) return "";
  std::string why = missing_;
  if (why.empty())
    if (const std::string other = other_source(plan, step, sources_, content_of); !other.empty())
      why = fmt::format("the source {} is not what was registered", other);
  if (const std::string* forecast = checked_forecast(step);
      why.empty() && forecast != nullptr && !forecasts_.contains({*forecast, content_of(*forecast)}))
    why = fmt::format("{} is not registered", *forecast);
  return why.empty() ? "" : fmt::format("{}, and {}: `{}` comes first", found->second, why, command_);
}

std::string Gate::registered_by(const std::string& step) const { return why_.contains(step) ? line_ : ""; }

}  // namespace ostro::lab
