#include "ostro/run/job/machine_text.h"

#include <fmt/format.h>

#include "ostro/base/host_name.h"

namespace ostro::run {

std::string machine_text() { return fmt::format("{} {} {}", host_name(), boot_id(), own_namespace("net")); }

}  // namespace ostro::run
