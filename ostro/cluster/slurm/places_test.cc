// Which jobs a run should have: what is submitted, replaced, rested, taken over and given up.
#include "ostro/cluster/slurm/places.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <string>
#include <vector>

#include "ostro/cluster/slurm/queue_of_places_for_test.h"

namespace ostro::cluster {
namespace {

using std::chrono::seconds;

TEST_CASE("a job that was taken away or left is replaced at once, a requeued one keeps its place") {
  QueueOfPlaces q({.least = 1, .count = 2});
  CHECK(q.submit() == 2);
  CHECK(q.places.waiting() == SlurmLines{"1", "2"});
  CHECK(q.set(1, "RUNNING", "n1") == SlurmLines{"job 1 runs on n1"});
  CHECK(q.set(2, "RUNNING", "n2") == SlurmLines{"job 2 runs on n2"});
  CHECK(q.set(1, "RUNNING").empty());
  CHECK(q.submit() == 0);
  CHECK(q.set(1, "PREEMPTED") == SlurmLines{"job 1 on n1 ended (PREEMPTED); another takes its place"});
  CHECK(q.submit() == 1);
  CHECK(q.set(2, "COMPLETED") == SlurmLines{"job 2 on n2: its workers have left; another takes its place"});
  CHECK(q.submit() == 1);
  CHECK(q.set(3, "RUNNING", "n3").size() == 1);
  q.jobs[2].reason = "BeginTime";
  CHECK(q.set(3, "PENDING") == SlurmLines{"job 3 was taken from n3 and waits for another start (BeginTime)"});
  CHECK(q.submit() == 0);
  CHECK(q.set(3, "RUNNING", "n1") == SlurmLines{"job 3 runs on n1"});
  q.jobs.pop_back();  // Slurm has forgotten job 4
  CHECK(q.places.look(q.jobs, 1, q.now) ==
        SlurmLines{"job 4 ended (forgotten by Slurm); another takes its place"});
  CHECK(!q.places.hopeless());
}

TEST_CASE("a job that fails is replaced after a rest, which doubles; one that a person cancelled is not") {
  QueueOfPlaces q({.least = 1, .count = 2, .rest = seconds(5), .most_rest = seconds(60)});
  q.submit();
  q.set(1, "RUNNING", "n1");
  for (const int rest : {5, 10, 20, 40, 60, 60}) {
    const auto lines = q.set(static_cast<size_t>(q.last), "FAILED", "n2");
    REQUIRE(lines.size() == 1);
    CHECK(lines[0].find(fmt::format("another is tried in {} s", rest)) != std::string::npos);
    q.now += seconds(rest - 1);
    CHECK(q.submit() == 0);
    q.now += seconds(1);
    CHECK(q.submit() == 1);
    CHECK(!q.places.hopeless());
  }
  CHECK(q.places.failed_job() == std::to_string(q.last - 1));
  CHECK(q.set(static_cast<size_t>(q.last), "CANCELLED").back().find("none takes its place") !=
        std::string::npos);
  CHECK(q.submit() == 0);
  CHECK(!q.places.too_few());
  q.set(1, "CANCELLED");
  CHECK(q.places.too_few());
}

TEST_CASE(
    "a run whose jobs fail before a step is given up when too few are left; later after three in a row") {
  QueueOfPlaces first({.least = 2, .count = 2});
  first.submit();
  first.set(1, "FAILED", "n1", 0);
  CHECK(first.places.hopeless() == "1 jobs are left, and 2 are needed");
  QueueOfPlaces later({.least = 2, .count = 2});
  later.submit();
  for (int i = 1; i <= 3; ++i) {
    CHECK(!later.places.hopeless());
    later.set(static_cast<size_t>(i == 1 ? 2 : later.last), "FAILED", "n2", 9);
    later.now += seconds(60);
    later.submit();
  }
  CHECK(later.places.hopeless() == "1 jobs are left, and 2 are needed");
  QueueOfPlaces fruitless({.least = 1, .count = 1, .replacements_without_progress = 3});
  for (int i = 1; i <= 4; ++i) {
    CHECK(!fruitless.places.hopeless());
    fruitless.submit();
    fruitless.set(static_cast<size_t>(i), "NODE_FAIL", "", 7);
  }
  CHECK(fruitless.places.hopeless() == "3 jobs were replaced already while no step was done");
}

TEST_CASE("a job that the queue never lists is no job that was taken away") {
  QueueOfPlaces hidden({.least = 1, .count = 1});
  hidden.submit();
  CHECK(hidden.places.look({}, 0, hidden.now).empty());
  CHECK(hidden.submit() == 0);
  CHECK(!hidden.places.hopeless());
  hidden.now += seconds(30);
  hidden.places.look({}, 0, hidden.now);
  CHECK(hidden.submit() == 0);
  REQUIRE(hidden.places.hopeless());
  CHECK(hidden.places.hopeless()->find("Slurm does not list job 1") == 0);
  CHECK(hidden.places.alive() == SlurmLines{"1"});  // so that it is cancelled

  QueueOfPlaces other({.least = 1, .count = 2});  // where another job is listed it counts as failed
  other.submit();
  other.jobs.pop_back();
  other.set(1, "RUNNING", "n1");
  other.now += seconds(30);
  CHECK(other.places.look(other.jobs, 1, other.now).at(0).find("job 2 ended with an error (not listed") == 0);
  CHECK(other.places.take_given_up() == SlurmLines{"2"});
  CHECK(other.places.take_given_up().empty());
  CHECK(other.submit() == 0);
  CHECK(!other.places.hopeless());
}

TEST_CASE("a job of which sbatch told nothing takes a free place, once") {
  SlurmPlaces places({.least = 1, .count = 2});
  const auto now = SlurmPlaces::Clock::now();
  places.submitted(0, "1");
  places.refused(1, now);
  const std::vector<SlurmJob> queue = {{"1", "RUNNING", "", "n1"},
                                       {"7", "COMPLETING", "", ""},
                                       {"8", "PENDING", "", ""},
                                       {"9", "PENDING", "", ""}};
  CHECK(places.look(queue, 1, now).back() ==
        "job 8 of this run, of which sbatch told nothing, takes a place");
  CHECK(places.alive() == SlurmLines{"1", "8"});
  CHECK(places.look(queue, 1, now).empty());
  CHECK(places.any_runs());
}

TEST_CASE("jobs of an earlier launcher take places, those that run first") {
  SlurmPlaces places({.least = 1, .count = 2});
  CHECK(places.adopt({{"3", "PENDING", "", ""},
                      {"4", "FAILED", "", "n1"},
                      {"5", "RUNNING", "", "n2"},
                      {"7", "COMPLETING", "", "n3"},
                      {"6", "PENDING", "", ""}},
                     SlurmPlaces::Clock::now()) == SlurmLines{"6"});
  CHECK(places.alive() == SlurmLines{"5", "3"});
  CHECK(places.waiting() == SlurmLines{"3"});
  CHECK(places.due(SlurmPlaces::Clock::now()).empty());
}

}  // namespace
}  // namespace ostro::cluster
