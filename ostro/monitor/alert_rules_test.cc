// When there is an alert, when there is none, and when it is over.
#include "ostro/monitor/alert_rules.h"

#include <doctest/doctest.h>

namespace ostro::monitor {
namespace {

std::string names(const std::vector<Alert>& alerts) {
  std::string out;
  for (const Alert& alert : alerts) out += (out.empty() ? "" : " ") + alert.name;
  return out;
}

// A run whose steps take 10 s, the newest of which ended 5 s ago.
Sight running() {
  Sight sight;
  sight.still = 5;
  sight.meters.emplace();
  sight.meters->step = 7;
  sight.meters->median_seconds = 10;
  sight.trains = true;
  sight.disk_free = 5e9;
  return sight;
}

TEST_CASE("a run that does well gives none") {
  AlertRules rules{{}};
  CHECK(rules.look(running()).empty());
  CHECK(rules.look({}).empty());  // nothing is known yet
}

TEST_CASE("no step for so many times the median is one alert, until a step has ended") {
  AlertRules rules{{.stall_factor = 20}};
  Sight sight = running();
  sight.still = 200;  // 20 times the median, and no more
  CHECK(rules.look(sight).empty());
  sight.still = 201;
  const auto alerts = rules.look(sight);
  CHECK(names(alerts) == "stalled");
  CHECK(alerts[0].text == "no step has ended for 201 s after step 7; the median of steps is 10.00 s");
  CHECK(rules.is_active("stalled") == true);
  CHECK(rules.look(sight).empty());
  sight.still = 1;
  CHECK(rules.look(sight).empty());
  CHECK(rules.is_active("stalled") == false);
  sight.still = 300;
  CHECK(names(rules.look(sight)) == "stalled");
}

TEST_CASE(
    "short steps, evaluations that took long before, runs that do not train and a factor of 0 are no stall") {
  Sight sight = running();
  sight.meters->median_seconds = 0.01;
  sight.still = 59;
  CHECK(AlertRules{{}}.look(sight).empty());  // less than a minute
  sight.still = 100;
  CHECK(names(AlertRules{{}}.look(sight)) == "stalled");
  sight.meters->longest_pause = 60;
  CHECK(AlertRules{{}}.look(sight).empty());
  sight.meters->longest_pause = 0;
  CHECK(AlertRules{{.stall_factor = 0}}.look(sight).empty());
  sight.trains = false;
  CHECK(AlertRules{{}}.look(sight).empty());
}

TEST_CASE("a session whose first step does not end is a stall after a quarter of an hour") {
  AlertRules rules{{}};
  Sight sight = running();
  sight.meters->median_seconds = 0;
  sight.still = 900;
  CHECK(rules.look(sight).empty());
  sight.still = 901;
  const auto alerts = rules.look(sight);
  CHECK(names(alerts) == "stalled");
  CHECK(alerts[0].text == "no step has ended for 901 s; the session began after step 7");
}

TEST_CASE("a disk with little room, or without room for two checkpoints") {
  AlertRules rules{{.disk_free = 1e9}};
  Sight sight = running();
  sight.meters->last_save_bytes = 3e9;
  CHECK(names(rules.look(sight)) == "disk_nearly_full");
  sight.disk_free = 7e9;
  CHECK(rules.look(sight).empty());
  sight.disk_free = 0.9e9;
  const auto alerts = rules.look(sight);
  CHECK(names(alerts) == "disk_nearly_full");
  CHECK(alerts[0].text.find("858.3 MiB are free") == 0);
  CHECK(AlertRules{{.disk_free = 0}}.look(sight).empty());
  sight.disk_free = -1;  // not known
  CHECK(AlertRules{{}}.look(sight).empty());
}

TEST_CASE("each loss of workers, and how a session ended") {
  AlertRules rules{{}};
  Sight sight = running();
  sight.lost_count = 2;
  sight.last_loss = "worker 3 on b";
  const auto alerts = rules.look(sight);
  CHECK(names(alerts) == "worker_lost");
  CHECK(alerts[0].text == "2 workers were lost; the last: worker 3 on b");
  CHECK(!rules.is_active("worker_lost"));  // a moment is over before anybody asks
  CHECK(rules.look(sight).empty());
  sight.outcome = "saved and stopped";
  CHECK(rules.look(sight).empty());
  sight.outcome = "failed: not finite";
  CHECK(names(rules.look(sight)) == "not_finite");
  Sight other = running();
  other.outcome = "failed: the disk is full";
  CHECK(names(AlertRules{{}}.look(other)) == "failed");
}

}  // namespace
}  // namespace ostro::monitor
