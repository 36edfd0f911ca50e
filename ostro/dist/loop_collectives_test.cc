#include "ostro/dist/loop_collectives.h"

#include <doctest/doctest.h>

#include <array>

namespace ostro::dist {
namespace {

const ir::Mesh kMesh{{{"data", 2}, {"model", 3}}};

// Sends value to every peer along the axis and returns what came.
Result<std::vector<int64_t>> all(runtime::Collectives& c, std::string_view axis, int64_t value) {
  const std::vector<int64_t> peers = c.peers(axis);
  std::vector<int64_t> got(peers.size());
  std::vector<std::span<const std::byte>> send(peers.size(), std::as_bytes(std::span(&value, 1)));
  std::vector<std::span<std::byte>> receive;
  for (int64_t& g : got) receive.push_back(std::as_writable_bytes(std::span(&g, 1)));
  RETURN_IF_ERROR(c.exchange(peers, send, receive));
  return got;
}

TEST_CASE("peers differ in one coordinate, in its order") {
  LoopGroup group(kMesh);
  CHECK(group.worker(4).peers("model") == std::vector<int64_t>{3, 4, 5});
  CHECK(group.worker(4).peers("data") == std::vector<int64_t>{1, 4});
  CHECK(group.worker(4).peers("expert") == std::vector<int64_t>{4});
  CHECK(group.worker(4).peers("data*model") == std::vector<int64_t>{0, 1, 2, 3, 4, 5});
  CHECK(group.worker(4).peers("data*expert") == std::vector<int64_t>{1, 4});
}

TEST_CASE("workers exchange along both axes, many times, and count bytes") {
  const Status status = run_workers(kMesh, [](runtime::Collectives& c) -> Status {
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
  CHECK_MESSAGE(status.ok(), (status.ok() ? "" : status.error().message()));
}

TEST_CASE("a worker that fails ends the others instead of letting them wait") {
  const Status status = run_workers(kMesh, [](runtime::Collectives& c) -> Status {
    if (c.rank() == 2) return invalid_argument("bad shard");
    while (true) RETURN_IF_ERROR(all(c, "model", 1));
  });
  REQUIRE(!status.ok());
  CHECK(status.error().message().find("bad shard") != std::string::npos);
}

TEST_CASE("sizes that disagree are an error") {
  const Status status = run_workers({{{"x", 2}}}, [](runtime::Collectives& c) -> Status {
    std::array<std::byte, 8> buffer{};
    const std::vector<int64_t> peer{1 - c.rank()};
    const std::vector<std::span<const std::byte>> send{std::span(buffer).first(c.rank() == 0 ? 4 : 8)};
    std::array<std::byte, 8> in{};
    return c.exchange(peer, send, std::vector<std::span<std::byte>>{in});
  });
  REQUIRE(!status.ok());
  CHECK(status.error().message().find("expects 8 bytes from worker 0, which sent 4") != std::string::npos);
}

}  // namespace
}  // namespace ostro::dist
