// address_towards, address_of_this_machine: addresses of this machine that other machines can use, in
// numbers.
#pragma once

#include <string>

#include "ostro/base/error.h"

namespace ostro::cluster {

// The address from which this machine reaches `host`, by its routes; nothing is sent. Errors:
// kInvalidArgument for an unknown host, kIo without a route.
Result<std::string> address_towards(const std::string& host);

// The address of this machine's name; where that is one of loopback or unknown, the first one of an interface
// that is up. Error: kNotFound when there is none but loopback.
Result<std::string> address_of_this_machine();

}  // namespace ostro::cluster
