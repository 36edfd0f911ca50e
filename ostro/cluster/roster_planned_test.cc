// The coordinator's decisions about an epoch that is planned while another goes on, and about who leaves.
#include "ostro/cluster/roster.h"

#include <doctest/doctest.h>

#include <string>

#include "ostro/cluster/sent_for_test.h"

namespace ostro::cluster {
namespace {

TEST_CASE("survivors go on at once without those who are lost, and take in who comes and is ready") {
  Sent sent(Sizes{1, 3, 1});
  for (int i = 0; i < 3; ++i) sent.add_ready();
  sent.begin();
  sent.roster.remove(2, "gone");
  sent.roster.end_seen(1, 1);
  sent.roster.end_seen(3, 1);
  REQUIRE(sent.can_begin());
  sent.take();
  sent.begin();
  CHECK(sent.take() == Lines{"1: epoch 2 0 2", "3: epoch 2 1 2"});
  const int64_t late = sent.add();
  sent.all_work();
  sent.pass(10'000);
  CHECK(!sent.can_begin());  // it does not know what is trained
  sent.roster.ready(late, sent.now);
  CHECK(!sent.can_begin());  // others may come with it
  sent.pass(1'000);
  REQUIRE(sent.can_begin());
  sent.begin();
  CHECK(sent.take() == Lines{"1: planned 3 0 3", "3: planned 3 1 3", "4: planned 3 2 3"});
  CHECK(!sent.can_begin());
  // Both have a store until the planned one takes over.
  sent.roster.set(3, 1, 2, "key", "value");
  sent.roster.set(4, 2, 3, "key", "value");
  sent.roster.set(4, 3, 2, "key", "value");
  CHECK(sent.take() ==
        Lines{"3: reply 1 ok ", "4: reply 2 ok ", "4: reply 3 error this worker is not in epoch 2"});
  sent.roster.began(1, 3);
  sent.roster.set(3, 4, 2, "key", "value");
  CHECK(sent.take() == Lines{"3: reply 4 error epoch 2 does not go on; the last is 3"});
  CHECK(sent.roster.current() == 3);
  CHECK(sent.roster.rank(4) == 2);
}

TEST_CASE("a planned epoch is given up when only a newcomer is lost; both end when one of both is") {
  Sent sent(Sizes{1, 3, 1});
  sent.add_ready(), sent.add_ready();
  sent.begin_and_grow();
  sent.begin();
  sent.take();
  sent.roster.remove(3, "gone");
  CHECK(sent.take() == Lines{"1: dropped 2", "2: dropped 2"});
  CHECK(sent.roster.current() == 1);
  sent.add_ready();
  sent.pass(1'000);
  sent.begin();
  sent.take();
  sent.roster.remove(2, "gone");
  const std::string reason = "worker 1 on host (pid 7) is lost: gone";
  CHECK(sent.take() == Lines{"1: end 3 " + reason, "4: end 3 " + reason});
}

TEST_CASE("members that leave one epoch for the planned one end neither") {
  Sent sent(Sizes{1, 2, 1});
  sent.add_ready();
  sent.begin_and_grow();
  sent.begin();
  sent.roster.set(1, 1, 2, "go", "");
  sent.take();
  sent.roster.fault(1, 1, "another epoch goes on");
  CHECK(sent.take().empty());
  CHECK(sent.roster.current() == 2);
  CHECK(sent.roster.rank(2) == 1);
}

TEST_CASE("one that wants to leave is left out, and its going is no loss; where too few stay, all stop") {
  Sent sent(Sizes{2, 3, 1});
  for (int i = 0; i < 3; ++i) sent.add_ready();
  sent.begin();
  sent.all_work();
  sent.take();
  sent.roster.leaves(1);
  REQUIRE(sent.can_begin());
  sent.begin();
  CHECK(sent.take() == Lines{"2: planned 2 0 2", "3: planned 2 1 2", "1: planned 2 -1 2"});
  sent.roster.began(2, 2);
  CHECK(sent.roster.may_go(1));
  sent.roster.remove(1, "closed");
  CHECK(sent.take().empty());
  sent.roster.leaves(2);
  CHECK(sent.take() == Lines{"2: stop", "3: stop"});
  sent.roster.done(75);
  CHECK(sent.take() == Lines{"2: over 75", "3: over 75"});
  sent.roster.remove(2, "closed");
  CHECK(sent.take().empty());
}

}  // namespace
}  // namespace ostro::cluster
