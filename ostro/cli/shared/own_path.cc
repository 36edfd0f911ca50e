#include "ostro/cli/shared/own_path.h"

#include <unistd.h>

#include <climits>

namespace ostro::cli {

Result<std::string> own_path() {
  char path[PATH_MAX] = "";
  if (::readlink("/proc/self/exe", path, sizeof path - 1) < 0)
    return io_error("cannot read /proc/self/exe, the program that the workers run");
  return std::string(path);
}

}  // namespace ostro::cli
