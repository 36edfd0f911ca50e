// check_source: whether a model of a bundle may be the beginning of something new.
#pragma once

#include <string>

#include "ostro/context/context.h"

namespace ostro::bundle {

// Checks the whole bundle that `from` means (a model directory, a checkpoint or a run; audit::bundle_of),
// before what is made of it names the run that made it. Where `from` lies in no bundle nothing is checked.
// What is missing in the bundle, or cannot be checked, is a warning. Error kCorrupt: the bundle differs.
Status check_source(const Context& context, const std::string& from);

}  // namespace ostro::bundle
