// Job, End: a coordinator and members on this machine, for tests.
#pragma once

#include <doctest/doctest.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ostro/base/log.h"
#include "ostro/cluster/coordinator.h"
#include "ostro/cluster/member.h"

namespace ostro::cluster {

using std::chrono::milliseconds;

// The time limits of a test for an event that must happen, and for one that must not.
inline constexpr milliseconds kSoon{20'000};
inline constexpr milliseconds kNever{50};

struct Job {
  explicit Job(int64_t workers, milliseconds lease = milliseconds(60'000),
               const std::string& secret = "s3cret") {
    options.min_workers = options.max_workers = workers;
    options.lease = lease;
    options.secret = secret;
    start();
  }
  ~Job() {
    coordinator.reset();
    set_log_sink(std::move(old_sink));
  }
  void start() {
    auto started = Coordinator::start(options);
    REQUIRE_MESSAGE(started.ok(), (started.ok() ? "" : started.error().message()));
    coordinator = std::move(*started);
  }

  Hello hello() const { return {"job", {{"program", "p1"}, {"config", "c1"}}, "here", getpid()}; }
  std::unique_ptr<Member> join(const Hello& hello) const {
    auto member = Member::join("127.0.0.1", coordinator->port(), options.secret, hello, kSoon);
    REQUIRE_MESSAGE(member.ok(), (member.ok() ? "" : member.error().message()));
    return std::move(*member);
  }
  std::unique_ptr<Member> join() const { return join(hello()); }
  // Joins `count` members, each only when the one before is in the roster, so that their order is known.
  std::vector<std::unique_ptr<Member>> join_in_order(int64_t count) const {
    std::vector<std::unique_ptr<Member>> members;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t before = coordinator->members();
      members.push_back(join());
      wait_for_members(before + 1);
    }
    return members;
  }
  void wait_for_members(int64_t count) const {
    const auto until = std::chrono::steady_clock::now() + kSoon;
    while (coordinator->members() != count) {
      REQUIRE(std::chrono::steady_clock::now() < until);
      std::this_thread::yield();
    }
  }

  LogSink old_sink = set_log_sink([](LogLevel, std::string_view) {});
  CoordinatorOptions options;
  std::unique_ptr<Coordinator> coordinator;
};

// The next epoch of a member.
inline Epoch next_epoch(Member& member, int64_t after) {
  const Result<Epoch> epoch = member.wait_epoch(after, kSoon);
  REQUIRE_MESSAGE(epoch.ok(), (epoch.ok() ? "" : epoch.error().message()));
  return *epoch;
}

// Waits for the end of a member's epoch.
class End {
 public:
  End(Member& member, int64_t epoch) : member_(member), epoch_(epoch) {
    member.on_end(epoch, [this](const std::string& reason) { reason_.set_value(reason); });
  }
  std::string reason() {
    std::future<std::string> future = reason_.get_future();
    REQUIRE(future.wait_for(kSoon) == std::future_status::ready);
    member_.on_end(epoch_, nullptr);  // the callback still holds the promise when the future is ready
    return future.get();
  }

 private:
  Member& member_;
  int64_t epoch_;
  std::promise<std::string> reason_;
};

}  // namespace ostro::cluster
