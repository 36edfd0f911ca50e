// make_whole: makes a directory that is there whole or not at all.
#pragma once

#include <functional>
#include <string>

#include "ostro/base/error.h"
#include "ostro/io/files/file_system.h"

namespace ostro::convert {

// Error: kInvalidArgument when the directory of --out exists already.
Status check_is_new(io::FileSystem& fs, const std::string& out);

// Calls `write` to fill a directory `place`, which then gets the name `out`. `place` lies in a folder beside
// `out`, whose name is that of `out` and `suffix`. The folder has a file ostro.lock, whose lock a program
// that works there holds; by this file, the folder of a killed program is recognised and removed. If anything
// fails, nothing is left. Errors: those of `write`; kInvalidArgument when there is something else of the
// folder's name, or a link, which is left as it is; kBusy when another program works in the folder.
Status make_whole(io::FileSystem& fs, const std::string& out,
                  const std::function<Status(const std::string& place)>& write,
                  const char* suffix = ".importing");

}  // namespace ostro::convert
