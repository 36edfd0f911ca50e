#include "ostro/cluster/watch/host_name.h"

#include <unistd.h>

namespace ostro::cluster {

std::string host_name() {
  char name[256] = "";
  (void)::gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace ostro::cluster
