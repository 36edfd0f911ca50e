#include "ostro/run/job/time_limits.h"

#include <doctest/doctest.h>

namespace ostro::run {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

TEST_CASE("limits follow the slowest step, and before the first one nothing is known") {
  train::TrainerOptions options;
  CHECK(hang_limit(options, {}) == hours(1));
  CHECK(hang_limit(options, 0.01) == minutes(2));
  CHECK(hang_limit(options, 12.0) == minutes(2));
  CHECK(hang_limit(options, 90.0) == minutes(15));
  CHECK(hang_limit(options, 1e300) > hours(1000));  // a number that milliseconds cannot hold
  CHECK(!exchange_limit(options, {}));
  CHECK(exchange_limit(options, 0.01) == minutes(10));
  // Of two workers one may have all leaves of a step but one.
  CHECK(exchange_limit(options, 90.0) == minutes(30));
  CHECK(connect_limit(options, 2) == std::chrono::milliseconds(30'200));
  CHECK(connect_limit(options, 1000) == minutes(2) + seconds(10));
  CHECK(link_limit(options) == minutes(1));
  CHECK(stop_limit(options) == minutes(10));
}

TEST_CASE("a key of the trainer is the limit, whatever was measured") {
  train::TrainerOptions options;
  options.hang_timeout = config::Duration{4};
  options.exchange_timeout = config::Duration{5};
  options.connect_timeout = config::Duration{6};
  options.link_timeout = config::Duration{7};
  options.stop_timeout = config::Duration{8};
  for (const std::optional<double> slowest : {std::optional<double>(), std::optional(1e4)}) {
    CHECK(hang_limit(options, slowest) == seconds(4));
    CHECK(exchange_limit(options, slowest) == seconds(5));
  }
  CHECK(connect_limit(options, 1000) == seconds(6));
  CHECK(link_limit(options) == seconds(7));
  CHECK(stop_limit(options) == seconds(8));
}

}  // namespace
}  // namespace ostro::run
