// no_run: the error of a command that needs a run directory and got something else.
//
// `path` is the directory as a person gave it, `error` the error that opening it gave. Returns `error`. When
// that is kNotFound and the directory holds a model (config.json), it returns another kNotFound, which says
// what can be done with a model that has no record. Any thread may call it.
#pragma once

#include <string>

#include "ostro/io/files/file_system.h"

namespace ostro::audit {

Error no_run(io::FileSystem& fs, const std::string& path, Error error);

}  // namespace ostro::audit
