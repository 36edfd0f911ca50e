#include "ostro/lab/drive/registering.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ostro/base/sha256.h"
#include "ostro/config/options.h"
#include "ostro/config/utf8.h"
#include "ostro/experiment/registry/check.h"
#include "ostro/experiment/registry/frozen.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"
#include "ostro/lab/drive/lab_lock.h"
#include "ostro/scaling/scaling.h"

namespace ostro::lab {
namespace {

// A lab whose registry is written.
struct Registering {
  std::unique_ptr<io::FileLock> lock;
  Journal journal;
  Registry registry;

  static Result<Registering> open(const Context& context, const Plan& plan) {
    ASSIGN_OR_RETURN(auto lock, lock_lab(context.fs, plan));
    ASSIGN_OR_RETURN(Journal journal, Journal::open(context.fs, plan.directory()));
    ASSIGN_OR_RETURN(Registry registry, Registry::open(context.fs, plan.directory()));
    ASSIGN_OR_RETURN(const std::vector<std::string> faults,
                     registry_faults(context.fs, plan.directory(), journal));
    if (!faults.empty()) return corrupt(faults[0]);
    RETURN_IF_ERROR(registry.complete(journal));
    return Registering{std::move(lock), std::move(journal), std::move(registry)};
  }
};

// The contents of the plan's sources. Errors: the first that cannot be read.
Result<std::map<std::string, std::string>> source_contents(const Context& context, const Plan& plan) {
  Plan sources = plan;
  sources.hypotheses.clear();
  std::erase_if(sources.steps, [](const Step& step) { return step.kind->name != "source"; });
  ASSIGN_OR_RETURN(const LabState state, look_at(context, sources));
  std::map<std::string, std::string> out;
  for (const StepState& s : state.steps) {
    if (s.action != Action::kSkip)
      return invalid_argument(fmt::format("{}: step {}: {}", s.step->where, s.step->name, s.reason));
    out[s.step->name] = s.content;
  }
  return out;
}

Result<std::string> frozen_now(const Context& context, const Plan& plan) {
  ASSIGN_OR_RETURN(const auto sources, source_contents(context, plan));
  return frozen_text(context.fs, plan, sources);
}

std::vector<std::string> query_changes(const std::map<std::string, std::string>& before,
                                       const std::map<std::string, std::string>& after) {
  std::set<std::string> names;
  for (const auto* side : {&before, &after})
    for (const auto& [name, unused] : *side) names.insert(name);
  std::vector<std::string> out;
  for (const std::string& name : names) {
    const auto was = before.find(name), is = after.find(name);
    if (was != before.end() && is != after.end() && was->second == is->second) continue;
    out.push_back(fmt::format("query {}: {}", name,
                              was == before.end() ? "is new"
                              : is == after.end()
                                  ? "is gone"
                                  : fmt::format("is {} there and {} here", was->second, is->second)));
  }
  return out;
}

// The hypotheses that are new or other than before, and of which the journal has results.
std::vector<std::string> late_hypotheses(const Journal& journal, const std::string& before,
                                         const std::string& now, bool only_queries) {
  std::vector<std::string> out;
  if (only_queries) return out;
  const auto was = before.empty() ? std::map<std::string, FrozenHypothesis>() : frozen_hypotheses(before);
  const bool all = !before.empty() && is_other_experiment(before, now);
  for (const auto& [name, hypothesis] : frozen_hypotheses(now)) {
    const auto old = was.find(name);
    if (!all && old != was.end() && old->second.definition == hypothesis.definition) continue;
    std::set<std::string> steps(hypothesis.steps.begin(), hypothesis.steps.end());
    if (old != was.end()) steps.insert(old->second.steps.begin(), old->second.steps.end());
    const auto& done = journal.done();
    if (std::any_of(done.begin(), done.end(), [&](const DoneEntry& d) { return steps.contains(d.step); }))
      out.push_back(name);
  }
  return out;
}

// Registers the forecasts that are done, each with its content.
Status register_forecasts(const Context& context, const Plan& plan, const bundle::SigningKey* key,
                          Registering& lab, Registered& out) {
  ASSIGN_OR_RETURN(const LabState state, look_at(context, plan));
  for (const StepState& s : state.steps) {
    const std::string& name = s.step->name;
    if (s.step->kind->name != "forecast" || s.action != Action::kSkip) continue;
    std::vector<std::string> late;
    for (const Step& step : plan.steps) {
      const std::string* checked = checked_forecast(step);
      if (checked != nullptr && *checked == name && lab.journal.last_of(step.name) != nullptr)
        late.push_back(step.name);
    }
    // Before its target an earlier forecast may be registered again, so that it is the last one.
    const auto in_time = lab.registry.forecasts_before(name, lab.journal, {});
    const bool is_last = !in_time.empty() && in_time.back()->content == s.content;
    if (is_last || (!late.empty() && lab.registry.forecast(name, s.content) != nullptr)) continue;
    const std::string path = io::join_path(state.made.at(name).folder, scaling::kForecastFile);
    ASSIGN_OR_RETURN(const std::string text, context.fs.read_file(path));
    ASSIGN_OR_RETURN(const scaling::ScalingForecast forecast, scaling::parse_forecast(text, path));
    RegistryEntry entry{.kind = "forecast", .registration = out.registration, .queries = {}};
    entry.forecast = name;
    entry.content = s.content;
    entry.value = scaling::forecast_sentence(forecast);
    entry.late = std::move(late);
    RETURN_IF_ERROR(lab.registry.append(entry, lab.journal, key));
    out.forecasts.push_back(fmt::format("{}: {}", name, entry.value));
    if (!entry.late.empty()) out.late.push_back(name);
  }
  return {};
}

}  // namespace

Result<Registered> register_plan(const Context& context, const Plan& plan, const bundle::SigningKey* key) {
  const bool has_seeds_of_it = std::any_of(plan.steps.begin(), plan.steps.end(),
                                           [](const Step& s) { return has_seeds(s.parameters); });
  ASSIGN_OR_RETURN(const std::string now, frozen_now(context, plan));
  ASSIGN_OR_RETURN(Registering lab, Registering::open(context, plan));
  Registered out;
  out.registration = sha256_hex(now);
  RegistryEntry entry{.kind = "register", .registration = out.registration, .queries = frozen_queries(plan)};
  for (const Hypothesis& hypothesis : plan.hypotheses) entry.hypotheses.push_back(hypothesis.name);
  const RegistryEntry* last = lab.registry.registration();
  // A plan that has been registered may lose its hypotheses by another entry.
  const bool foresees = std::any_of(plan.steps.begin(), plan.steps.end(),
                                    [](const Step& s) { return s.kind->name == "forecast"; });
  if (last == nullptr && plan.hypotheses.empty() && !has_seeds_of_it && !foresees)
    return invalid_argument(fmt::format(
        "{}: has no hypotheses, no forecast and no seeds of a registration, so there is nothing to register",
        plan.file));
  std::string before;
  if (last != nullptr) {
    ASSIGN_OR_RETURN(before, context.fs.read_file(frozen_path(plan.directory(), last->registration)));
    entry.changes = frozen_changes(before, now);
    for (std::string& change : query_changes(last->queries, entry.queries))
      entry.changes.push_back(std::move(change));
  }
  out.is_new = last == nullptr || last->registration != out.registration || last->queries != entry.queries;
  if (out.is_new) {
    entry.late = late_hypotheses(lab.journal, before, now, before == now);
    const std::string path = frozen_path(plan.directory(), out.registration);
    RETURN_IF_ERROR(context.fs.make_dirs(io::parent_path(path)));
    RETURN_IF_ERROR(io::write_file_atomically(context.fs, path, now));
    RETURN_IF_ERROR(lab.registry.append(entry, lab.journal, key));
    out.changes = entry.changes;
    out.late = entry.late;
  }
  if (foresees) RETURN_IF_ERROR(register_forecasts(context, plan, key, lab, out));
  out.head = lab.registry.head();
  return out;
}

Result<std::string> record_beacon(const Context& context, const Plan& plan, const std::string& value,
                                  const bundle::SigningKey* key) {
  if (value.empty() || !config::is_utf8(value) || value.find('\n') != std::string::npos)
    return invalid_argument("the beacon must be one line of UTF-8, and not empty");
  ASSIGN_OR_RETURN(const std::string now, frozen_now(context, plan));
  ASSIGN_OR_RETURN(Registering lab, Registering::open(context, plan));
  const RegistryEntry* last = lab.registry.registration();
  if (last == nullptr || last->registration != sha256_hex(now))
    return invalid_argument(fmt::format(
        "{}: is not registered as it is now: `ostro lab register {}` comes first", plan.file, plan.file));
  const std::string there = lab.registry.beacon_of(last->registration);
  if (there == value) return lab.registry.head();
  if (!there.empty())
    return invalid_argument(
        fmt::format("registration {} has the beacon \"{}\" already, not \"{}\"; a new one needs a new "
                    "registration",
                    short_hash(last->registration), there, value));
  // Results under any line since the plan was registered so.
  std::set<std::string> lines;
  std::string registration;
  for (const RegistryEntry& entry : lab.registry.entries()) {
    if (entry.kind == "register") registration = entry.registration;
    if (registration == last->registration) lines.insert(entry.hash);
  }
  for (const DoneEntry& done : lab.journal.done())
    if (lines.contains(done.registration))
      return invalid_argument(
          fmt::format("step {} was done under registration {} without a beacon; one that comes later would "
                      "be other seeds. "
                      "A new one needs a new registration",
                      done.step, short_hash(last->registration)));
  RegistryEntry entry{.kind = "beacon", .registration = last->registration, .queries = {}};
  entry.value = value;
  RETURN_IF_ERROR(lab.registry.append(entry, lab.journal, key));
  return lab.registry.head();
}

Result<std::string> withdraw(const Context& context, const Plan& plan, const std::string& hypothesis,
                             const std::string& reason, const bundle::SigningKey* key) {
  if (reason.empty() || !config::is_utf8(reason))
    return invalid_argument("--reason: say in UTF-8 why the hypothesis is withdrawn");
  ASSIGN_OR_RETURN(Registering lab, Registering::open(context, plan));
  std::vector<std::string> names;
  for (const RegistryEntry& entry : lab.registry.entries())
    names.insert(names.end(), entry.hypotheses.begin(), entry.hypotheses.end());
  if (std::find(names.begin(), names.end(), hypothesis) == names.end()) {
    const std::string nearest = config::nearest_name(hypothesis, names);
    return not_found(fmt::format("no hypothesis \"{}\" is registered{}", hypothesis,
                                 nearest.empty() ? "" : fmt::format("; the nearest is \"{}\"", nearest)));
  }
  if (const std::string there = lab.registry.withdrawn(hypothesis); !there.empty())
    return invalid_argument(fmt::format("the hypothesis {} is withdrawn already: {}", hypothesis, there));
  RegistryEntry entry{.kind = "withdraw", .registration = "", .queries = {}};
  entry.hypothesis = hypothesis;
  entry.reason = reason;
  RETURN_IF_ERROR(lab.registry.append(entry, lab.journal, key));
  return lab.registry.head();
}

Result<RegistrationCheck> check_registration(const Context& context, const Plan& plan,
                                             const std::string& key) {
  RegistrationCheck out;
  ASSIGN_OR_RETURN(const Journal journal, Journal::open(context.fs, plan.directory()));
  ASSIGN_OR_RETURN(out.faults, registry_faults(context.fs, plan.directory(), journal, key));
  if (!out.faults.empty()) return out;
  ASSIGN_OR_RETURN(const Registry registry, Registry::open(context.fs, plan.directory()));
  const RegistryEntry* last = registry.registration();
  if (last == nullptr) return invalid_argument(fmt::format("{}: is not registered", plan.file));
  ASSIGN_OR_RETURN(const std::string before,
                   context.fs.read_file(frozen_path(plan.directory(), last->registration)));
  ASSIGN_OR_RETURN(const std::string now, frozen_now(context, plan));
  for (const std::string& change : frozen_changes(before, now))
    out.faults.push_back(fmt::format("{}: is not what was registered: {}", plan.file, change));
  for (const std::string& change : query_changes(last->queries, frozen_queries(plan)))
    out.faults.push_back(fmt::format("{}: is not what was registered: {}", plan.file, change));
  std::set<std::string> dropped;
  for (const RegistryEntry& entry : registry.entries())
    for (const std::string& name : entry.hypotheses)
      if (registry.withdrawn(name).empty() &&
          std::none_of(plan.hypotheses.begin(), plan.hypotheses.end(),
                       [&](const Hypothesis& h) { return h.name == name; }))
        dropped.insert(name);
  out.dropped.assign(dropped.begin(), dropped.end());
  out.entries = registry.entries();
  return out;
}

}  // namespace ostro::lab
