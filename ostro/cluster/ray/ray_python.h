// ray_python, check_ray_resources: the Python by which this program works with a Ray cluster, and what a
// process there is to have. Any thread may call.
#pragma once

#include <string>

#include "ostro/base/error.h"

namespace ostro::cluster {

// python3, or what OSTRO_PYTHON names. Errors: it does not start, or lacks the packages ray and ostro_ray;
// `what` is the command that needs them, for the message.
Result<std::string> ray_python(const std::string& what);

// Checks a text of an option: kInvalidArgument for one that is no JSON object of names and amounts from 0 on.
// `example` is one that is; the empty text is good.
Status check_ray_resources(const std::string& option, const std::string& text, const std::string& example);

}  // namespace ostro::cluster
