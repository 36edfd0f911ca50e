// host_name: the name of this machine, for messages. Any thread may call.
#pragma once

#include <string>

namespace ostro {

// Returns "" if the system gives no name.
std::string host_name();

}  // namespace ostro
