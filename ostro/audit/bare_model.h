// no_run: the error for a directory that is no run, of a command that wants one.
//
// Takes the directory's path, as a person gave it, and the error that the command has. Gives this error, but
// when it is kNotFound and the directory holds a model (config.json), another kNotFound that says what can be
// done with a model without a record. Any thread may ask.
#pragma once

#include <string>

#include "ostro/io/files/file_system.h"

namespace ostro::audit {

Error no_run(io::FileSystem& fs, const std::string& path, Error error);

}  // namespace ostro::audit
