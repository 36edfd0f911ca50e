// bash_completion: writes the script that completes the words of a command line in bash.
#pragma once

#include <string>
#include <vector>

#include "ostro/cli/main/args.h"
#include "ostro/config/options.h"

namespace ostro::cli {

// For the program `program`, whose commands and configuration are these. It completes commands, verbs,
// options, keys of the configuration up to the next dot, values that are one of several words, and files; it
// asks nothing of the program, and needs bash alone.
std::string bash_completion(const std::string& program, const std::vector<CommandWords>& commands,
                            const std::vector<config::OptionInfo>& keys);

}  // namespace ostro::cli
