#include "ostro/lab/drive/audit.h"

#include <fmt/format.h>

#include <cmath>

#include "ostro/base/sha256.h"
#include "ostro/data/rows/row_verdicts.h"
#include "ostro/experiment/journal/output.h"
#include "ostro/io/files/path.h"

namespace ostro::lab {
namespace {

std::string audit_directory(const OpenLab& lab) { return io::join_path(lab.directory, "audit"); }

// What a step itself says of rows, without names, which are for people, and without what is said of rows that
// the verdicts before it leave out.
Result<data::RowVerdicts> own_verdicts(io::FileSystem& fs, const std::string& folder,
                                       const data::RowVerdicts& before) {
  ASSIGN_OR_RETURN(data::RowVerdicts out, data::read_row_verdicts(fs, io::join_path(folder, kVerdictsFile)));
  for (size_t i = 0; i < out.files.size(); ++i) {
    data::FileVerdicts& file = out.files[i];
    file.file.clear();
    for (data::RowVerdict& said : file.said) said.of.clear();
    if (i < before.files.size())
      std::erase_if(file.said, [&](const data::RowVerdict& v) { return before.files[i].drops(v.row); });
  }
  return out;
}

// Whether the folders `there` and `here` have the same verdicts of the step.
Result<bool> same_verdicts(const OpenLab& lab, const std::map<std::string, Made>& made, const Step& step,
                           const std::string& there, const std::string& here) {
  io::FileSystem& fs = lab.context.fs;
  const std::string& input = step.inputs.at("from");
  data::RowVerdicts before;
  if (lab.plan.find(input)->kind->gives_verdicts()) {
    ASSIGN_OR_RETURN(before,
                     data::read_row_verdicts(fs, io::join_path(made.at(input).folder, kVerdictsFile)));
  }
  ASSIGN_OR_RETURN(const data::RowVerdicts a, own_verdicts(fs, there, before));
  ASSIGN_OR_RETURN(const data::RowVerdicts b, own_verdicts(fs, here, before));
  return a == b;
}

}  // namespace

bool is_drawn(const std::string& journal_head, const std::string& fingerprint, double share) {
  constexpr size_t kDigits = 13;  // 52 bits, which a double holds
  const std::string drawn = sha256_hex(journal_head + fingerprint).substr(0, kDigits);
  return std::ldexp(static_cast<double>(std::stoull(drawn, nullptr, 16)), -52) < share;
}

std::string audit_folder(const OpenLab& lab, const StepState& state) {
  return output_folder(audit_directory(lab), state.fingerprint);
}

Status begin_audit(OpenLab& lab, const StepState& state) {
  io::FileSystem& fs = lab.context.fs;
  const std::string folder = audit_folder(lab, state);
  RETURN_IF_ERROR(fs.remove_all(folder));
  RETURN_IF_ERROR(remove_beside(fs, folder));
  return fs.make_dirs(resumes(*state.step->kind) ? io::parent_path(folder) : folder);
}

Status end_audit(OpenLab& lab, const std::map<std::string, Made>& made, StepState& state,
                 const Performed& performed, const std::string& by) {
  io::FileSystem& fs = lab.context.fs;
  if (performed.ok() && !*performed) {
    state.action = Action::kSkip;
    state.reason = "its audit was stopped";
    return {};
  }
  const std::string folder = audit_folder(lab, state);
  RETURN_IF_ERROR(check_sources(lab, made, *state.step));
  if (!performed.ok()) return performed.error();
  ASSIGN_OR_RETURN(const std::string manifest, write_manifest(fs, audit_directory(lab), state.fingerprint,
                                                              output_files(*state.step->kind), lab.hashes));
  const std::string& content = **performed;
  // What was resumed may have other files for the same content: another checkpoint that was the last one. So
  // may verdicts: another name of a step that made their files, or reasons of a step before them that left
  // out the same rows by other rules. What they say themselves must be the same.
  const StepKind& kind = *state.step->kind;
  const bool same = content == state.content;
  bool same_files = resumes(kind) || manifest == state.manifest ||
                    // The content is that of all files, of which lists of earlier versions lack some; or it
                    // is a model, with which a bundle has the record of sessions and programs.
                    output_files(kind) == OutputFiles::kAll;
  if (same && !same_files && kind.gives_verdicts()) {
    ASSIGN_OR_RETURN(same_files, same_verdicts(lab, made, *state.step,
                                               output_folder(lab.directory, state.fingerprint), folder));
  }
  if (!same || !same_files) {
    RETURN_IF_ERROR(lab.journal.add_conflict(state.step->name, state.fingerprint,
                                             same ? state.manifest : state.content,
                                             same ? manifest : content));
    return corrupt(fmt::format(
        "fingerprint {} has the {} {} in the journal and {} when it is done again. The same recipe must give "
        "the same bits: this machine or this program computes wrongly, or did so before. {} and {} have both "
        "outputs",
        short_hash(state.fingerprint), same ? "list of files" : "content",
        short_hash(same ? state.manifest : state.content), short_hash(same ? manifest : content),
        output_folder(lab.directory, state.fingerprint), folder));
  }
  RETURN_IF_ERROR(lab.journal.add_audit(state.step->name, state.fingerprint, by));
  RETURN_IF_ERROR(fs.remove_all(folder));
  RETURN_IF_ERROR(fs.remove_all(manifest_path(audit_directory(lab), state.fingerprint)));
  state.action = Action::kSkip;
  state.reason = fmt::format("was done again, and has the content {} as before", short_hash(state.content));
  return {};
}

}  // namespace ostro::lab
