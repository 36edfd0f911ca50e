// take_profile, profile_range: the option --profile of the commands that train (train/step/step_profile.h).
#pragma once

#include <optional>
#include <string>

#include "ostro/shell/words/args.h"
#include "ostro/train/step/step_profile.h"

namespace ostro::cli {

// Declares --profile. `text` gets what was typed; `more` is said of the file besides, or "".
void take_profile(Args& args, std::string* text, const std::string& more = "");

// The steps to profile, of a run of so many steps if that is known; nothing for "". Errors:
// kInvalidArgument, with what is wrong.
Result<std::optional<train::StepRange>> profile_range(const std::string& text,
                                                      std::optional<int64_t> steps = {});

}  // namespace ostro::cli
