// The coordinator's decisions about slices: ranks of neighbours, and slices that were measured.
#include "ostro/cluster/roster.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "ostro/cluster/sent_for_test.h"

namespace ostro::cluster {
namespace {

TEST_CASE("members of a slice get neighbouring ranks, and the first stays the first") {
  Sent sent(Sizes{2, 5, 1});
  for (const char* slice : {"b", "a", "b", "a"}) sent.roster.ready(sent.add(slice), sent.now);
  sent.pass(60'000);
  sent.begin();
  CHECK(sent.take() == Lines{"1: epoch 1 0 4", "3: epoch 1 1 4", "2: epoch 1 2 4", "4: epoch 1 3 4"});
  CHECK(sent.slices == "bbaabbaabbaabbaa");
  sent.all_work();
  // One that joins comes to its slice, in front of workers that were there before it.
  sent.slices.clear();
  sent.roster.ready(sent.add("b"), sent.now);
  sent.pass(60'000);
  sent.begin();
  CHECK(sent.take() == Lines{"1: planned 2 0 5", "3: planned 2 1 5", "5: planned 2 2 5", "2: planned 2 3 5",
                             "4: planned 2 4 5"});
  sent.all_work();
  // No member is left out for it where no more may be in an epoch.
  sent.roster.ready(sent.add("b"), sent.now);
  sent.pass(60'000);
  CHECK(!sent.can_begin());
  sent.roster.remove(1, "gone");
  sent.take();
  for (int64_t member = 2; member <= 6; ++member) sent.roster.end_seen(member, 2);
  sent.begin();
  CHECK(sent.take() ==
        Lines{"3: epoch 3 0 5", "5: epoch 3 1 5", "6: epoch 3 2 5", "2: epoch 3 3 5", "4: epoch 3 4 5"});
}

// What rank 0 tells.
FoundNames found_names(const std::vector<std::string>& names, bool ends = true, bool anew = false) {
  return {names, ends, anew, {5, 10}, "why"};
}

struct SentOfMachines : Sent {
  using Sent::Sent;
  int64_t add_from(const std::string& machine, const std::string& slice = "") {
    Hello hello{"job", {}, "host", 7};
    hello.machine = machine;
    hello.slice = slice;
    const int64_t member = *roster.add(hello, now);
    roster.ready(member, now);
    return member;
  }
  // The slices of the next epoch, which begins when those who were in the last one have seen its end.
  std::string next_slices() {
    for (int64_t member = 1; member <= 9; ++member)
      if (roster.has(member)) roster.end_seen(member, roster.epoch());
    slices.clear();
    lines.clear();
    pass(60'000);
    roster.expire(now);
    REQUIRE(can_begin());
    begin();
    all_work();
    return slices.substr(0, slices.size() / lines.size());
  }
};

TEST_CASE(
    "slices that were measured: the epoch ends for them, and later members of a machine have its slice") {
  SentOfMachines sent(Sizes{2, 4, 1});
  for (const char* machine : {"m", "n", "m", "n"}) sent.add_from(machine);
  sent.begin();
  CHECK(sent.slices == "????????????????");
  sent.take();
  // Of another epoch, of one that is not first, of another size.
  CHECK_FALSE(sent.roster.slices(1, 2, found_names({"x", "y", "x", "y"})));
  CHECK_FALSE(sent.roster.slices(2, 1, found_names({"x", "y", "x", "y"})));
  CHECK_FALSE(sent.roster.slices(1, 1, found_names({"x", "y", "x"})));
  CHECK(sent.take().empty());
  CHECK(sent.roster.slices(1, 1, found_names({"x", "y", "x", "y"})));
  CHECK(sent.take() == Lines{"1: end 1 why", "2: end 1 why", "3: end 1 why", "4: end 1 why"});
  for (int64_t member = 1; member <= 4; ++member) sent.roster.end_seen(member, 1);
  sent.slices.clear();
  REQUIRE(sent.can_begin());
  sent.begin();
  CHECK(sent.take() == Lines{"1: epoch 2 0 4", "3: epoch 2 1 4", "2: epoch 2 2 4", "4: epoch 2 3 4"});
  CHECK(sent.slices == "xxyyxxyyxxyyxxyy");
  CHECK(sent.limit == 5);
  sent.all_work();
  // A replacement on a known machine; names that were given stay.
  sent.roster.remove(1, "gone");
  CHECK(sent.add_from("m") == 5);
  CHECK(sent.next_slices() == "xxyy");
  CHECK(sent.roster.slices(3, 3, found_names({"a", "b", "c", "d"}, false)));
  CHECK(sent.roster.hello(3).slice == "x");
  CHECK(sent.roster.current() == 3);
}

TEST_CASE(
    "slices that were measured: who has none is put where it is likely, and a new search forgets them") {
  SentOfMachines sent(Sizes{1, 7, 1});
  sent.add_from("m"), sent.add_from("n"), sent.add_from("o", "named");
  CHECK(sent.next_slices() == "named?named?named");
  REQUIRE(sent.roster.slices(1, sent.roster.current(), found_names({"x", "x", "named"})));
  // The second worker of a machine, and one of a new machine, which is likely in the largest slice.
  sent.add_from("o"), sent.add_from("p");
  CHECK(sent.next_slices() == "xxx?namednamed?");
  const auto in_order = found_names({"x", "x", "x", "named", "named"}, false);
  REQUIRE(sent.roster.slices(1, sent.roster.current(), in_order));
  sent.roster.remove(5, "gone");
  // Machines with two workers that were measured are known; n has had one.
  sent.add_from("o"), sent.add_from("n");
  CHECK(sent.next_slices() == "xxx?namednamednamed");
  const int64_t left = sent.roster.current();
  REQUIRE(sent.roster.slices(1, left, found_names({"y", "y", "z", "named", "named", "named"}, true, true)));
  // Machine p, whose member is gone, has no slice any more.
  sent.add_from("p");
  CHECK(sent.next_slices() == "yyznamednamednamednamed?");
}

TEST_CASE("slices that were measured when a planned epoch is due end that one; it is no fault of the run") {
  Sent sent(Sizes{1, 2, 1});
  sent.add_ready();
  sent.begin_and_grow();
  for (int64_t i = 0; i <= kMostFruitless; ++i) {
    sent.begin();
    const int64_t number = sent.roster.epoch();
    sent.roster.set(1, 1, number, "go", "");
    CHECK(sent.roster.slices(1, number, found_names({"x", "y"})));
    CHECK(sent.roster.current() == 0);
    for (int64_t member = 1; member <= 2; ++member) sent.roster.end_seen(member, number);
    sent.roster.expire(sent.now);
  }
  CHECK_FALSE(sent.roster.over());
}

}  // namespace
}  // namespace ostro::cluster
