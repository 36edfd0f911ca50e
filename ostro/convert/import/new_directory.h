// A directory that a command makes: there whole, or not at all.
#pragma once

#include <functional>
#include <string>

#include "ostro/base/error.h"
#include "ostro/io/files/file_system.h"

namespace ostro::convert {

// An error when the directory of --out is there already.
Status check_is_new(io::FileSystem& fs, const std::string& out);

// Lets `write` fill a directory of another name beside `out`, OUT and `suffix`, which then gets the name
// `out`. If anything fails, neither is left; what an attempt that was killed left is written over.
Status make_whole(io::FileSystem& fs, const std::string& out,
                  const std::function<Status(const std::string& place)>& write,
                  const char* suffix = ".importing");

}  // namespace ostro::convert
