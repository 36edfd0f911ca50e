#include "ostro/dist/loop_collectives.h"

#include <doctest/doctest.h>

#include "ostro/dist/group_cases_for_test.h"

namespace ostro::dist {
namespace {

TEST_CASE("peers differ in one coordinate, in its order") {
  LoopGroup group(kGrid);
  CHECK(group.worker(4).peers("model") == std::vector<int64_t>{3, 4, 5});
  CHECK(group.worker(4).peers("data") == std::vector<int64_t>{1, 4});
  CHECK(group.worker(4).peers("expert") == std::vector<int64_t>{4});
  CHECK(group.worker(4).peers("data*model") == std::vector<int64_t>{0, 1, 2, 3, 4, 5});
  CHECK(group.worker(4).peers("data*expert") == std::vector<int64_t>{1, 4});
}

TEST_CASE("threads of one process as a group") {
  for (const GroupCase& c : kGroupCases) SUBCASE(c.name) {
      c.check(run_workers);
    }
}

}  // namespace
}  // namespace ostro::dist
