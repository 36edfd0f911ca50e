// check_source: checks a bundle before a new run or model is made from the model in it.
#pragma once

#include <string>

#include "ostro/context/context.h"

namespace ostro::bundle {

// Checks the whole bundle to which `from` belongs (a model directory, a checkpoint or a run;
// audit::bundle_of), because the new run or model will name the run that made this one. Does nothing when
// `from` belongs to no bundle. A bundle of which a part is missing or cannot be checked gets a warning in the
// log. Error kCorrupt: the bundle differs.
Status check_source(const Context& context, const std::string& from);

}  // namespace ostro::bundle
