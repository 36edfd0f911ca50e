// The name of this machine, for messages.
#pragma once

#include <string>

namespace ostro::cluster {

// "" if it has none that can be read.
std::string host_name();

}  // namespace ostro::cluster
