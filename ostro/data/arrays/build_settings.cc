#include "ostro/data/arrays/build_settings.h"

#include <algorithm>
#include <thread>

namespace ostro::data {

int BuildSettings::threads_or_all() const {
  return threads > 0 ? threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace ostro::data
