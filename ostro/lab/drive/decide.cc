#include "ostro/lab/drive/decide.h"

#include <fmt/format.h>

#include "ostro/base/sha256.h"
#include "ostro/chain/canonical.h"
#include "ostro/experiment/journal/output.h"
#include "ostro/io/files/path.h"
#include "ostro/lab/steps/halving.h"

namespace ostro::lab {
namespace {

std::string first_difference(const std::string& there, const std::string& here) {
  const auto all = chain::object_differences(there, here);
  return all.empty() ? "its recipe has changed"
                     : fmt::format("{}{}", all[0],
                                   all.size() > 1 ? fmt::format(", and {} more", all.size() - 1) : "");
}

// Of a step that the journal has: skipped if its output holds.
Status decide_done(OpenLab& lab, const DoneEntry& done, StepState& state) {
  ASSIGN_OR_RETURN(const bool holds,
                   check_output(lab.context.fs, lab.directory, state.fingerprint, done.manifest, lab.hashes));
  state.content = done.content;
  state.manifest = done.manifest;
  if (holds) state.action = Action::kSkip;
  state.reason = !holds ? "its output is gone"
                 : done.step == state.step->name
                     ? fmt::format("fingerprint {} is in the journal, and its output is unchanged",
                                   short_hash(state.fingerprint))
                     : fmt::format("{} has the same fingerprint {}, and its output is unchanged", done.step,
                                   short_hash(state.fingerprint));
  if (lab.journal.was_adopted(state.fingerprint))
    state.reason += "; it was adopted, and a part of it verified";
  if (lab.journal.was_unsandboxed(state.fingerprint)) state.reason += "; it was made without a sandbox";
  return {};
}

}  // namespace

Result<OpenLab> open_lab(const Context& context, const Services& services, const Plan& plan, bool works,
                         bool every_byte) {
  const std::string directory = plan.directory();
  ASSIGN_OR_RETURN(Journal journal, Journal::open(context.fs, directory));
  ASSIGN_OR_RETURN(Pins pins, Pins::read(context.fs, io::join_path(plan.folder, kPinsFile)));
  ASSIGN_OR_RETURN(Gate gate, Gate::open(context.fs, plan, journal));
  FileHashes hashes(context.fs, io::join_path(directory, "hashes.json"), every_byte);
  return OpenLab{context,         services,          plan,           works, directory, std::move(journal),
                 std::move(pins), std::move(hashes), std::move(gate)};
}

Status decide_step(OpenLab& lab, const std::map<std::string, Made>& made, StepState& state, Made& out) {
  const Step& step = *state.step;
  if (step.kind->name == "source") return decide_source(lab, state, out);
  ASSIGN_OR_RETURN(state.recipe, recipe(lab.work(step, made)));
  state.fingerprint = sha256_hex(state.recipe);
  if (lab.journal.has_conflict(state.fingerprint))
    return corrupt(
        fmt::format("fingerprint {} gave two different outputs (journal, \"conflict\"); this machine or "
                    "this program computes wrongly. Nothing goes on from here",
                    short_hash(state.fingerprint)));
  state.action = Action::kRun;
  ASSIGN_OR_RETURN(const std::optional<Stopped> stopped, stopped_at(lab.context.fs, lab.plan, made, step));
  if (const DoneEntry* done = lab.journal.find(state.fingerprint); done != nullptr) {
    RETURN_IF_ERROR(decide_done(lab, *done, state));
    state.was_stopped = stopped.has_value();
    if (stopped) state.reason = fmt::format("was stopped {}; {}", stopped->why, state.reason);
    return {};
  }
  const DoneEntry* last = lab.journal.last_of(step.name);
  state.reason = last == nullptr ? "was never done" : first_difference(last->recipe, state.recipe);
  ASSIGN_OR_RETURN(const bool begun, lab.context.fs.exists(output_folder(lab.directory, state.fingerprint)));
  if (begun && resumes(*step.kind)) {
    state.action = Action::kResume;
    state.reason = "was begun";
  }
  return {};
}

}  // namespace ostro::lab
