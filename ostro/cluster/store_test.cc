// Keys of an epoch, across members.
#include <doctest/doctest.h>

#include <future>
#include <string>

#include "ostro/cluster/job_for_test.h"
#include "ostro/cluster/messages/values.h"

namespace ostro::cluster {
namespace {

TEST_CASE("what one member sets all can get, before or after") {
  Job job(3);
  auto members = job.join_in_order(3);
  for (const auto& member : members) next_epoch(*member, 0);
  std::vector<std::future<Result<std::string>>> waits;
  for (size_t i = 1; i < 3; ++i) {
    waits.push_back(
        std::async(std::launch::async, [&, i] { return members[i]->store(1).get("address", kSoon); }));
  }
  const std::string address("10.0.0.1\0:42", 12);
  CHECK(members[0]->store(1).set("address", address).ok());
  for (auto& wait : waits) CHECK(*wait.get() == address);
  CHECK(*members[0]->store(1).get("address", kSoon) == address);
  CHECK(members[1]->store(1).set("address", "other").ok());
  CHECK(*members[2]->store(1).get("address", kSoon) == "other");
  CHECK(members[1]->store(1).set("empty", "").ok());
  CHECK(*members[2]->store(1).get("empty", kSoon) == "");
}

TEST_CASE("get ends after its time, and the key can still be got later") {
  Job job(1);
  auto member = job.join();
  next_epoch(*member, 0);
  const Result<std::string> none = member->store(1).get("late", kNever);
  REQUIRE(!none.ok());
  CHECK(none.error().code() == ErrorCode::kBusy);
  CHECK(none.error().message().find("'late'") != std::string::npos);
  CHECK(member->store(1).set("late", "now").ok());
  CHECK(*member->store(1).get("late", milliseconds::max()) == "now");
}

TEST_CASE("get ends when the epoch does, whose keys are gone in the next") {
  Job job(2);
  auto members = job.join_in_order(2);
  next_epoch(*members[0], 0);
  next_epoch(*members[1], 0);
  CHECK(members[0]->store(1).set("key", "old").ok());
  auto wait = std::async(std::launch::async, [&] { return members[0]->store(1).get("never set", kSoon); });
  members[1]->fault(1, "the wire was cut");
  const Result<std::string> ended = wait.get();
  REQUIRE(!ended.ok());
  CHECK(ended.error().code() == ErrorCode::kIo);
  CHECK(ended.error().message().find("the wire was cut") != std::string::npos);
  CHECK(next_epoch(*members[0], 1).number == 2);
  CHECK(members[0]->store(1).get("key", kSoon).error().code() == ErrorCode::kIo);
  CHECK(members[0]->store(1).set("key", "x").error().code() == ErrorCode::kIo);
  CHECK(members[0]->store(2).get("key", kNever).error().code() == ErrorCode::kBusy);
  CHECK(members[0]->store(3).get("key", kSoon).error().code() == ErrorCode::kIo);
}

TEST_CASE("a spare has no keys of an epoch that it is not in") {
  Job job(1);
  auto members = job.join_in_order(2);
  next_epoch(*members[0], 0);
  const Status refused = members[1]->store(1).set("key", "value");
  REQUIRE(!refused.ok());
  CHECK(refused.error().message().find("not in epoch 1") != std::string::npos);
}

TEST_CASE("large values pass, larger ones are refused, and the sum is bounded") {
  Job job(1);
  auto member = job.join();
  next_epoch(*member, 0);
  const std::string large(1'000'000, 'x');
  CHECK(member->store(1).set("large", large).ok());
  CHECK(*member->store(1).get("large", kSoon) == large);
  CHECK(member->store(1).set("larger", large + large).error().code() == ErrorCode::kInvalidArgument);
  CHECK(*member->store(1).get("large", kSoon) == large);

  Values values;
  for (int i = 0; i < 67; ++i) REQUIRE(values.set(std::to_string(i), large).ok());
  CHECK(values.set("67", large).error().code() == ErrorCode::kUnsupported);
  CHECK(values.set("66", large).ok());
  CHECK(values.find("67") == nullptr);
  for (int i = 0; i < 1024; ++i) REQUIRE(values.wait({1, i}, "w").ok());
  CHECK(!values.wait({1, 1024}, "w").ok());
  CHECK(values.wait({2, 0}, "w").ok());
  values.cancel({1, 5});
  CHECK(values.wait({1, 1024}, "w").ok());
  REQUIRE(values.set("w", "now").ok());
  CHECK(values.take_answers("w").size() == 1025);
  CHECK(values.take_answers("w").empty());
}

TEST_CASE("a group is answered when all its keys are there, in their order, and each wait once") {
  Values values;
  const auto waiting = [&](int64_t request, int64_t count) {
    REQUIRE(values.wait_all({7, request}, "e/address/", count).ok());
  };
  waiting(1, 3), waiting(2, 2), waiting(3, 3), waiting(4, 3);
  values.cancel({7, 4});
  CHECK(!values.find_all("e/address/", 1));
  CHECK(*values.find_all("e/address/", 0) == packed({}));
  // Not of the group: no number, a leading zero, a sign, another group.
  for (const char* key : {"e/address/", "e/address/00", "e/address/+0", "e/address/x", "f/address/0", "0"})
    REQUIRE(values.set(key, "no").ok());
  REQUIRE(values.set("e/address/2", "two").ok());
  CHECK(values.take_answers("e/address/2").empty());
  REQUIRE(values.set("e/address/1", "one").ok());
  CHECK(values.take_answers("e/address/1").empty());
  REQUIRE(values.set("e/address/0", "").ok());
  const std::vector<Answer> answers = values.take_answers("e/address/0");
  REQUIRE(answers.size() == 3);
  CHECK(unpacked(answers[0].value) == std::vector<std::string>{"", "one", "two"});
  CHECK(unpacked(answers[1].value) == std::vector<std::string>{"", "one"});
  CHECK(answers[2].waiter == Waiter{7, 3});
  CHECK(values.take_answers("e/address/0").empty());
  CHECK(!values.find_all("e/address/", 4));
  // The answer that is kept is not that of another count, nor of other values.
  CHECK(unpacked(*values.find_all("e/address/", 2)) == std::vector<std::string>{"", "one"});
  REQUIRE(values.set("e/address/1", "another").ok());
  CHECK(unpacked(*values.find_all("e/address/", 2)) == std::vector<std::string>{"", "another"});
  CHECK(unpacked(*values.find_all("e/address/", 3)) == std::vector<std::string>{"", "another", "two"});
}

TEST_CASE("packed values are read again, other texts are not") {
  const std::string text = packed({"a", "", std::string_view("\0b", 2)});
  CHECK(unpacked(text) == std::vector<std::string>{"a", "", std::string("\0b", 2)});
  for (size_t size = 0; size < text.size(); ++size) CHECK(!unpacked(text.substr(0, size)));
  CHECK(!unpacked(text + "x"));
  std::string many = text;
  many[8] = '\x7f';  // the count
  CHECK(!unpacked(many));
}

TEST_CASE("all members of an epoch get each other's values in one answer") {
  Job job(3);
  auto members = job.join_in_order(3);
  for (const auto& member : members) next_epoch(*member, 0);
  std::vector<std::future<Result<std::vector<std::string>>>> waits;
  for (const auto& member : members)
    waits.push_back(
        std::async(std::launch::async, [&member] { return member->store(1).get_all("address/", 3, kSoon); }));
  const Result<std::vector<std::string>> none = members[0]->store(1).get_all("other/", 1, kNever);
  REQUIRE(!none.ok());
  CHECK(none.error().code() == ErrorCode::kBusy);
  for (size_t i = 0; i < 3; ++i)
    CHECK(members[i]
              ->store(1)
              .set("address/" + std::to_string(i), std::string(1, static_cast<char>('a' + i)))
              .ok());
  for (auto& wait : waits) CHECK(wait.get().value() == std::vector<std::string>{"a", "b", "c"});
  CHECK(members[0]->store(1).get_all("address/", 1 << 20, kSoon).error().code() ==
        ErrorCode::kInvalidArgument);
  CHECK(members[0]->store(1).get_all("address/", -1, kSoon).error().code() == ErrorCode::kInvalidArgument);
  // Together they are longer than a message.
  const std::string large(600'000, 'x');
  CHECK(members[0]->store(1).set("large/0", large).ok());
  CHECK(members[1]->store(1).set("large/1", large).ok());
  CHECK(members[2]->store(1).get_all("large/", 2, kSoon).error().code() == ErrorCode::kUnsupported);
  auto late = std::async(std::launch::async, [&] { return members[0]->store(1).get_all("late/", 2, kSoon); });
  members[1]->fault(1, "the wire was cut");
  CHECK(late.get().error().code() == ErrorCode::kIo);
}

}  // namespace
}  // namespace ostro::cluster
