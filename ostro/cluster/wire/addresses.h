// address_towards, address_of_this_machine: addresses of this machine that other machines can use, in
// numbers.
#pragma once

#include <chrono>
#include <string>

#include "ostro/base/error.h"

namespace ostro::cluster {

// The address from which this machine reaches `host`, by its routes; nothing is sent. A name without an
// address is asked for again until `patience` is over (base/net/look_up.h). Errors: kInvalidArgument for a
// text that is no host, kIo without a route or an address.
Result<std::string> address_towards(const std::string& host, std::chrono::milliseconds patience);

// The address of this machine's name; where that is one of loopback or unknown, the first one of an interface
// that is up: of IPv4, or else of IPv6 and valid beyond its link. Error: kNotFound when there is none.
Result<std::string> address_of_this_machine();

}  // namespace ostro::cluster
