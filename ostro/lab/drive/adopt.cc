#include "ostro/lab/drive/adopt.h"

#include <fmt/format.h>

#include "ostro/bundle/parts/file_sums.h"
#include "ostro/experiment/journal/output.h"
#include "ostro/io/files/path.h"
#include "ostro/lab/drive/driver.h"
#include "ostro/lab/drive/lab_lock.h"
#include "ostro/lab/drive/make_step.h"
#include "ostro/lab/places/elsewhere.h"

namespace ostro::lab {
namespace {

Status copy_folder(io::FileSystem& fs, const std::string& from, const std::string& to) {
  RETURN_IF_ERROR(fs.make_dirs(to));
  ASSIGN_OR_RETURN(const std::vector<std::string> files, bundle::files_below(fs, from));
  for (const std::string& file : files) {
    const std::string copy = io::join_path(to, file);
    RETURN_IF_ERROR(fs.make_dirs(io::parent_path(copy)));
    RETURN_IF_ERROR(bundle::copy_file(fs, io::join_path(from, file), copy, [](int64_t) {}));
  }
  return {};
}

}  // namespace

Result<Adopted> adopt(const Context& context, const Services& services, const Plan& plan,
                      const AdoptRequest& request) {
  io::FileSystem& fs = context.fs;
  ASSIGN_OR_RETURN(const auto lock, lock_lab(fs, plan));
  ASSIGN_OR_RETURN(const LabState looked, look_at(context, plan));
  const StepState* found = looked.find(request.step);
  if (found == nullptr) return not_found(fmt::format("the plan has no step \"{}\"", request.step));
  StepState state = *found;
  const std::string& kind = state.step->kind->name;
  const auto refused = [&](const std::string& why) {
    return invalid_argument(fmt::format("step {}: {}", request.step, why));
  };
  if (kind != "train" && kind != "tokens")
    return refused(fmt::format("is of kind {}; runs (train) and token stores (tokens) can be adopted", kind));
  if (state.action != Action::kRun)
    return refused(
        fmt::format("{}: {}; a step can be adopted that was not done or begun, and whose inputs are there",
                    action_name(state.action), state.reason));
  ASSIGN_OR_RETURN(OpenLab lab, open_lab(context, services, plan, /*works=*/true, /*every_byte=*/false));
  if (!lab.gate.registered_by(request.step).empty())
    return refused("a hypothesis uses its result, which may not be known before the step is done here");
  const Work work = lab.work(*state.step, looked.made);
  RETURN_IF_ERROR(check_foreign(work, state.recipe, request.folder));
  const std::string folder = output_folder(lab.directory, state.fingerprint);
  RETURN_IF_ERROR(
      left_elsewhere(fs, TaskFiles(lab.directory, folder), {}));  // no attempt elsewhere is at work
  RETURN_IF_ERROR(begin_step(lab, state));
  const auto take = [&]() -> Result<Adopted> {
    RETURN_IF_ERROR(copy_folder(fs, request.folder, folder));
    RETURN_IF_ERROR(place_foreign(work, folder));
    const Performed performed = perform(work, folder);  // finds all done, or says what is another one
    if (!performed.ok()) return performed.error();
    if (!*performed) return refused("was stopped");
    ASSIGN_OR_RETURN(std::string verified, verify_foreign(work, folder, lab.journal.head(), request.count));
    RETURN_IF_ERROR(lab.journal.add_adopted(request.step, state.fingerprint, verified));
    RETURN_IF_ERROR(end_step(lab, looked.made, state, performed, Status()));
    return Adopted{**performed, std::move(verified)};
  };
  Result<Adopted> out = take();
  if (out.ok()) {
    RETURN_IF_ERROR(lab.hashes.save());
  } else {
    RETURN_IF_ERROR(fs.remove_all(folder));
  }
  return out;
}

}  // namespace ostro::lab
