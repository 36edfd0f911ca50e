#include "ostro/base/host_name.h"

#include <unistd.h>

#include <fstream>

namespace ostro {

std::string host_name() {
  char name[256] = "";
  (void)::gethostname(name, sizeof name - 1);
  return name;
}

std::string boot_id() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

std::string own_namespace(const std::string& kind) {
  char name[64] = "";
  const ssize_t size = ::readlink(("/proc/self/ns/" + kind).c_str(), name, sizeof name - 1);
  return size > 0 ? std::string(name, static_cast<size_t>(size)) : std::string();
}

}  // namespace ostro
