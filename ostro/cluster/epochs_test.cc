// Who is in which epoch, as members see it.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "ostro/cluster/job_for_test.h"

namespace ostro::cluster {
namespace {

TEST_CASE("what a worker writes comes with its heartbeats, and the rest when it ends") {
  Job job(1, milliseconds(5000));
  job.coordinator.reset();
  std::mutex mutex;
  std::string said, heard;
  job.options.on_said = [&](const Hello& hello, std::string_view bytes) {
    const std::lock_guard lock(mutex);
    heard += fmt::format("{}|{};", hello.host, bytes);
  };
  job.start();
  auto member = job.join();
  member->pass_on([&](size_t most) {
    const std::lock_guard lock(mutex);
    CHECK(most >= 16 << 10);
    return std::exchange(said, "");
  });
  const auto say_and_wait = [&](const std::string& text, const std::string& wanted, bool ends) {
    {
      const std::lock_guard lock(mutex);
      said = text;
    }
    if (ends) member.reset();
    const auto until = std::chrono::steady_clock::now() + kSoon;
    while (true) {
      {
        const std::lock_guard lock(mutex);
        if (heard == wanted) return;
        REQUIRE_MESSAGE(std::chrono::steady_clock::now() < until, heard);
      }
      std::this_thread::sleep_for(milliseconds(1));
    }
  };
  say_and_wait("a line\nand a", "here|a line\nand a;", false);
  say_and_wait("nother\n", "here|a line\nand a;here|nother\n;", true);
}

TEST_CASE("an epoch begins when all workers are there, with ranks by order of joining") {
  Job job(3);
  auto members = job.join_in_order(2);
  const Result<Epoch> early = members[0]->wait_epoch(0, kNever);
  REQUIRE(!early.ok());
  CHECK(early.error().code() == ErrorCode::kBusy);
  members.push_back(job.join());
  for (int64_t i = 0; i < 3; ++i) {
    const Epoch epoch = next_epoch(*members[static_cast<size_t>(i)], 0);
    CHECK(epoch.number == 1);
    CHECK(epoch.rank == i);
    CHECK(epoch.size == 3);
  }
  CHECK(job.coordinator->epoch() == 1);
  CHECK(job.coordinator->members() == 3);
}

TEST_CASE(
    "an epoch ends at once when a member goes, and the next begins with a joiner; survivors keep their "
    "order") {
  Job job(3);
  auto members = job.join_in_order(3);
  for (const auto& member : members) next_epoch(*member, 0);
  End first(*members[0], 1), last(*members[2], 1);
  const auto start = std::chrono::steady_clock::now();
  members.erase(members.begin() + 1);
  const std::string reason = first.reason();
  CHECK(last.reason() == reason);
  CHECK(std::chrono::steady_clock::now() - start < kSoon);  // not after a lease
  CHECK(reason.find("worker 1 on here (pid ") != std::string::npos);
  CHECK(!members[0]->wait_epoch(0, kNever).ok());

  members.push_back(job.join());
  for (int64_t i = 0; i < 3; ++i) {
    const Epoch epoch = next_epoch(*members[static_cast<size_t>(i)], 1);
    CHECK(epoch.number == 2);
    CHECK(epoch.rank == i);
  }
}

TEST_CASE("slices that a member has measured are those of the next epoch, also for a new coordinator") {
  const std::string journal = std::filesystem::temp_directory_path() / fmt::format("slices-{}", getpid());
  Job job(2);
  job.coordinator.reset();
  job.options.journal = journal;
  job.start();
  std::vector<std::unique_ptr<Member>> members;
  for (const char* machine : {"m", "n"}) {
    Hello hello = job.hello();
    hello.machine = machine;
    members.push_back(job.join(hello));
    job.wait_for_members(static_cast<int64_t>(members.size()));
  }
  for (const auto& member : members) CHECK(next_epoch(*member, 0).guessed == std::vector<bool>(2, true));
  End first(*members[0], 1), last(*members[1], 1);
  members[0]->slices(1, {{"x", "y"}, true, false, {500, 1000}, "two slices"});
  CHECK(first.reason() == "two slices");
  CHECK(last.reason() == "two slices");
  for (const auto& member : members)
    CHECK(next_epoch(*member, 1).slices == std::vector<std::string>{"x", "y"});
  const auto events = job.coordinator->watched().events;
  CHECK(std::any_of(events.begin(), events.end(),
                    [](const JobEvent& e) { return e.kind == "slices" && e.text == "two slices"; }));
  for (const auto& member : members) member->began(2);
  // The members tell the next coordinator.
  job.options.port = job.coordinator->port();
  job.coordinator.reset();
  job.start();
  job.wait_for_members(2);
  members[1]->fault(2, "enough");
  for (const auto& member : members) {
    const Epoch epoch = next_epoch(*member, 2);
    CHECK(epoch.slices == std::vector<std::string>{"x", "y"});
    CHECK(epoch.guessed == std::vector<bool>(2));
    CHECK(epoch.rates.limit == 500);
    CHECK(epoch.rates.fastest == 1000);
  }
  members.clear();
  job.coordinator.reset();
  std::filesystem::remove(journal);
  std::filesystem::remove(journal + ".lock");
}

TEST_CASE("a spare takes over at once") {
  Job job(2);
  auto members = job.join_in_order(3);
  next_epoch(*members[0], 0);
  next_epoch(*members[1], 0);
  CHECK(!members[2]->wait_epoch(0, kNever).ok());
  members.erase(members.begin());
  const Epoch survivor = next_epoch(*members[0], 1), spare = next_epoch(*members[1], 0);
  CHECK(survivor.number == 2);
  CHECK(survivor.rank == 0);
  CHECK(spare.number == 2);
  CHECK(spare.rank == 1);
}

TEST_CASE("a spare that goes disturbs nobody") {
  Job job(2);
  auto members = job.join_in_order(3);
  next_epoch(*members[0], 0);
  members.pop_back();
  job.wait_for_members(2);
  CHECK(members[0]->store(1).set("key", "value").ok());
  CHECK(job.coordinator->epoch() == 1);
}

TEST_CASE("a fault ends the epoch for all, and the same members begin the next") {
  Job job(2);
  auto members = job.join_in_order(2);
  next_epoch(*members[0], 0);
  next_epoch(*members[1], 0);
  End own(*members[0], 1), other(*members[1], 1);
  members[1]->fault(1, "no word from worker 0");
  members[1]->fault(1, "again");
  CHECK(own.reason().find("worker 1 on here") == 0);
  CHECK(other.reason().find("no word from worker 0") != std::string::npos);
  CHECK(next_epoch(*members[0], 1).number == 2);
  CHECK(next_epoch(*members[1], 1).rank == 1);
  // One about an epoch that has ended says nothing about this one.
  members[0]->fault(1, "late");
  CHECK(members[0]->store(2).set("key", "value").ok());
  CHECK(job.coordinator->epoch() == 2);
}

TEST_CASE("on_end: at once for an epoch that has ended, once, and not when it was removed") {
  Job job(1);
  auto member = job.join();
  next_epoch(*member, 0);
  std::atomic<int> removed = 0, calls = 0;
  member->on_end(1, [&](const std::string&) { ++removed; });
  member->on_end(1, nullptr);
  member->fault(1, "enough");
  CHECK(next_epoch(*member, 1).number == 2);
  CHECK(removed == 0);
  member->on_end(1, [&](const std::string& reason) {
    ++calls;
    CHECK(reason.find("enough") != std::string::npos);
    // A callback may set the next one, which runs after it.
    member->on_end(1, [&](const std::string&) { ++calls; });
  });
  CHECK(calls == 2);
}

TEST_CASE("a member that is silent for longer than its lease is dropped, and finds its connection closed") {
  Job job(2, milliseconds(5000));  // in which the others are heard, also on a busy machine
  auto members = job.join_in_order(3);
  next_epoch(*members[0], 0);
  next_epoch(*members[1], 0);
  End survivor(*members[0], 1), zombie(*members[1], 1);
  members[1]->mute_for_test();
  CHECK(survivor.reason().find("nothing was heard from it for 5000 ms") != std::string::npos);
  CHECK(next_epoch(*members[0], 1).rank == 0);
  CHECK(next_epoch(*members[2], 0).rank == 1);
  zombie.reason();
  const Result<Epoch> never = members[1]->wait_epoch(1, kSoon);
  REQUIRE(!never.ok());
  CHECK(never.error().code() == ErrorCode::kIo);
}

TEST_CASE("a coordinator that ends is gone for its members; the journal gives a higher number to the next") {
  const auto folder =
      std::filesystem::temp_directory_path() / ("ostro_cluster_test_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  Job job(1);
  job.options.journal = (folder / "journal").string();
  job.coordinator.reset();
  job.start();
  auto member = job.join();
  CHECK(next_epoch(*member, 0).number == 1);
  CHECK(Coordinator::start(job.options).error().code() == ErrorCode::kBusy);
  End end(*member, 1);
  job.coordinator.reset();
  CHECK(end.reason().find("the coordinator is gone") == 0);
  CHECK(member->wait_epoch(1, kSoon).error().code() == ErrorCode::kIo);
  CHECK(member->store(1).set("key", "value").error().code() == ErrorCode::kIo);

  job.start();
  CHECK(job.coordinator->epoch() == 1);
  member = job.join();
  CHECK(next_epoch(*member, 0).number == 2);
  job.coordinator.reset();
  std::ofstream(folder / "journal") << "something else\n";
  CHECK(Coordinator::start(job.options).error().code() == ErrorCode::kCorrupt);
  std::filesystem::remove_all(folder);
}

TEST_CASE(
    "an epoch whose number cannot be recorded does not begin; that is told, and it begins when it can be") {
  const auto folder =
      std::filesystem::temp_directory_path() / ("ostro_cluster_full_" + std::to_string(getpid()));
  // A full disk: the file that is renamed to the journal cannot be made.
  std::filesystem::create_directories(folder / "journal.tmp");
  Job job(1);
  std::promise<std::string> told;
  std::atomic<int> lines = 0;
  set_log_sink([&](LogLevel level, std::string_view text) {
    if (level == LogLevel::kError && lines++ == 0) told.set_value(std::string(text));
  });
  job.options.journal = (folder / "journal").string();
  job.coordinator.reset();
  job.start();
  const auto member = job.join();
  std::future<std::string> said = told.get_future();
  REQUIRE(said.wait_for(kSoon) == std::future_status::ready);
  CHECK(said.get().find("no epoch can begin: " + (folder / "journal").string()) == 0);
  CHECK(!member->wait_epoch(0, kNever).ok());
  std::filesystem::remove(folder / "journal.tmp");
  CHECK(next_epoch(*member, 0).number == 1);
  CHECK(lines == 1);
  job.coordinator.reset();
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace ostro::cluster
