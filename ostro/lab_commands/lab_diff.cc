#include "ostro/lab_commands/lab_diff.h"

#include <fmt/format.h>

#include "ostro/audit/record/run_diff.h"
#include "ostro/config/options.h"
#include "ostro/experiment/journal/output.h"
#include "ostro/io/files/path.h"
#include "ostro/lab/drive/driver.h"
#include "ostro/shell/shared/terminal.h"
#include "ostro/shell/words/exit_code.h"

namespace ostro::cli {
namespace {

// The folder of a step's run, also of one that is not done yet.
Result<std::string> folder_of(const lab::Plan& plan, const lab::LabState& state, const std::string& name) {
  const lab::StepState* step = state.find(name);
  if (step == nullptr) {
    std::vector<std::string> names;
    for (const lab::Step& s : plan.steps)
      if (s.kind->makes_run()) names.push_back(s.name);
    return not_found(fmt::format("{} has no step \"{}\"; the nearest is \"{}\"", plan.file, name,
                                 config::nearest_name(name, names)));
  }
  if (!step->step->kind->makes_run())
    return invalid_argument(
        fmt::format("{} is a step of kind {}, which makes no run; use a step of kind train or fork", name,
                    step->step->kind->name));
  if (step->fingerprint.empty()) return not_found(fmt::format("{} has no run yet: {}", name, step->reason));
  return lab::output_folder(plan.directory(), step->fingerprint);
}

Result<chain::Chain> chain_of(io::FileSystem& fs, const std::string& name, const std::string& folder) {
  auto chain = chain::read_chain(fs, io::join_path(folder, chain::kChainFile));
  if (!chain.ok()) return chain.error().with_context(name);
  return chain;
}

Result<int> diff(const Context& context, const std::string& plan_file, const std::string& one,
                 const std::string& two, bool json) {
  std::string first = one, second = two;
  if (!plan_file.empty()) {
    ASSIGN_OR_RETURN(const lab::Plan plan, lab::read_plan(context.fs, plan_file));
    ASSIGN_OR_RETURN(const lab::LabState state, lab::look_at(context, plan));
    ASSIGN_OR_RETURN(first, folder_of(plan, state, one));
    ASSIGN_OR_RETURN(second, folder_of(plan, state, two));
  }
  ASSIGN_OR_RETURN(const chain::Chain a, chain_of(context.fs, one, first));
  ASSIGN_OR_RETURN(const chain::Chain b, chain_of(context.fs, two, second));
  const audit::ComparedRun left{one, a}, right{two, b};
  const audit::RunDifference found = audit::compare_runs(left, right);
  RETURN_IF_ERROR(write_stdout(json ? audit::run_difference_json(found, left, right)
                                    : audit::run_difference_text(found, left, right)));
  return !found.step && found.common > 0 ? kExitOk : kExitFailed;
}

}  // namespace

int lab_diff(Args args) {
  std::string plan, one, two;
  bool json = false;
  args.summary(
      "Compares two runs by their chains: the first step that differs, in what, and why (options, data, "
      "programs,\nstart, amends). The exit status is 0 when all steps that both have are equal, and 1 when "
      "one "
      "differs.");
  args.positional("ONE", &one, "a run directory; with --lab a training or fork of the plan");
  args.positional("TWO", &two, "the other one");
  args.option("--lab", &plan, "FILE", "the plan whose steps are compared");
  args.flag("--json", &json, "print what was found as JSON");
  if (const auto code = args.parse()) return *code;
  const auto code = diff(args.context(), plan, one, two, json);
  return code.ok() ? *code : report_error(code.error());
}

}  // namespace ostro::cli
