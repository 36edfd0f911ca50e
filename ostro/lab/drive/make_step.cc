#include "ostro/lab/drive/make_step.h"

#include <fmt/format.h>

#include "ostro/base/failpoint.h"
#include "ostro/io/files/file_hash.h"
#include "ostro/io/files/path.h"

namespace ostro::lab {

OutputFiles output_files(const StepKind& kind) {
  return kind.name == kCommandKind || kind.gives_model() ? OutputFiles::kAll : OutputFiles::kResult;
}

Status begin_step(OpenLab& lab, const StepState& state) {
  io::FileSystem& fs = lab.context.fs;
  const std::string folder = output_folder(lab.directory, state.fingerprint);
  RETURN_IF_ERROR(fs.remove_all(manifest_path(lab.directory, state.fingerprint)));
  RETURN_IF_ERROR(remove_beside(fs, folder));
  if (state.action != Action::kResume) {
    RETURN_IF_ERROR(fs.remove_all(folder));
    RETURN_IF_ERROR(fs.make_dirs(resumes(*state.step->kind) ? io::parent_path(folder) : folder));
  }
  return {};
}

Status check_sources(OpenLab& lab, const std::map<std::string, Made>& made, const Step& step) {
  for (const auto& [parameter, input] : step.inputs) {
    if (!made.contains(input)) continue;  // one of a family that is left out
    const std::string& name = step_with_files(lab.plan, *lab.plan.find(input)).name;
    const Made& source = made.at(name);
    for (size_t i = 0; i < source.files.size(); ++i) {
      const std::string& path = source.files[i].path;
      ASSIGN_OR_RETURN(const std::string now, io::file_sha256(lab.context.fs, path));
      if (now != source.pinned[i])
        return corrupt(
            fmt::format("{}: was changed while the step read it: its SHA-256 is {}, and was {}. Put it back, "
                        "or take it as it is now: --pin {}",
                        path, now, source.pinned[i], name));
    }
  }
  return {};
}

Status end_step(OpenLab& lab, const std::map<std::string, Made>& made, StepState& state,
                const Performed& performed, const Status& sandboxed) {
  io::FileSystem& fs = lab.context.fs;
  if (performed.ok() && !*performed) {
    state.reason = "stopped; the same command goes on";
    return {};
  }
  const std::string folder = output_folder(lab.directory, state.fingerprint);
  // What was made of other bytes than the fingerprint says is not kept.
  if (const Status same = check_sources(lab, made, *state.step); !same.ok()) {
    RETURN_IF_ERROR(fs.remove_all(folder));
    return same.error();
  }
  if (!performed.ok()) return performed.error();
  const std::string& content = **performed;
  if (const std::string& before = state.content; !before.empty() && before != content) {
    RETURN_IF_ERROR(lab.journal.add_conflict(state.step->name, state.fingerprint, before, content));
    return corrupt(
        fmt::format("fingerprint {} gave the content {} before and {} now. The same recipe must give the "
                    "same bits: this machine or this program computes wrongly. {} has the later output",
                    short_hash(state.fingerprint), short_hash(before), short_hash(content), folder));
  }
  state.content = content;
  ASSIGN_OR_RETURN(state.manifest, write_manifest(fs, lab.directory, state.fingerprint,
                                                  output_files(*state.step->kind), lab.hashes));
  failpoint("lab_step");
  if (!sandboxed.ok())
    RETURN_IF_ERROR(
        lab.journal.add_unsandboxed(state.step->name, state.fingerprint, sandboxed.error().message()));
  RETURN_IF_ERROR(record_step(lab, state));
  state.action = Action::kSkip;
  state.reason = fmt::format("has the content {}", short_hash(state.content));
  if (!sandboxed.ok())
    state.reason += "; without a sandbox, which does not work there: " + sandboxed.error().message();
  return {};
}

Status record_step(OpenLab& lab, const StepState& s) {
  return lab.journal.add_done(
      {s.step->name, s.recipe, s.fingerprint, s.content, s.manifest, lab.gate.registered_by(s.step->name)});
}

}  // namespace ostro::lab
