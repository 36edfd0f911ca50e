// Nodes on which jobs fail in a row: when the next jobs leave them out, and when they are tried again.
#include "ostro/cluster/slurm/left_out_nodes.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "ostro/cluster/slurm/places.h"
#include "ostro/cluster/slurm/queue_of_places_for_test.h"

namespace ostro::cluster {
namespace {

using std::chrono::seconds;

TEST_CASE("a node on which jobs fail in a row is left out by the next ones, and tried again later") {
  QueueOfPlaces q(
      {.least = 1, .count = 2, .rest = seconds(5), .left_out_after = 2, .left_out_for = seconds(90)});
  q.submit();
  q.set(1, "RUNNING", "n1");
  for (int i = 0; i < 2; ++i) {
    CHECK(q.places.left_out(q.now).empty());
    q.set(static_cast<size_t>(q.last), "RUNNING", "n2");
    const auto lines = q.set(static_cast<size_t>(q.last), "FAILED");
    CHECK((lines.back() == "the next jobs leave out n2, where 2 in a row have failed, for 90 s") == (i == 1));
    q.now += seconds(15);
    if (i == 0) CHECK(q.submit() == 1);
  }
  CHECK(q.places.left_out(q.now) == SlurmLines{"n2"});
  CHECK(!q.places.hopeless());
  // The next job waits without n2, until its time is over.
  const size_t place = q.places.due(q.now).at(0);
  q.places.submitted(place, "4", q.places.left_out(q.now));
  q.jobs.push_back({"4", "PENDING", "Resources", ""});
  ++q.last;
  CHECK(q.set(4, "PENDING") == SlurmLines{"job 4 waits (Resources)"});
  q.now += seconds(74);
  CHECK(q.set(4, "PENDING").empty());
  q.now += seconds(1);
  CHECK(q.set(4, "PENDING") ==
        SlurmLines{"job 4 waits without n2, which is tried again: another takes its place"});
  CHECK(q.places.take_given_up() == SlurmLines{"4"});
  CHECK(q.places.left_out(q.now).empty());
  q.jobs[3].state = "CANCELLED";
  CHECK(q.submit() == 1);
  // One more failure is enough; but a job that ends well is forgiven all before it.
  q.set(5, "RUNNING", "n2");
  q.set(5, "FAILED");
  CHECK(q.places.left_out(q.now) == SlurmLines{"n2"});
  q.now += seconds(90);
  CHECK(q.submit() == 1);
  q.set(6, "RUNNING", "n2");
  q.set(6, "COMPLETED");
  CHECK(q.submit() == 1);
  q.set(7, "RUNNING", "n2");
  q.set(7, "FAILED");
  CHECK(q.places.left_out(q.now).empty());
  // Another job takes no harm from what failed elsewhere, and 0 leaves nothing out.
  LeftOutNodes none(0, seconds(9));
  for (int i = 0; i < 9; ++i) CHECK(!none.failed("n", q.now));
  CHECK(excluded_by("--mem=1G -x a,b --time 1") == "a,b");
  CHECK(excluded_by("--exclude=n[1-3] -N 1") == "n[1-3]");
  CHECK(excluded_by("--exclude c") == "c");
  CHECK(excluded_by("--exclusive --mem=2G").empty());
  for (const char* good :
       {"--mem=1G -x a,b --time 1", "--exclude=n[1-3]", "--exclude c", "--exclusive --export-file=a/b"})
    CHECK(check_excluded(good).ok());
  for (const auto& [options, says] : {std::pair("--mem=1G --exclud n1", "--exclud may stand for --exclude"),
                                      {"--exclude=\"n1,n2\"", "--exclude=\"n1,n2\" has quotes"},
                                      {"'-x' n1", "'-x' n1 has quotes"},
                                      {"-x './bad nodes'", "-x './bad has quotes"},
                                      {"-x ./bad", "-x ./bad is the path of a file"},
                                      {"--exclude=/etc/bad", "--exclude=/etc/bad is the path of a file"}}) {
    const Status status = check_excluded(options);
    REQUIRE(!status.ok());
    CHECK_MESSAGE(status.error().message().find(says) != std::string::npos, status.error().message());
  }
}

TEST_CASE(
    "a node is left out also when no look at the queue has seen its jobs run; a requeued job has none") {
  QueueOfPlaces q(
      {.least = 1, .count = 2, .rest = seconds(5), .left_out_after = 2, .left_out_for = seconds(90)});
  q.submit();
  q.set(1, "RUNNING", "n1");
  CHECK(q.set(2, "FAILED", "n2").back().find("job 2 on n2 ended with an error") == 0);
  q.now += seconds(15);
  CHECK(q.submit() == 1);
  CHECK(q.set(3, "FAILED", "n2").back() ==
        "the next jobs leave out n2, where 2 in a row have failed, for 90 s");
  CHECK(q.places.left_out(q.now) == SlurmLines{"n2"});
  // Job 1 is requeued, and fails elsewhere soon after, though it lived long before: its first node is not
  // blamed.
  q.now += seconds(61);
  q.set(1, "PENDING");
  q.jobs[0].nodes.clear();
  CHECK(q.set(1, "FAILED").back().find("job 1 ended with an error") == 0);
  for (const char* node : {"n3", "n1"}) {
    q.now += seconds(30);
    q.submit();
    q.set(static_cast<size_t>(q.last), "FAILED", node);
  }
  CHECK(std::ranges::count(q.places.left_out(q.now), "n1") == 0);
  // A job that was taken over has run for a while, too.
  for (const int lived : {61, 59}) {
    SlurmPlaces places({.least = 1, .count = 1, .left_out_after = 2});
    places.adopt({{"1", "RUNNING", "", "n1"}}, q.now);
    places.look({{"1", "FAILED", "", "n1"}}, 1, q.now + seconds(9));
    places.look({{"2", "RUNNING", "", "n1"}}, 1, q.now + seconds(9));
    places.look({{"2", "FAILED", "", "n1"}}, 1, q.now + seconds(9 + lived));
    CHECK(places.left_out(q.now + seconds(9 + lived)).size() == (lived < 60 ? 1 : 0));
  }
}

}  // namespace
}  // namespace ostro::cluster
