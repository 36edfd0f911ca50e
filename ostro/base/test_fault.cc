#include "ostro/base/test_fault.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "ostro/base/check.h"
#include "ostro/base/log.h"

namespace ostro {
namespace {

constexpr std::string_view kFaults[] = {"leaf_order",  "mean_of_means", "gradient_bit",  "ring_order",
                                        "round_order", "wrong_experts", "stale_replica", "denormals",
                                        "contraction", "group_of_16",   "libm_exp"};

// Empty: none.
std::string_view armed_fault() {
  const char* text = std::getenv("OSTRO_TEST_FAULT");
  const std::string_view name = text == nullptr ? "" : text;
  if (name.empty()) return name;
  const bool known = std::find(std::begin(kFaults), std::end(kFaults), name) != std::end(kFaults);
  OSTRO_CHECK(known, "OSTRO_TEST_FAULT=\"{}\" is none of the faults of base/test_fault.h", name);
  log_warning(fmt::format("test fault {}: this process computes wrong on purpose", name));
  return name;
}

}  // namespace

bool test_fault(std::string_view name) {
  static const std::string_view armed = armed_fault();
  return !armed.empty() && armed == name;
}

}  // namespace ostro
