// A directory that a command makes: there whole, or not at all.
#pragma once

#include <functional>
#include <string>

#include "ostro/base/error.h"
#include "ostro/io/files/file_system.h"

namespace ostro::convert {

// An error when the directory of --out is there already.
Status check_is_new(io::FileSystem& fs, const std::string& out);

// Lets `write` fill a directory `place`, which then gets the name `out`. It lies in a folder beside `out`,
// named OUT and `suffix`, with a file ostro.lock. A program that works there holds this lock, and what a
// killed one left is known by the file and removed. If anything fails, nothing is left.
// Errors: those of `write`; kInvalidArgument when that folder is there and is not such a one, or a link: it
// is left as it is; kBusy when another program works in it.
Status make_whole(io::FileSystem& fs, const std::string& out,
                  const std::function<Status(const std::string& place)>& write,
                  const char* suffix = ".importing");

}  // namespace ostro::convert
