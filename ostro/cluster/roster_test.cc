// The coordinator's decisions, message by message.
#include "ostro/cluster/roster.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "ostro/base/log.h"
#include "ostro/cluster/messages/message.h"

namespace ostro::cluster {
namespace {

// A roster, and what it has sent: "2: epoch 1 0 2" is member 2's epoch 1 with rank 0 of 2.
struct Sent {
  explicit Sent(int64_t workers, int64_t last_epoch = 0) : Sent(Sizes{workers, workers, 1}, last_epoch) {}
  explicit Sent(const Sizes& sizes, int64_t last_epoch = 0)
      : roster(sizes, last_epoch, [this](int64_t member, const std::string& message) {
          MessageReader reader(message);
          std::string text = std::to_string(member);
          if (reader.kind() == Kind::kEpoch) {
            const int64_t number = reader.number(), rank = reader.number();
            text += reader.number() != 0 ? ": planned " : ": epoch ";
            const int64_t size = reader.number();
            text += std::to_string(number) + " " + std::to_string(rank) + " " + std::to_string(size);
            limit = reader.number();
            CHECK(reader.number() == 2 * limit);
            for (int64_t i = 0; i < size; ++i) {
              CHECK(reader.text() == "host");
              slices += reader.text();
              if (reader.number() != 0) slices += "?";
            }
          } else if (reader.kind() == Kind::kEnd) {
            text += ": end " + std::to_string(reader.number()) + " ";
            text += reader.text();
          } else if (reader.kind() == Kind::kDropped) {
            text += ": dropped " + std::to_string(reader.number());
            CHECK(!reader.text().empty());
          } else if (reader.kind() == Kind::kStop) {
            text += ": stop";
          } else if (reader.kind() == Kind::kOver) {
            text += ": over " + std::to_string(reader.number());
          } else {
            text += ": reply " + std::to_string(reader.number());
            text += reader.number() == kReplyOk ? " ok " : " error ";
            text += reader.text();
          }
          CHECK(reader.done());
          lines.push_back(text);
        }) {}
  ~Sent() { set_log_sink(std::move(old_sink)); }
  int64_t add(const std::string& slice = "") {
    Hello hello{"job", {}, "host", 7};
    hello.slice = slice;
    return *roster.add(hello, now);
  }
  int64_t add_ready() {
    const int64_t member = add();
    roster.ready(member, now);
    return member;
  }
  bool can_begin() const { return roster.can_begin(now); }
  void begin() { roster.begin(now); }
  // Its members say that it has begun.
  void all_work() {
    for (int64_t member = 1; member <= 9; ++member)
      if (roster.has(member)) roster.began(member, roster.epoch());
  }
  void pass(int64_t ms) { now += std::chrono::milliseconds(ms); }
  std::vector<std::string> take() { return std::exchange(lines, {}); }

  LogSink old_sink = set_log_sink([](LogLevel, std::string_view) {});
  std::vector<std::string> lines;
  std::string slices;  // of all workers in all epochs that it has sent; "?": it is a guess
  int64_t limit = 0;   // of rates, in the last of them
  Time now{std::chrono::hours(1)};
  Roster roster;
};

using Lines = std::vector<std::string>;

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
  sent.pass(10'000);
  sent.begin();
  sent.add_ready();
  sent.pass(1'000);
  sent.all_work();
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
  sent.pass(10'000);
  sent.begin();
  sent.add_ready();
  sent.pass(1'000);
  CHECK(!sent.can_begin());  // not all of the first one work yet
  sent.all_work();
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
  sent.pass(10'000);
  sent.begin();
  sent.add_ready();
  sent.pass(1'000);
  CHECK(!sent.can_begin());  // not all of the first one work yet
  sent.all_work();
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
