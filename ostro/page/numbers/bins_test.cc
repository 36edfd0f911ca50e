#include "ostro/page/numbers/bins.h"

#include <doctest/doctest.h>

#include <limits>

namespace ostro::page {
namespace {

TEST_CASE("few values have a bin each") {
  Bins bins(4);
  CHECK(bins.empty());
  for (const int64_t step : {1, 2, 5}) bins.add(step, 10.0 * static_cast<double>(step));
  REQUIRE(bins.all().size() == 3);
  CHECK(bins.width() == 1);
  CHECK(bins.all()[2].first == 5);
  CHECK(bins.all()[2].mean() == 50);
  CHECK(bins.first().value == 10);
  CHECK(bins.last().step == 5);
}

TEST_CASE("many values share bins: every step counts once, and the limit holds") {
  for (const int64_t steps : {9, 400, 401, 100'000}) {
    Bins bins(400);
    for (int64_t step = 1; step <= steps; ++step) bins.add(step, static_cast<double>(step));
    CHECK(bins.all().size() <= 400);
    CHECK((steps <= 400 || bins.all().size() >= 195));
    int64_t next = 1, count = 0;
    for (const Bin& bin : bins.all()) {
      CHECK(bin.first == next);
      CHECK(bin.count == bin.last - bin.first + 1);
      CHECK(bin.least == static_cast<double>(bin.first));
      CHECK(bin.most == static_cast<double>(bin.last));
      CHECK(bin.mean() == bin.middle());
      next = bin.last + 1;
      count += bin.count;
    }
    CHECK(count == steps);
    CHECK(bins.sum() == static_cast<double>(steps * (steps + 1) / 2));
    CHECK(bins.least().step == 1);
  }
}

TEST_CASE("bins do not depend on the order of values") {
  Bins up(8), down(8);
  for (int64_t step = 1; step <= 100; ++step) up.add(step, 1);
  for (int64_t step = 100; step >= 1; --step) down.add(step, 1);
  REQUIRE(up.all().size() == down.all().size());
  for (size_t i = 0; i < up.all().size(); ++i) {
    CHECK(up.all()[i].first == down.all()[i].first);
    CHECK(up.all()[i].count == down.all()[i].count);
  }
  CHECK(down.first().step == 1);
  CHECK(down.last().step == 100);
}

TEST_CASE("what is not finite is counted and left out; steps far from 1 take no room") {
  Bins bins(4);
  bins.add(1'000'000'007, std::numeric_limits<double>::quiet_NaN());
  CHECK(bins.empty());
  bins.add(1'000'000'008, std::numeric_limits<double>::infinity());
  bins.add(1'000'000'009, 2);
  CHECK(bins.not_finite() == 2);
  CHECK(bins.values() == 1);
  CHECK(bins.all().size() == 1);
  CHECK(bins.width() == 1);
}

}  // namespace
}  // namespace ostro::page
