#include "ostro/audit/sample/cost.h"

#include <ctime>

namespace ostro::audit {

double CostMeter::cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace ostro::audit
