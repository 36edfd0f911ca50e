// Late: a transport that delivers what was started as late as it may, for tests of exchanges that go on while
// other work is done.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "ostro/runtime/collectives.h"

namespace ostro::spmd {

enum class Delivery { kLate, kNever };

// Delivers at wait(). Until then what is received is rubbish, and what is sent must not change.
class Late final : public runtime::Collectives {
 public:
  Late(runtime::Collectives& inner, Delivery delivery) : inner_(inner), delivery_(delivery) {}

  int64_t rank() const override { return inner_.rank(); }
  int64_t size() const override { return inner_.size(); }
  std::vector<int64_t> peers(std::string_view axes) const override { return inner_.peers(axes); }
  int64_t bytes_sent() const override { return inner_.bytes_sent(); }
  void abort(const std::string& reason) override { inner_.abort(reason); }
  Status exchange(std::span<const int64_t> peers, std::span<const std::span<const std::byte>> send,
                  std::span<const std::span<std::byte>> receive) override {
    return inner_.exchange(peers, send, receive);
  }
  Result<int64_t> start(std::span<const int64_t> peers, std::span<const std::span<const std::byte>> send,
                        std::span<const std::span<std::byte>> receive) override {
    Open open;
    for (const auto s : send) open.sent.emplace_back(s, std::vector<std::byte>(s.begin(), s.end()));
    for (const auto r : receive) {
      std::fill(r.begin(), r.end(), std::byte{0x5a});
      open.received.emplace_back(r, std::vector<std::byte>(r.size()));
    }
    std::vector<std::span<std::byte>> into;
    for (auto& [to, bytes] : open.received) into.emplace_back(bytes);
    ASSIGN_OR_RETURN(const int64_t ticket, inner_.start(peers, send, into));
    open_.emplace(ticket, std::move(open));
    most = std::max(most, open_.size());
    return ticket;
  }
  Status wait(int64_t ticket) override {
    RETURN_IF_ERROR(inner_.wait(ticket));
    const Open open = std::move(open_.extract(ticket).mapped());
    for (const auto& [span, bytes] : open.sent)
      if (!std::equal(span.begin(), span.end(), bytes.begin()))
        return invalid_argument("what an exchange sends was overwritten");
    for (const auto& [to, bytes] : open.received)
      if (!bytes.empty() && delivery_ == Delivery::kLate) std::memcpy(to.data(), bytes.data(), bytes.size());
    return Status();
  }

  size_t most = 0;  // exchanges on their way at a time

 private:
  struct Open {
    std::vector<std::pair<std::span<const std::byte>, std::vector<std::byte>>> sent;
    std::vector<std::pair<std::span<std::byte>, std::vector<std::byte>>> received;
  };
  runtime::Collectives& inner_;
  const Delivery delivery_;
  std::map<int64_t, Open> open_;
};

}  // namespace ostro::spmd
