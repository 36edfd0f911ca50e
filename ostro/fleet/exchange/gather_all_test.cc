#include "ostro/fleet/exchange/gather_all.h"

#include <doctest/doctest.h>

#include <atomic>
#include <bit>
#include <thread>

#include "ostro/dist/loop_collectives.h"

namespace ostro::fleet {
namespace {

constexpr int64_t kMostWorkers = 17;

// Of the worker of this rank; its size depends on the rank, and that of some is 0.
Bytes message_of(int64_t rank) {
  Bytes out;
  for (int64_t i = 0; i < (rank * 5) % 7; ++i) append_value(out, 1000 * rank + i);
  return out;
}

int64_t rounds_of(int64_t workers) { return std::bit_width(static_cast<uint64_t>(workers - 1)); }

TEST_CASE("every worker has the messages of all, by rank, whatever their number and their sizes") {
  for (int64_t workers = 1; workers <= kMostWorkers; ++workers) {
    const Status status = dist::run_workers({{{"data", workers}}}, [&](runtime::Collectives& c) -> Status {
      std::vector<size_t> sizes;
      for (int64_t rank = 0; rank < workers; ++rank) sizes.push_back(message_of(rank).size());
      ASSIGN_OR_RETURN(const std::vector<Bytes> all, gather_all(c, message_of(c.rank()), sizes));
      int64_t said = 0;
      for (const GatherRound& round : gather_rounds({sizes.begin(), sizes.end()}, c.rank()))
        said += round.bytes;
      if (c.bytes_sent() != said) return invalid_argument("another number of bytes than was said");
      for (int64_t rank = 0; rank < workers; ++rank)
        if (all[static_cast<size_t>(rank)] != message_of(rank)) return invalid_argument("another message");
      const int64_t before = c.bytes_sent();
      Bytes mine;
      append_value(mine, c.rank() * 3);
      ASSIGN_OR_RETURN(const std::vector<Bytes> equal, gather_all(c, mine));
      for (int64_t rank = 0; rank < workers; ++rank)
        if (Reader(equal[static_cast<size_t>(rank)]).value<int64_t>() != rank * 3)
          return invalid_argument("another message of equal size");
      // As many bytes as in an exchange of all with all.
      if (c.bytes_sent() - before != 8 * (workers - 1)) return invalid_argument("another number of bytes");
      return Status();
    });
    CHECK_MESSAGE(status.ok(), workers, " workers: ", status.ok() ? "" : status.error().message());
  }
}

TEST_CASE("no worker leaves a barrier before all are there; a worker sends a byte in each of log2 rounds") {
  for (int64_t workers = 1; workers <= kMostWorkers; ++workers) {
    std::atomic<int64_t> there = 0;
    const Status status = dist::run_workers({{{"data", workers}}}, [&](runtime::Collectives& c) -> Status {
      for (int64_t round = 1; round <= 20; ++round) {
        ++there;
        RETURN_IF_ERROR(barrier(c));
        if (there < round * workers) return invalid_argument("left too early");
      }
      if (c.bytes_sent() != 20 * rounds_of(workers)) return invalid_argument("another number of bytes");
      return Status();
    });
    CHECK_MESSAGE(status.ok(), workers, " workers: ", status.ok() ? "" : status.error().message());
    for (int64_t rank = 0; rank < workers; ++rank)
      CHECK(barrier_receivers(workers, rank).size() == static_cast<size_t>(rounds_of(workers)));
  }
}

TEST_CASE("control that must fail: a barrier with one round too few lets a worker go too early") {
  constexpr int64_t kWorkers = 8;
  std::atomic<int64_t> there = 0;
  std::atomic<bool> early = false;
  const Status status = dist::run_workers({{{"data", kWorkers}}}, [&](runtime::Collectives& c) -> Status {
    const std::vector<int64_t> receivers = barrier_receivers(kWorkers, c.rank());
    // Worker 0 comes last of all, as soon as another has left; those that wait for it do not leave before.
    if (c.rank() == 0)
      while (!early) std::this_thread::yield();
    ++there;
    const std::byte here{1};
    for (size_t round = 0; round + 1 < receivers.size(); ++round) {
      std::byte other{0};
      RETURN_IF_ERROR(send_and_receive(c, receivers[round], std::span(&here, 1),
                                       (2 * c.rank() - receivers[round] + kWorkers) % kWorkers,
                                       std::span(&other, 1)));
    }
    if (there < kWorkers) early = true;
    return Status();
  });
  CHECK(status.ok());
  CHECK(early);
}

}  // namespace
}  // namespace ostro::fleet
