#include "ostro/lab/drive/live_lab.h"

#include <algorithm>

#include "ostro/chain/lock.h"
#include "ostro/experiment/journal/output.h"
#include "ostro/io/files/path.h"

namespace ostro::lab {

const BegunStep* LiveLab::find(const std::string& step) const {
  for (const BegunStep& one : begun)
    if (one.step == step) return &one;
  return nullptr;
}

Result<LiveLab> look_live(const Context& context, const Plan& plan) {
  io::FileSystem& fs = context.fs;
  LiveLab out;
  ASSIGN_OR_RETURN(out.state, look_at(context, plan));
  if (const std::string lock = io::join_path(plan.directory(), "lock"); chain::is_locked_here(fs, lock)) {
    const auto owner = fs.read_file(lock, 4096);
    out.driver = owner.ok() && !owner->empty() ? *owner : "a process of this machine";
  }
  for (const StepState& s : out.state.steps) {
    if (s.fingerprint.empty() || (s.action != Action::kRun && s.action != Action::kResume)) continue;
    BegunStep begun{.step = s.step->name, .folder = output_folder(plan.directory(), s.fingerprint)};
    ASSIGN_OR_RETURN(const bool exists, fs.exists(begun.folder));
    if (!exists) continue;
    begun.is_at_work = !out.driver.empty();
    if (s.step->kind->makes_run())
      if (auto status = run::read_status(context, begun.folder); status.ok()) begun.run = std::move(*status);
    if (begun.run) begun.is_at_work = begun.run->state == "running" || begun.run->state == "waiting";
    out.begun.push_back(std::move(begun));
  }
  return out;
}

std::string live_state(const LiveLab& lab, const StepState& step) {
  const BegunStep* begun = lab.find(step.step->name);
  return begun == nullptr ? action_name(step.action) : begun->is_at_work ? "running" : "begun";
}

}  // namespace ostro::lab
