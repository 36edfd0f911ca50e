// machine_text: what this process has in common with others that it reaches without leaving the machine.
#pragma once

#include <string>

namespace ostro::run {

// The name of the host, what Linux calls its present start (boot_id), and the network namespace of this
// process: two containers of a host have two texts, since their link may be limited. Any thread may call it.
std::string machine_text();

}  // namespace ostro::run
