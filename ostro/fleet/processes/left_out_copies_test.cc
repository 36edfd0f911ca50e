#include <doctest/doctest.h>

#include "ostro/fleet/processes/recovery.h"

namespace ostro::fleet {
namespace {

TEST_CASE("a copy is left out if its owner is there, and used if it is not") {
  // Of three workers, each of which mirrors the next one, the last is lost; another one is new.
  std::vector<Brought> brought(3);
  for (size_t i = 0; i < 2; ++i) {
    brought[i].epoch = 4, brought[i].size = 3, brought[i].step = 7;
    brought[i].rank = static_cast<int64_t>(i), brought[i].mirror_of = static_cast<int64_t>(i + 1);
  }
  const Recovery recovery = plan_recovery(brought);
  CHECK(recovery.brings == std::vector<bool>{true, true, false});
  leave_out_copies(brought, recovery);
  CHECK(brought[0].mirror_of == -1);
  CHECK(brought[1].mirror_of == 2);
  // One that is of an earlier step is no owner.
  brought[0].mirror_of = 1, brought[1].step = 5;
  leave_out_copies(brought, plan_recovery(brought));
  CHECK(brought[0].mirror_of == 1);
}

}  // namespace
}  // namespace ostro::fleet
