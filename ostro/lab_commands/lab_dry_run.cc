#include "ostro/lab_commands/lab_dry_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "ostro/base/units.h"
#include "ostro/experiment/plan/phases.h"
#include "ostro/lab/drive/driver.h"
#include "ostro/lab/steps/halving.h"
#include "ostro/run/report/forecast.h"
#include "ostro/shell/shared/progress.h"
#include "ostro/shell/words/args.h"
#include "ostro/shell/words/exit_code.h"

namespace ostro::cli {
namespace {

// What a training takes, for people; with a price where the time is known.
std::string cost_text(const run::Cost& cost, const std::optional<lab::Price>& price) {
  const bool has_time = cost.seconds > 0;
  return fmt::format(
      "{:.4g} GFLOP{}{}, {:.1f} MiB of memory, {:.1f} MiB of checkpoints", cost.flops * 1e-9,
      has_time ? ", about " + run::span_text(cost.seconds) : "",
      price && has_time ? fmt::format(" ({} at the declared price)", price->text(cost.seconds)) : "",
      mib(cost.memory), mib(cost.files));
}

void add_cost(run::Cost& all, const run::Cost& one) {
  all.flops += one.flops;
  all.seconds += one.seconds;
  all.memory = std::max(all.memory, one.memory);
  all.files += one.files;
}

// How many runs of a family are done at most: behind the rung that they, or the trainings that they are forks
// of, wait for. `all` where they wait for none.
int64_t most_of(const lab::Plan& plan, const std::string& family, int64_t all) {
  const auto count = [&](const std::string& name) {
    return std::count_if(plan.steps.begin(), plan.steps.end(),
                         [&](const lab::Step& step) { return step.family == name; });
  };
  for (const lab::Step& step : plan.steps) {
    if (step.family != family) continue;
    const lab::Step* training = &step;
    while (training->kind->name == lab::kForkKind) training = plan.find(training->inputs.at("of"));
    const auto go_on = lab::most_that_go_on(plan, *training);
    return go_on ? count(family) * *go_on / count(training->family) : all;
  }
  return all;
}

// What trainings that wait for a rung take at most, by family: of each the largest, as many as may go on.
void print_behind_rungs(const lab::Plan& plan, std::map<std::string, std::vector<run::Cost>>& waiting) {
  run::Cost most;
  std::string which;
  for (auto& [family, costs] : waiting) {
    std::sort(costs.begin(), costs.end(), [](const auto& a, const auto& b) { return a.flops > b.flops; });
    const auto go_on = static_cast<size_t>(most_of(plan, family, std::ssize(costs)));
    const size_t kept = std::min(costs.size(), go_on);
    which += fmt::format("{}{} of {} of {}", which.empty() ? "" : ", ", kept, costs.size(), family);
    for (size_t i = 0; i < kept; ++i) add_cost(most, costs[i]);
  }
  if (!which.empty())
    fmt::print("trainings that wait for a rung, of which these go on at most: {}; {}\n", which,
               cost_text(most, plan.price));
}

// Of a dry run: each step, with what trainings take, and the sum of that.
void print_costs(const lab::Plan& plan, const lab::LabState& state) {
  run::Cost all;
  int64_t known = 0;
  std::map<std::string, int64_t> unknown;  // by family
  std::map<std::string, std::vector<run::Cost>> waiting;
  for (const lab::StepState& step : state.steps) {
    const std::string line = state_line(step);
    if (step.cost)
      fmt::print("{}; {}\n", line.substr(0, line.size() - 1), cost_text(*step.cost, plan.price));
    else
      fmt::print("{}", line);
    for (const std::string& phase : lab::phase_lines(plan, *step.step)) fmt::print("          {}\n", phase);
    if (!step.cost) {
      if (step.action == lab::Action::kWait && step.step->kind->makes_run()) ++unknown[step.step->family];
      continue;
    }
    if (step.action == lab::Action::kWait && lab::most_that_go_on(plan, *step.step)) {
      waiting[step.step->family].push_back(*step.cost);
      continue;
    }
    ++known;
    add_cost(all, *step.cost);
  }
  if (known > 0)
    fmt::print("trainings to be done: {}, one after another {} (whole, also of those that were begun)\n",
               known, cost_text(all, plan.price));
  print_behind_rungs(plan, waiting);
  int64_t not_known = 0;
  for (const auto& [family, count] : unknown) not_known += std::min(count, most_of(plan, family, count));
  if (not_known > 0)
    fmt::print("trainings that wait for a step, so that what they take is not known: {}\n", not_known);
}

}  // namespace

std::string state_line(const lab::StepState& state) {
  return fmt::format("{:<7} {}: {}\n", lab::action_name(state.action), state.step->name, state.reason);
}

int lab_dry_run(const Context& context, const lab::Plan& plan, bool every_byte) {
  BuildProgressLine line;
  const auto build = build_settings(line);
  if (!build.ok()) return report_error(build.error());
  const lab::Services services = {
      .build = *build, .cost = [&](const train::TrainConfig& config, int64_t from_step) -> Result<run::Cost> {
        ASSIGN_OR_RETURN(const auto engine, context.on(config.trainer.device).engine());
        ASSIGN_OR_RETURN(const run::DryRun told,
                         run::dry_run(context.fs, *engine, config, 1, 1, *build, from_step));
        return told.cost;
      }};
  const auto state = lab::look_at(context, plan, every_byte, services);
  if (!state.ok()) return report_error(state.error());
  print_costs(plan, *state);
  return kExitOk;
}

}  // namespace ostro::cli
