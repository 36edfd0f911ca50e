// cause_of: what a replay that differs shows of how the record came to be, in words for a person.
//
// It follows from which value of the step differs, from the batches of the steps near it, and, where only the
// update differs, from doing the step again with the optimizer's arrays at zero. That costs the steps from
// the checkpoint before it once more. What cannot be found out is not said.
#pragma once

#include <string>

#include "ostro/audit/verify.h"

namespace ostro::audit {

// `report` is what verify_run gave for these options, and is not equal. Empty: nothing is known.
std::string cause_of(io::FileSystem& fs, runtime::Engine& engine, const std::string& run_directory,
                     const VerifyOptions& options, const VerifyReport& report,
                     const models::ModelChoices& models);

}  // namespace ostro::audit
