#include "ostro/fleet/exchange/gather_all.h"

#include <algorithm>
#include <iterator>

#include "ostro/base/check.h"

namespace ostro::fleet {
namespace {

constexpr size_t kFewWorkers = 8;

}  // namespace

// After the round with `distance` 2^r a worker has the messages of the ranks rank, ..., rank + 2^(r+1) - 1,
// counted around: those that it had, and as many that the worker 2^r above it had. The last round moves only
// what is missing.
Result<std::vector<Bytes>> gather_all(runtime::Collectives& c, const Bytes& mine,
                                      const std::vector<size_t>& sizes) {
  const int64_t workers = c.size(), self = c.rank();
  OSTRO_CHECK(static_cast<int64_t>(sizes.size()) == workers, "{} sizes for {} workers", sizes.size(),
              workers);
  OSTRO_CHECK(sizes[static_cast<size_t>(self)] == mine.size(), "a message of {} bytes, not {}", mine.size(),
              sizes[static_cast<size_t>(self)]);
  const auto around = [&](int64_t rank) { return static_cast<size_t>((rank + workers) % workers); };
  std::vector<Bytes> all(sizes.size());
  all[around(self)] = mine;
  for (int64_t distance = 1; distance < workers; distance *= 2) {
    const int64_t count = std::min(distance, workers - distance);
    Bytes out, in;
    size_t expected = 0;
    for (int64_t i = 0; i < count; ++i) {
      append(out, all[around(self + i)]);
      expected += sizes[around(self + distance + i)];
    }
    in.resize(expected);
    RETURN_IF_ERROR(send_and_receive(c, static_cast<int64_t>(around(self - distance)), out,
                                     static_cast<int64_t>(around(self + distance)), in));
    Reader reader(in);
    for (int64_t i = 0; i < count; ++i) {
      const size_t rank = around(self + distance + i);
      all[rank].resize(sizes[rank]);
      reader.read(all[rank]);
    }
  }
  return all;
}

Result<std::vector<Bytes>> gather_all(runtime::Collectives& c, const Bytes& mine) {
  return gather_all(c, mine, std::vector<size_t>(static_cast<size_t>(c.size()), mine.size()));
}

std::vector<GatherRound> gather_rounds(const std::vector<int64_t>& sizes, int64_t rank) {
  const int64_t workers = std::ssize(sizes);
  std::vector<GatherRound> out;
  for (int64_t distance = 1; distance < workers; distance *= 2) {
    GatherRound round{(rank - distance + workers) % workers, 0};
    for (int64_t i = 0; i < std::min(distance, workers - distance); ++i)
      round.bytes += sizes[static_cast<size_t>((rank + i) % workers)];
    out.push_back(round);
  }
  return out;
}

bool in_rounds(size_t peers, int64_t workers) {
  return peers > kFewWorkers && static_cast<int64_t>(peers) == workers;
}

Status barrier(runtime::Collectives& c) {
  const int64_t workers = c.size(), self = c.rank();
  const std::byte here{1};
  for (const int64_t receiver : barrier_receivers(workers, self)) {
    std::byte there{0};
    RETURN_IF_ERROR(send_and_receive(c, receiver, std::span(&here, 1),
                                     (2 * self - receiver + workers) % workers, std::span(&there, 1)));
  }
  return Status();
}

std::vector<int64_t> barrier_receivers(int64_t workers, int64_t rank) {
  std::vector<int64_t> out;
  for (int64_t distance = 1; distance < workers; distance *= 2)
    out.push_back((rank - distance + workers) % workers);
  return out;
}

}  // namespace ostro::fleet
