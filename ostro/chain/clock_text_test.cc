#include "ostro/chain/clock_text.h"

#include <doctest/doctest.h>

#include <cmath>

namespace ostro::chain {
namespace {

TEST_CASE("times and durations") {
  CHECK(utc_text(0) == "1970-01-01T00:00:00Z");
  CHECK(utc_text(1709210096) == "2024-02-29T12:34:56Z");
  CHECK(utc_now().size() == 20);
  CHECK(duration_text(7.4) == "0:07");
  CHECK(duration_text(59.6) == "1:00");
  CHECK(duration_text(3723) == "1:02:03");
  CHECK(duration_text(3 * 86400 + 4 * 3600 + 5 * 60 + 6) == "3d 04:05:06");
  for (const double bad : {-1.0, 1e12, double{INFINITY}, double{NAN}}) CHECK(duration_text(bad) == "?");
}

}  // namespace
}  // namespace ostro::chain
