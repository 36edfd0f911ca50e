// The coordinator's decisions about cells of the mesh: slices of one size, and members that are not left out
// because they alone hold some cells.
#include "ostro/cluster/roster.h"

#include <doctest/doctest.h>

#include <string>

#include "ostro/cluster/sent_for_test.h"

namespace ostro::cluster {
namespace {

// After the loss of one, ten seconds later: those who are left have seen the end.
void begin_again(Sent& sent) {
  for (int64_t member = 1; member <= 9; ++member)
    if (sent.roster.has(member)) sent.roster.end_seen(member, sent.roster.epoch());
  sent.roster.expire(sent.now);
  sent.pass(10'000);
  sent.take();
  sent.slices.clear();
  REQUIRE(sent.can_begin());
  sent.begin();
}

TEST_CASE("slices keep one size where the mesh needs it, and nobody is left out who alone holds some cells") {
  for (const bool needed : {true, false}) {  // without that, the first four are taken
    Sent sent(Sizes{2, 6, 2, needed ? 2 : 0, needed});
    for (const char* slice : {"a", "b", "a", "b", "a", "b"}) sent.roster.ready(sent.add(slice), sent.now);
    sent.begin();
    sent.all_work();
    sent.roster.remove(4, "gone");  // rank 4, whose cells rank 1 holds, too: member 3
    begin_again(sent);
    if (!needed) {
      CHECK(sent.take() == Lines{"1: epoch 2 0 4", "3: epoch 2 1 4", "5: epoch 2 2 4", "2: epoch 2 3 4"});
      CHECK(sent.slices.substr(0, 4) == "aaab");
      continue;
    }
    CHECK(sent.take() == Lines{"1: epoch 2 0 4", "3: epoch 2 1 4", "2: epoch 2 2 4", "6: epoch 2 3 4"});
    CHECK(sent.slices.substr(0, 4) == "aabb");
    // Member 5 waits, until there is one for the other slice as well.
    sent.all_work();
    sent.pass(60'000);
    CHECK(!sent.can_begin());
    sent.roster.ready(sent.add("b"), sent.now);
    sent.pass(1'000);
    REQUIRE(sent.can_begin());
    sent.begin();
    CHECK(sent.take() == Lines{"1: planned 3 0 6", "3: planned 3 1 6", "5: planned 3 2 6", "2: planned 3 3 6",
                               "6: planned 3 4 6", "7: planned 3 5 6"});
  }
}

TEST_CASE("a loss while a planned epoch is due leaves cells with those who were in the epoch before") {
  Sent sent(Sizes{2, 8, 2, 2, true});
  for (const char* slice : {"a", "b", "a", "b", "a", "b"}) sent.roster.ready(sent.add(slice), sent.now);
  sent.begin();
  CHECK(sent.take() == Lines{"1: epoch 1 0 6", "3: epoch 1 1 6", "5: epoch 1 2 6", "2: epoch 1 3 6",
                             "4: epoch 1 4 6", "6: epoch 1 5 6"});
  sent.all_work();
  for (const char* slice : {"a", "b"}) sent.roster.ready(sent.add(slice), sent.now);
  sent.pass(1'000);
  REQUIRE(sent.can_begin());
  sent.begin();
  sent.roster.set(1, 1, 2, "go", "");
  sent.roster.remove(8, "gone");
  CHECK(sent.roster.current() == 0);
  sent.roster.remove(6, "gone");  // who held the same cells as member 5
  begin_again(sent);
  // Of slice a member 7 is left out, who holds nothing, and 3, whose cells member 4 holds, too.
  CHECK(sent.take() == Lines{"1: epoch 3 0 4", "5: epoch 3 1 4", "2: epoch 3 2 4", "4: epoch 3 3 4"});
}

TEST_CASE("a spare that holds nothing makes no epoch wait; one that may alone hold some cells does") {
  Sent sent(Sizes{2, 6, 2, 2, true});
  for (const char* slice : {"a", "b", "a", "b", "a"}) sent.roster.ready(sent.add(slice), sent.now);
  sent.begin();
  sent.all_work();
  sent.roster.fault(1, 1, "a message was damaged");
  for (int64_t member = 1; member <= 4; ++member) sent.roster.end_seen(member, 1);
  sent.roster.expire(sent.now);
  sent.take();
  REQUIRE(sent.can_begin());
  sent.begin();
  CHECK(sent.take() == Lines{"1: epoch 2 0 4", "3: epoch 2 1 4", "2: epoch 2 2 4", "4: epoch 2 3 4"});
  sent.all_work();
  // The control: of slice a two must go now, and one of them has been in the epoch.
  sent.roster.remove(4, "gone");
  for (int64_t member = 1; member <= 3; ++member) sent.roster.end_seen(member, 2);
  sent.roster.expire(sent.now);
  CHECK(!sent.can_begin());
  sent.pass(9'000);
  CHECK(!sent.can_begin());
  sent.pass(1'000);
  CHECK(sent.can_begin());
}

TEST_CASE("slices of one size never cost the least number of workers, and come when they can be had") {
  Sent sent(Sizes{8, 10, 2, 2, true});
  for (const char* slice : {"a", "a", "a", "a", "a", "b", "b", "b"})
    sent.roster.ready(sent.add(slice), sent.now);
  sent.begin();
  CHECK(sent.slices.substr(0, 8) == "aaaaabbb");
  sent.all_work();
  sent.take();
  sent.roster.ready(sent.add("b"), sent.now);
  CHECK(!sent.can_begin());
  sent.pass(1'000);
  REQUIRE(sent.can_begin());
  sent.begin();
  CHECK(sent.take() == Lines{"1: planned 2 0 8", "2: planned 2 1 8", "3: planned 2 2 8", "4: planned 2 3 8",
                             "6: planned 2 4 8", "7: planned 2 5 8", "8: planned 2 6 8", "9: planned 2 7 8",
                             "5: planned 2 -1 8"});
}

TEST_CASE("where no slice is named, who alone holds some cells is not left out either") {
  for (const int64_t replicas : {0, 2}) {
    Sent sent(Sizes{2, 4, 2, replicas});
    for (int i = 0; i < 4; ++i) sent.add_ready();
    sent.begin();
    sent.all_work();
    sent.roster.remove(2, "gone");
    begin_again(sent);
    const std::string other = replicas == 0 ? "3" : "4";
    CHECK(sent.take() == Lines{"1: epoch 2 0 2", other + ": epoch 2 1 2"});
  }
}

}  // namespace
}  // namespace ostro::cluster
