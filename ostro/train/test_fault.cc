#include "ostro/train/test_fault.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string>

namespace ostro::train {

Result<TestFault> test_fault() {
  const char* value = std::getenv("OSTRO_TEST_FAULT");
  const std::string name = value == nullptr ? "" : value;
  if (name.empty()) return TestFault::kNone;
  if (name == "leaf_order_swapped") return TestFault::kLeafOrderSwapped;
  if (name == "ring_order") return TestFault::kRingOrder;
  return invalid_argument(
      fmt::format("OSTRO_TEST_FAULT is \"{}\"; use leaf_order_swapped or ring_order", name));
}

}  // namespace ostro::train
