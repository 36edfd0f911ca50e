// kGroupCases: the requirements that every kind of group must meet, for tests.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ostro/ir/program/mesh.h"
#include "ostro/runtime/collectives.h"

namespace ostro::dist {

using Work = std::function<Status(runtime::Collectives&)>;
using RunWorkers = std::function<Status(const ir::Mesh&, const Work&)>;

inline const ir::Mesh kGrid{{{"data", 2}, {"model", 3}}};
inline std::string text_of(const Status& status) { return status.ok() ? "" : status.error().message(); }

// Sends value to every peer along the axis and returns the received values.
inline Result<std::vector<int64_t>> all(runtime::Collectives& c, std::string_view axis, int64_t value) {
  const std::vector<int64_t> peers = c.peers(axis);
  std::vector<int64_t> got(peers.size());
  std::vector<std::span<const std::byte>> send(peers.size(), std::as_bytes(std::span(&value, 1)));
  std::vector<std::span<std::byte>> receive;
  for (int64_t& g : got) receive.push_back(std::as_writable_bytes(std::span(&g, 1)));
  RETURN_IF_ERROR(c.exchange(peers, send, receive));
  return got;
}

// Exchanges messages with all peers along the axis whose sizes and bytes follow from both ranks, and checks
// them.
inline Status swap_checked(runtime::Collectives& c, std::string_view axis,
                           const std::function<size_t(int64_t from, int64_t to)>& size, int64_t round) {
  const auto byte = [&](int64_t from, int64_t to, size_t i) {
    return static_cast<std::byte>(static_cast<size_t>(31 * from + 7 * to + 3 * round) + i * 13 + (i >> 8) +
                                  (i >> 16));
  };
  const std::vector<int64_t> peers = c.peers(axis);
  std::vector<std::vector<std::byte>> out;
  std::vector<std::vector<std::byte>> in;
  for (const int64_t peer : peers) {
    out.emplace_back(size(c.rank(), peer));
    for (size_t i = 0; i < out.back().size(); ++i) out.back()[i] = byte(c.rank(), peer, i);
    in.emplace_back(size(peer, c.rank()));
  }
  const std::vector<std::span<const std::byte>> send(out.begin(), out.end());
  const std::vector<std::span<std::byte>> receive(in.begin(), in.end());
  RETURN_IF_ERROR(c.exchange(peers, send, receive));
  for (size_t p = 0; p < peers.size(); ++p)
    for (size_t i = 0; i < in[p].size(); ++i)
      if (in[p][i] != byte(peers[p], c.rank(), i))
        return invalid_argument(fmt::format("wrong byte {} of {} from {}", i, in[p].size(), peers[p]));
  return Status();
}

inline void check_two_axes(const RunWorkers& run) {
  const Status status = run(kGrid, [](runtime::Collectives& c) -> Status {
    for (int64_t round = 0; round < 200; ++round) {
      ASSIGN_OR_RETURN(auto row, all(c, "model", 10 * round + c.rank()));
      ASSIGN_OR_RETURN(auto column, all(c, "data", c.rank()));
      for (size_t i = 0; i < row.size(); ++i)
        if (row[i] != 10 * round + c.peers("model")[i]) return invalid_argument("wrong row");
      if (column != c.peers("data")) return invalid_argument("wrong column");
    }
    if (c.bytes_sent() != 200 * 8 * (2 + 1)) return invalid_argument("wrong byte count");
    return Status();
  });
  CHECK_MESSAGE(status.ok(), text_of(status));
}

// Empty messages, those of one byte, and those around 256: lengths that a transport could treat differently.
inline void check_odd_sizes(const RunWorkers& run) {
  for (int64_t workers = 1; workers <= 5; ++workers) {
    const Status status = run({{{"x", workers}}}, [](runtime::Collectives& c) -> Status {
      for (int64_t round = 0; round < 60; ++round)
        RETURN_IF_ERROR(swap_checked(
            c, "x",
            [&](int64_t from, int64_t to) {
              return static_cast<size_t>(round % 10 == 9 ? 4099 * from + 513 * to
                                                         : 5 * round + from - to + 5) *
                     static_cast<size_t>(round % 7 != 3);
            },
            round));
      return Status();
    });
    CHECK_MESSAGE(status.ok(), text_of(status));
  }
}

inline void check_large(const RunWorkers& run) {
  const Status status = run({{{"x", 3}}}, [](runtime::Collectives& c) -> Status {
    for (int64_t round = 0; round < 2; ++round)
      RETURN_IF_ERROR(swap_checked(
          c, "x",
          [](int64_t from, int64_t to) { return (size_t{8} << 20) + static_cast<size_t>(3 * from + to); },
          round));
    return Status();
  });
  CHECK_MESSAGE(status.ok(), text_of(status));
}

inline void check_failure(const RunWorkers& run) {
  const Status status = run(kGrid, [](runtime::Collectives& c) -> Status {
    if (c.rank() == 2) return invalid_argument("bad shard");
    while (true) RETURN_IF_ERROR(all(c, "model", 1));
  });
  REQUIRE(!status.ok());
  CHECK_MESSAGE(text_of(status).find("bad shard") != std::string::npos, text_of(status));
}

// Small messages and large ones, between workers and to the sender itself. Checks the receiver's error: the
// other worker may fail first, because it loses the receiver.
inline void check_sizes_disagree(const RunWorkers& run) {
  for (const size_t size : {size_t{8}, size_t{100'000}})
    for (const bool self : {false, true}) {
      const int64_t receiver = self ? 0 : 1;
      std::string error;
      const Status status = run({{{"x", 2}}}, [&](runtime::Collectives& c) -> Status {
        const std::vector<std::byte> out(c.rank() == 0 ? size - 4 : size);
        std::vector<std::byte> in(size);
        const std::vector<int64_t> peer{self ? c.rank() : 1 - c.rank()};
        const Status done = c.exchange(peer, std::vector<std::span<const std::byte>>{out},
                                       std::vector<std::span<std::byte>>{in});
        if (c.rank() == receiver) error = text_of(done);
        return done;
      });
      CHECK(!status.ok());
      const std::string wanted =
          fmt::format("worker {} expects {} bytes from worker 0, which sent {}", receiver, size, size - 4);
      CHECK_MESSAGE(error.find(wanted) != std::string::npos, error);
    }
}

inline void check_arguments(const RunWorkers& run) {
  const Status status = run({{{"x", 2}}}, [](runtime::Collectives& c) -> Status {
    return c.exchange(std::vector<int64_t>{2}, std::vector<std::span<const std::byte>>(1),
                      std::vector<std::span<std::byte>>(1));
  });
  CHECK(text_of(status).find("exchange with worker 2 of 2") != std::string::npos);
}

// Each worker exchanges with its left neighbour, then with its right one, several times each: the ends of the
// line run ahead of its middle.
inline void check_paces(const RunWorkers& run) {
  const Status status = run({{{"x", 4}}}, [](runtime::Collectives& c) -> Status {
    for (int64_t round = 0; round < 60; ++round)
      for (const int64_t peer : {c.rank() - 1, c.rank() + 1}) {
        if (peer < 0 || peer >= c.size()) continue;
        for (int64_t i = 0; i < 3; ++i) {
          const std::array<int64_t, 2> mine{3 * round + i, c.rank()};
          std::array<int64_t, 2> theirs{};
          RETURN_IF_ERROR(c.exchange(
              std::span(&peer, 1), std::vector<std::span<const std::byte>>{std::as_bytes(std::span(mine))},
              std::vector<std::span<std::byte>>{std::as_writable_bytes(std::span(theirs))}));
          if (theirs != std::array<int64_t, 2>{mine[0], peer}) return invalid_argument("wrong message");
        }
      }
    return Status();
  });
  CHECK_MESSAGE(status.ok(), text_of(status));
}

// Several exchanges are open and are waited for in another order than they were started in. No worker waits
// before it has started all of its own.
inline void check_tickets(const RunWorkers& run) {
  const Status status = run({{{"x", 3}}}, [](runtime::Collectives& c) -> Status {
    const std::vector<int64_t> peers = c.peers("x");
    constexpr size_t kOpen = 5;
    for (int64_t round = 0; round < 20; ++round) {
      std::vector<std::vector<std::byte>> out(kOpen);
      std::vector<std::vector<std::vector<std::byte>>> in(kOpen);
      std::vector<int64_t> tickets;
      for (size_t i = 0; i < kOpen; ++i) {
        out[i].assign(size_t{100'003} * (i % 3) + i,
                      static_cast<std::byte>(50 * c.rank() + round + 3 * static_cast<int64_t>(i)));
        in[i].assign(peers.size(), std::vector<std::byte>(out[i].size()));
        const std::vector<std::span<const std::byte>> send(peers.size(), out[i]);
        const std::vector<std::span<std::byte>> receive(in[i].begin(), in[i].end());
        ASSIGN_OR_RETURN(const int64_t ticket, c.start(peers, send, receive));
        tickets.push_back(ticket);
      }
      for (size_t n = 0; n < kOpen; ++n) {
        const size_t i = (n * 2 + static_cast<size_t>(c.rank())) % kOpen;
        RETURN_IF_ERROR(c.wait(tickets[i]));
        for (size_t p = 0; p < peers.size(); ++p)
          for (const std::byte b : in[i][p])
            if (b != static_cast<std::byte>(50 * peers[p] + round + 3 * static_cast<int64_t>(i)))
              return invalid_argument(fmt::format("wrong byte of exchange {} from {}", i, peers[p]));
      }
    }
    return Status();
  });
  CHECK_MESSAGE(status.ok(), text_of(status));
}

struct GroupCase {
  const char* name;
  void (*check)(const RunWorkers& run);
};
inline constexpr GroupCase kGroupCases[] = {
    {"workers exchange along both axes, many times, and count bytes", check_two_axes},
    {"messages of every size arrive whole, from 1 to 5 workers", check_odd_sizes},
    {"large messages arrive whole", check_large},
    {"messages of a pair keep their order when workers are not equally far", check_paces},
    {"exchanges that are on their way together are waited for in any order", check_tickets},
    {"a worker that fails ends the others instead of letting them wait", check_failure},
    {"sizes that disagree are an error", check_sizes_disagree},
    {"a peer that does not exist is an error", check_arguments},
};

}  // namespace ostro::dist
