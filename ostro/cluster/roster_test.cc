// The coordinator's decisions, message by message: when an epoch begins and ends, and who is in it.
#include "ostro/cluster/roster.h"

#include <doctest/doctest.h>

#include <string>

#include "ostro/cluster/sent_for_test.h"

namespace ostro::cluster {
namespace {

TEST_CASE("the next epoch waits for all who were in the last to know of its end") {
  Sent sent(2, 8);
  for (int64_t member = 1; member <= 4; ++member) CHECK(sent.add() == member);
  sent.begin();
  CHECK(sent.take() == Lines{"1: epoch 9 0 2", "2: epoch 9 1 2"});
  CHECK(!sent.can_begin());
  sent.roster.remove(1, "gone");
  const std::string reason = "worker 0 on host (pid 7) is lost: gone";
  CHECK(sent.take() == Lines{"2: end 9 " + reason});
  // Two spares are enough for an epoch, but the survivor has what they lack.
  CHECK(!sent.can_begin());
  sent.roster.end_seen(2, 8);
  CHECK(!sent.can_begin());
  sent.roster.end_seen(2, 9);
  REQUIRE(sent.can_begin());
  sent.begin();
  CHECK(sent.take() == Lines{"2: epoch 10 0 2", "3: epoch 10 1 2"});
}

TEST_CASE("one that hangs holds up the next epoch until it is dropped") {
  Sent sent(2);
  for (int i = 0; i < 3; ++i) sent.add();
  sent.begin();
  sent.roster.fault(1, 1, "no word from 1");
  sent.roster.fault(2, 1, "too late to count");
  sent.roster.end_seen(1, 1);
  CHECK(!sent.can_begin());
  sent.roster.remove(2, "silent");
  CHECK(sent.can_begin());
  const std::string reason = "worker 0 on host (pid 7) cannot go on: no word from 1";
  CHECK(sent.take() == Lines{"1: epoch 1 0 2", "2: epoch 1 1 2", "1: end 1 " + reason, "2: end 1 " + reason});
}

TEST_CASE("a run whose epochs all end by a fault is given up; a step or a loss gives it another chance") {
  Sent sent(1);
  int64_t member = sent.add_ready();
  const auto fail = [&](int64_t times) {
    for (int64_t i = 0; i < times; ++i) {
      REQUIRE(sent.can_begin());
      sent.begin();
      sent.roster.fault(member, sent.roster.epoch(), "nothing moves");
      sent.roster.end_seen(member, sent.roster.epoch());
      sent.pass(1);
      sent.roster.expire(sent.now);
    }
  };
  fail(kMostFruitless - 1);
  sent.roster.steps(1);
  fail(kMostFruitless - 1);
  sent.begin();
  sent.roster.remove(member, "killed");
  member = sent.add_ready();
  fail(kMostFruitless - 1);
  CHECK(!sent.roster.over());
  sent.roster.steps(1);  // that was done before
  fail(1);
  CHECK(sent.roster.over() == 1);
  CHECK(sent.take().back() == "2: over 1");
}

TEST_CASE("a run that stops may be saved by fewer than it needs to go on") {
  Sent sent(2);
  for (int i = 0; i < 2; ++i) sent.add_ready();
  sent.begin();
  sent.roster.remove(1, "killed");
  sent.roster.end_seen(2, 1);
  sent.pass(60'000);
  sent.roster.expire(sent.now);
  CHECK(!sent.can_begin());
  sent.roster.stop();
  REQUIRE(sent.can_begin());
  sent.take();
  sent.begin();
  CHECK(sent.take() == Lines{"2: epoch 2 0 1"});
}

TEST_CASE("requests are answered once, those about another epoch with an error") {
  Sent sent(1);
  sent.add();
  sent.add();
  sent.begin();
  sent.take();
  sent.roster.get(1, 10, 1, "key");
  sent.roster.get(1, 11, 1, "key");
  sent.roster.cancel(1, 11);
  CHECK(sent.take().empty());
  sent.roster.set(1, 12, 1, "key", "value");
  CHECK(sent.take() == Lines{"1: reply 12 ok ", "1: reply 10 ok value"});
  sent.roster.get(1, 13, 2, "key");
  sent.roster.get(2, 14, 1, "key");
  CHECK(sent.take() == Lines{"1: reply 13 error epoch 2 does not go on; the last is 1",
                             "2: reply 14 error this worker is not in epoch 1"});
  sent.roster.get(1, 15, 1, "never set");
  sent.roster.fault(2, 1, "not its business");
  CHECK(sent.take().empty());
  sent.roster.fault(1, 1, "enough");
  sent.roster.set(1, 16, 1, "never set", "value");
  CHECK(sent.take() == Lines{"1: end 1 worker 0 on host (pid 7) cannot go on: enough",
                             "1: reply 16 error worker 0 on host (pid 7) cannot go on: enough"});
}

TEST_CASE("whoever is alone decides what must be equal") {
  Sent sent(2);
  CHECK(sent.add() == 1);
  CHECK(!sent.roster.add({"other", {}, "host", 8}, sent.now).ok());
  sent.roster.remove(1, "gone");
  CHECK(sent.roster.add({"other", {}, "host", 8}, sent.now).ok());
  CHECK(sent.roster.size() == 1);
}

TEST_CASE("the first epoch waits a while for the most workers; its size is a multiple") {
  Sent sent(Sizes{2, 6, 2});
  for (int i = 0; i < 3; ++i) sent.add();
  CHECK(!sent.can_begin());
  REQUIRE(sent.roster.next_look(sent.now).has_value());
  sent.now = *sent.roster.next_look(sent.now);
  REQUIRE(sent.can_begin());
  sent.begin();
  CHECK(sent.take() == Lines{"1: epoch 1 0 2", "2: epoch 1 1 2"});
}

TEST_CASE("a new coordinator takes in an epoch that goes on, and ends it when some do not come back") {
  for (const bool all : {true, false}) {
    Sent sent(Sizes{1, 2, 1}, 5);
    Hello back{"job", {}, "host", 7};
    back.epoch = 5, back.rank = 1, back.size = 2;
    const int64_t second = *sent.roster.add(back, sent.now);
    CHECK(sent.roster.current() == 5);
    CHECK(!sent.can_begin());
    if (all) {
      back.rank = 0;
      const int64_t first = *sent.roster.add(back, sent.now);
      sent.roster.greet(first);
      CHECK(sent.roster.rank(first) == 0);
    }
    CHECK(sent.roster.rank(second) == 1);
    sent.pass(60'000);
    sent.roster.expire(sent.now);
    CHECK(sent.roster.current() == (all ? 5 : 0));
    CHECK(sent.take().size() == (all ? 0 : 1));
    // One of an older epoch has been away for too long.
    back.epoch = 4;
    const int64_t zombie = *sent.roster.add(back, sent.now);
    sent.roster.greet(zombie);
    CHECK(sent.take() == Lines{std::to_string(zombie) + ": end 4 the others went on without this worker"});
  }
}

TEST_CASE("survivors wait for a replacement before they leave one of them out") {
  Sent sent(Sizes{2, 4, 2});
  for (int i = 0; i < 4; ++i) sent.add_ready();
  sent.begin();
  sent.roster.remove(2, "gone");
  for (const int64_t member : {1, 3, 4}) sent.roster.end_seen(member, 1);
  sent.roster.expire(sent.now);
  CHECK(!sent.can_begin());
  sent.take();
  SUBCASE("it comes") {
    sent.add_ready();
    REQUIRE(sent.can_begin());
    sent.begin();
    CHECK(sent.take() == Lines{"1: epoch 2 0 4", "3: epoch 2 1 4", "4: epoch 2 2 4", "5: epoch 2 3 4"});
  }
  SUBCASE("it does not") {
    for (int i = 0; i < 3 && !sent.can_begin(); ++i) sent.now = *sent.roster.next_look(sent.now);
    REQUIRE(sent.can_begin());
    sent.begin();
    CHECK(sent.take() == Lines{"1: epoch 2 0 2", "3: epoch 2 1 2"});
  }
}

}  // namespace
}  // namespace ostro::cluster
