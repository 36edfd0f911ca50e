// Bare models: what to say of a directory that holds a model and no record of a run.
//
// Takes the directory's path, as a person gave it to a command that wants a run. Gives a sentence with what
// can be done, without full stop; empty when the directory has no config.json. Any thread may ask.
#pragma once

#include <string>

#include "ostro/io/files/file_system.h"

namespace ostro::audit {

std::string about_bare_model(io::FileSystem& fs, const std::string& path);

}  // namespace ostro::audit
