#include "ostro/bundle/check/check_source.h"

#include <fmt/format.h>

#include "ostro/audit/record/maker.h"
#include "ostro/base/log.h"
#include "ostro/bundle/check/check_bundle.h"

namespace ostro::bundle {

Status check_source(const Context& context, const std::string& from) {
  ASSIGN_OR_RETURN(const auto bundle, audit::bundle_of(context.fs, from));
  if (!bundle) return {};
  ASSIGN_OR_RETURN(const BundleAudit audit, check_bundle(context, *bundle, {}));
  const audit::Verdict verdict = audit.verdict();
  if (verdict == audit::Verdict::kEqual) return {};
  const std::string found = audit::finding_text(audit.findings.front());
  if (verdict == audit::Verdict::kDiffers)
    return corrupt(fmt::format(
        "{} is of the bundle {}, which is not what it says: {}; ostro verify {} shows all of it. Get "
        "the bundle again",
        from, *bundle, found, *bundle));
  log_warning(fmt::format("{} is of the bundle {}, which is not whole: {}", from, *bundle, found));
  return {};
}

}  // namespace ostro::bundle
