// cause_of: finds the likely cause of a difference between a record and its replay, in words for a person.
//
// It looks at which value of the step differs and at the batches of the steps near it. When only the update
// differs, it does the step again with the optimizer's arrays at zero, for which the steps from the
// checkpoint before it are replayed once more. A cause that it cannot find is left out; there are no errors.
#pragma once

#include <string>

#include "ostro/audit/verify.h"

namespace ostro::audit {

// `report` is what verify_run returned for these options; it must not be equal. Returns "" when nothing is
// known.
std::string cause_of(io::FileSystem& fs, runtime::Engine& engine, const std::string& run_directory,
                     const VerifyOptions& options, const VerifyReport& report,
                     const models::ModelChoices& models);

}  // namespace ostro::audit
