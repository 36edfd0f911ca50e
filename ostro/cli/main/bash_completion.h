// bash_completion: writes the script that completes the words of a command line in bash.
#pragma once

#include <string>
#include <vector>

#include "ostro/cli/main/args.h"
#include "ostro/config/options.h"

namespace ostro::cli {

// Returns the script for the program `program` with these commands and keys of the configuration. It
// completes commands, verbs, options, keys up to the next dot, values that are one of several words, and
// files. It does not call the program, and needs bash alone. A pure function.
std::string bash_completion(const std::string& program, const std::vector<CommandWords>& commands,
                            const std::vector<config::OptionInfo>& keys);

}  // namespace ostro::cli
