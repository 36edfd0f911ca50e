// The coordinator's decisions, message by message.
#include "ostro/cluster/roster.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "ostro/base/log.h"
#include "ostro/cluster/message.h"

namespace ostro::cluster {
namespace {

// A roster, and what it has sent: "2: epoch 1 0 2" is member 2's epoch 1 with rank 0 of 2.
struct Sent {
  explicit Sent(int64_t workers, int64_t last_epoch = 0)
      : roster(workers, last_epoch, [this](int64_t member, const std::string& message) {
          MessageReader reader(message);
          std::string text = std::to_string(member);
          if (reader.kind() == Kind::kEpoch) {
            text += ": epoch";
            for (int i = 0; i < 3; ++i) text += " " + std::to_string(reader.number());
          } else if (reader.kind() == Kind::kEnd) {
            text += ": end " + std::to_string(reader.number()) + " ";
            text += reader.text();
          } else {
            text += ": reply " + std::to_string(reader.number());
            text += reader.number() == kReplyOk ? " ok " : " error ";
            text += reader.text();
          }
          CHECK(reader.done());
          lines.push_back(text);
        }) {}
  ~Sent() { set_log_sink(std::move(old_sink)); }
  int64_t add() { return *roster.add({"job", {}, "host", 7}); }
  std::vector<std::string> take() { return std::exchange(lines, {}); }

  LogSink old_sink = set_log_sink([](LogLevel, std::string_view) {});
  std::vector<std::string> lines;
  Roster roster;
};

using Lines = std::vector<std::string>;

TEST_CASE("the next epoch waits for all who were in the last to know of its end") {
  Sent sent(2, 8);
  for (int64_t member = 1; member <= 4; ++member) CHECK(sent.add() == member);
  sent.roster.begin();
  CHECK(sent.take() == Lines{"1: epoch 9 0 2", "2: epoch 9 1 2"});
  CHECK(!sent.roster.can_begin());
  sent.roster.remove(1, "gone");
  const std::string reason = "worker 0 on host (pid 7) is lost: gone";
  CHECK(sent.take() == Lines{"2: end 9 " + reason});
  // Two spares are enough for an epoch, but the survivor has what they lack.
  CHECK(!sent.roster.can_begin());
  sent.roster.end_seen(2, 8);
  CHECK(!sent.roster.can_begin());
  sent.roster.end_seen(2, 9);
  REQUIRE(sent.roster.can_begin());
  sent.roster.begin();
  CHECK(sent.take() == Lines{"2: epoch 10 0 2", "3: epoch 10 1 2"});
}

TEST_CASE("one that hangs holds up the next epoch until it is dropped") {
  Sent sent(2);
  for (int i = 0; i < 3; ++i) sent.add();
  sent.roster.begin();
  sent.roster.fault(1, 1, "no word from 1");
  sent.roster.fault(2, 1, "too late to count");
  sent.roster.end_seen(1, 1);
  CHECK(!sent.roster.can_begin());
  sent.roster.remove(2, "silent");
  CHECK(sent.roster.can_begin());
  const std::string reason = "worker 0 on host (pid 7) cannot go on: no word from 1";
  CHECK(sent.take() == Lines{"1: epoch 1 0 2", "2: epoch 1 1 2", "1: end 1 " + reason, "2: end 1 " + reason});
}

TEST_CASE("requests are answered once, those about another epoch with an error") {
  Sent sent(1);
  sent.add();
  sent.add();
  sent.roster.begin();
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
  CHECK(!sent.roster.add({"other", {}, "host", 8}).ok());
  sent.roster.remove(1, "gone");
  CHECK(sent.roster.add({"other", {}, "host", 8}).ok());
  CHECK(sent.roster.size() == 1);
}

}  // namespace
}  // namespace ostro::cluster
