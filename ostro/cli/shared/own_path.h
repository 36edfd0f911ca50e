// Where this program is.
#pragma once

#include <string>

#include "ostro/base/error.h"

namespace ostro::cli {

// The path of the program that this process runs, for those that it starts. Errors: kIo without /proc.
Result<std::string> own_path();

}  // namespace ostro::cli
