#include "ostro/base/user_cache.h"

#include <cstdlib>

namespace ostro {

std::filesystem::path user_cache_folder() {
  if (const char* caches = std::getenv("XDG_CACHE_HOME"); caches != nullptr && *caches != '\0') return caches;
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
    return std::filesystem::path(home) / ".cache";
  return {};
}

}  // namespace ostro
