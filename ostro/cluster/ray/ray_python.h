// ray_python: the Python by which this program works with a Ray cluster. Any thread may call.
#pragma once

#include <string>

#include "ostro/base/error.h"

namespace ostro::cluster {

// python3, or what OSTRO_PYTHON names. Errors: it does not start, or lacks the packages ray and ostro_ray;
// `what` is the command that needs them, for the message.
Result<std::string> ray_python(const std::string& what);

}  // namespace ostro::cluster
