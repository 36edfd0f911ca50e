#include <doctest/doctest.h>

#include <atomic>
#include <future>
#include <string>
#include <thread>

#include "ostro/base/watch/hang_watch.h"
#include "ostro/base/watch/said.h"
#include "ostro/base/watch/stacks.h"
#include "ostro/base/watch/time_use.h"

using namespace ostro;
using Seconds = std::chrono::duration<double>;

TEST_CASE("what a process says is kept until it is taken, the newest part of it") {
  add_said("nobody keeps this\n");
  keep_said();
  CHECK(take_said(kMostSaid).find("nobody keeps this") == std::string::npos);
  add_said("one\ntwo\n");
  CHECK(take_said(5) == "one\nt");
  CHECK(take_said(kMostSaid) == "wo\n");
  CHECK(take_said(kMostSaid).empty());
  add_said(std::string(kMostSaid, 'x'));
  add_said("the end\n");
  const std::string newest = take_said(kMostSaid);
  CHECK(newest.starts_with("\n(32776 bytes left out)\nxxx"));
  CHECK(newest.ends_with("xthe end\n"));
}

TEST_CASE("the time of the thread that counts is at one use at a time, and other threads do not count") {
  restart_time(TimeUse::kStart);
  use_time(TimeUse::kStep);
  {
    const TimeScope saving(TimeUse::kCheckpoint);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::thread([] { const TimeScope other(TimeUse::kEvaluation); }).join();
  }
  use_time(TimeUse::kLost);
  {
    const TimeScope inside(TimeUse::kCheckpoint);
  }  // what it takes belongs to the lost step
  recount_time(TimeUse::kRecovery, Seconds(2));
  const TimesUsed times = times_used();
  CHECK(times[static_cast<size_t>(TimeUse::kCheckpoint)] >= 0.02);
  CHECK(times[static_cast<size_t>(TimeUse::kEvaluation)] == 0);
  CHECK(times[static_cast<size_t>(TimeUse::kRecovery)] == 2);
  CHECK(times[static_cast<size_t>(TimeUse::kLost)] < 0);  // 2 seconds less than it had
}

TEST_CASE("a process hangs when it is watched, does not wait for others, and nothing moves") {
  using Found = std::future<Pulse>;  // ready when the hang is found
  const auto hangs = [](Seconds timeout, const std::function<void(const Found&)>& work) {
    std::promise<Pulse> hang;
    Found found = hang.get_future();
    const HangWatch watch([=] { return timeout; }, [&](const Pulse& p, Seconds) { hang.set_value(p); });
    work(found);
    return found.wait_for(std::chrono::seconds(0)) == std::future_status::ready ? found.get().phase : "";
  };
  const auto rest = [](const Found&) { std::this_thread::sleep_for(std::chrono::milliseconds(400)); };
  CHECK(hangs(Seconds(0.1), rest) == "");  // not watched
  CHECK(hangs(Seconds(0.1), [&](const Found& found) {
          const PulseWatch watched;
          const PulseWait others;
          rest(found);
        }) == "");
  CHECK(hangs(Seconds(0.1), [](const Found& found) {
          const PulseWatch watched;
          pulse_phase("leaf", 3);
          found.wait_for(Seconds(300));
        }) == "leaf");
  // Whatever computes for long touches the pulse. A second without a touch is long, also on a busy machine.
  CHECK(hangs(Seconds(1), [](const Found&) {
          const PulseWatch watched;
          const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(3);
          while (std::chrono::steady_clock::now() < until) {
            pulse_touch();
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
          }
        }) == "");
  CHECK(hangs(Seconds(60), [&](const Found& found) {
          const PulseWatch watched;
          rest(found);
        }) == "");
}

TEST_CASE("the slowest of the last 32 steps is known, once one has ended") {
  CHECK(!slowest_step_seconds());
  {
    const PulseStep step(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
  }
  CHECK(slowest_step_seconds().value() >= 0.03);
  for (int i = 0; i < 31; ++i) const PulseStep step(2 + i);
  CHECK(slowest_step_seconds().value() >= 0.03);
  const double slow = *slowest_step_seconds();
  {
    const PulseStep step(33);
  }
  CHECK(slowest_step_seconds().value() < slow);
}

TEST_CASE("the stacks of all threads are there, by name") {
  std::atomic<bool> stop{false};
  std::atomic<bool> there{false};
  std::thread other([&] {
    ::pthread_setname_np(::pthread_self(), "the other");
    there = true;
    while (!stop) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  while (!there) std::this_thread::yield();
  const std::string stacks = thread_stacks();
  stop = true;
  other.join();
  const size_t at = stacks.find("(the other)");
  REQUIRE(at != std::string::npos);
  // Only its own entry: a thread that a sanitizer has for itself takes no signals.
  const std::string own = stacks.substr(at, stacks.find("\nthread ", at) - at);
  CHECK(own.find("\n  /") != std::string::npos);  // a frame with the file that it is in
  CHECK(own.find("does not answer") == std::string::npos);
}
