// devices_text, devices_json: what this machine has to train on, for a person and for a program. Pure
// functions.
#pragma once

#include <string>

#include "ostro/engines/devices.h"

namespace ostro::engines {

// Lines of text: processors, GPUs, driver, and what is missing.
std::string devices_text(const Devices& devices);
// The same as a JSON object; what is not known is null.
std::string devices_json(const Devices& devices);

}  // namespace ostro::engines
