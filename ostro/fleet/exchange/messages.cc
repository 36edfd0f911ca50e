#include "ostro/fleet/exchange/messages.h"

#include <cstring>

#include "ostro/base/check.h"

namespace ostro::fleet {
namespace {

Result<std::vector<Bytes>> exchange_spans(runtime::Collectives& c, const std::vector<int64_t>& peers,
                                          const std::vector<std::span<const std::byte>>& send,
                                          const std::vector<size_t>& expected) {
  std::vector<Bytes> received;
  for (const size_t size : expected) received.emplace_back(size);
  std::vector<std::span<std::byte>> receive;
  for (Bytes& b : received) receive.emplace_back(b);
  RETURN_IF_ERROR(c.exchange(peers, send, receive));
  return received;
}

}  // namespace

void append(Bytes& to, std::span<const std::byte> bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

void Reader::read(std::span<std::byte> out) {
  OSTRO_CHECK(at_ + out.size() <= bytes_.size(), "a message of {} bytes is too short", bytes_.size());
  if (!out.empty()) std::memcpy(out.data(), bytes_.data() + at_, out.size());
  at_ += out.size();
}

Result<std::vector<Bytes>> exchange(runtime::Collectives& c, const std::vector<int64_t>& peers,
                                    const std::vector<Bytes>& messages, const std::vector<size_t>& expected) {
  return exchange_spans(c, peers, {messages.begin(), messages.end()}, expected);
}

Result<std::vector<Bytes>> exchange(runtime::Collectives& c, const std::vector<int64_t>& peers,
                                    const Bytes& message, const std::vector<size_t>& expected) {
  return exchange_spans(c, peers, std::vector<std::span<const std::byte>>(peers.size(), message), expected);
}

Status send_and_receive(runtime::Collectives& c, int64_t to, std::span<const std::byte> send, int64_t from,
                        std::span<std::byte> receive) {
  const auto nothing = std::span<std::byte>();
  if (to == from) return c.exchange(std::vector{to}, std::vector{send}, std::vector{receive});
  return c.exchange(std::vector{to, from}, std::vector{send, std::span<const std::byte>()},
                    std::vector{nothing, receive});
}

}  // namespace ostro::fleet
