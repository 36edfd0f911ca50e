// host_name, boot_id, own_namespace: what names this machine and its present start. Any thread may call.
#pragma once

#include <string>

namespace ostro {

// Returns "" if the system gives no name.
std::string host_name();

// What Linux calls the machine's present start; "" where it is not told.
std::string boot_id();

// Linux's name of a namespace that this process is in: of `kind` "pid", "net" or others; "" where it is not
// told.
std::string own_namespace(const std::string& kind);

}  // namespace ostro
