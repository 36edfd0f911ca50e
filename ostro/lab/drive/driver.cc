#include "ostro/lab/drive/driver.h"

#include <fmt/format.h>

#include "ostro/config/options.h"
#include "ostro/lab/drive/drive.h"
#include "ostro/lab/drive/lab_lock.h"

namespace ostro::lab {
namespace {

Result<LabState> open_and_drive(const Context& context, const Services& services, const Plan& plan,
                                const RunRequest& request, bool works) {
  ASSIGN_OR_RETURN(OpenLab lab, open_lab(context, services, plan, works, request.every_byte));
  if (works && !plan.sanity) {
    ASSIGN_OR_RETURN(const Registry registry, Registry::open(context.fs, lab.directory));
    RETURN_IF_ERROR(registry.complete(lab.journal));
  }
  return drive(std::move(lab), request);
}

}  // namespace

Result<LabState> run_plan(const Context& context, const Services& services, const Plan& plan,
                          const RunRequest& request) {
  for (const std::string& source : request.pin) {
    const Step* step = plan.find(source);
    if (step != nullptr && step->kind->name == "source") continue;
    std::vector<std::string> sources;
    for (const Step& s : plan.steps)
      if (s.kind->name == "source") sources.push_back(s.name);
    return invalid_argument(fmt::format("--pin {}: is no source of the plan; the nearest is \"{}\"", source,
                                        config::nearest_name(source, sources)));
  }
  ASSIGN_OR_RETURN(const auto lock, lock_lab(context.fs, plan));
  return open_and_drive(context, services, plan, request, true);
}

Result<LabState> look_at(const Context& context, const Plan& plan, bool every_byte,
                         const Services& services) {
  RunRequest request;
  request.every_byte = every_byte;
  return open_and_drive(context, services, plan, request, false);
}

}  // namespace ostro::lab
