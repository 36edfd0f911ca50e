#include "ostro/run/job/machine_text.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <fstream>

#include "ostro/base/host_name.h"

namespace ostro::run {

std::string machine_text() {
  std::array<char, 256> network{};
  (void)::readlink("/proc/self/ns/net", network.data(), network.size() - 1);
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return fmt::format("{} {} {}", host_name(), boot, network.data());
}

}  // namespace ostro::run
