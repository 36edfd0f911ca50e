#include "ostro/base/host_name.h"

#include <unistd.h>

namespace ostro {

std::string host_name() {
  char name[256] = "";
  (void)::gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace ostro
