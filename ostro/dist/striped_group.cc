#include "ostro/dist/striped_group.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "ostro/base/check.h"

namespace ostro::dist {
namespace {

// Piece i of n of a message; the pieces of both ends follow from its size alone.
template <typename Byte>
std::span<Byte> piece(std::span<Byte> message, size_t i, size_t n) {
  const size_t begin = message.size() / n * i + std::min(i, message.size() % n);
  return message.subspan(begin, message.size() / n + (i < message.size() % n ? 1 : 0));
}

class StripedGroup final : public Group {
 public:
  StripedGroup(std::vector<std::unique_ptr<Group>> groups, std::vector<bool> striped, size_t least)
      : groups_(std::move(groups)), striped_(std::move(striped)), least_(least) {}

  int64_t rank() const override { return groups_[0]->rank(); }
  int64_t size() const override { return groups_[0]->size(); }
  int64_t bytes_sent() const override {
    int64_t bytes = 0;
    for (const auto& group : groups_) bytes += group->bytes_sent();
    return bytes;
  }
  std::vector<int64_t> peers(std::string_view axes) const override { return groups_[0]->peers(axes); }
  void abort(const std::string& reason) override {
    for (const auto& group : groups_) group->abort(reason);
  }
  void wait_for_ever(bool on) override {
    for (const auto& group : groups_) group->wait_for_ever(on);
  }

  Status exchange(std::span<const int64_t> peers, std::span<const std::span<const std::byte>> send,
                  std::span<const std::span<std::byte>> receive) override {
    ASSIGN_OR_RETURN(const int64_t ticket, start(peers, send, receive));
    return wait(ticket);
  }

  Result<int64_t> start(std::span<const int64_t> peers, std::span<const std::span<const std::byte>> send,
                        std::span<const std::span<std::byte>> receive) override {
    if (send.size() != peers.size() || receive.size() != peers.size())
      return invalid_argument(fmt::format("exchange with {} peers, {} to send, {} to receive", peers.size(),
                                          send.size(), receive.size()));
    std::vector<Messages> by_group(groups_.size());
    for (size_t i = 0; i < peers.size(); ++i) {
      const bool cut = is_cut(peers[i], send[i].size(), receive[i].size());
      const size_t pieces = cut ? groups_.size() : 1;
      for (size_t g = 0; g < pieces; ++g) {
        by_group[g].peers.push_back(peers[i]);
        by_group[g].send.push_back(piece(send[i], g, pieces));
        by_group[g].receive.push_back(piece(receive[i], g, pieces));
      }
    }
    std::vector<Part> parts;
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (g > 0 && by_group[g].peers.empty()) continue;
      const auto ticket = groups_[g]->start(by_group[g].peers, by_group[g].send, by_group[g].receive);
      if (!ticket.ok()) {
        (void)end(parts, ticket.error());
        return ticket.error();
      }
      parts.push_back({g, *ticket});
    }
    open_.emplace(++tickets_, std::move(parts));
    return tickets_;
  }

  Status wait(int64_t ticket) override {
    const auto it = open_.find(ticket);
    OSTRO_CHECK(it != open_.end(), "no exchange has the ticket {}", ticket);
    const std::vector<Part> parts = std::move(it->second);
    open_.erase(it);
    return end(parts, Status());
  }

 private:
  struct Messages {
    std::vector<int64_t> peers;
    std::vector<std::span<const std::byte>> send;
    std::vector<std::span<std::byte>> receive;
  };
  struct Part {
    size_t group;
    int64_t ticket;
  };

  // Both ends know both sizes.
  bool is_cut(int64_t peer, size_t send, size_t receive) const {
    return groups_.size() > 1 && peer != rank() && peer >= 0 &&
           peer < static_cast<int64_t>(striped_.size()) && striped_[static_cast<size_t>(peer)] &&
           std::max(send, receive) >= least_;
  }

  // Waits for all parts even if one fails: their memory is the caller's again.
  Status end(const std::vector<Part>& parts, Status first) {
    if (!first.ok()) abort(first.error().message());
    for (const Part& part : parts) {
      const Status status = groups_[part.group]->wait(part.ticket);
      if (status.ok() || !first.ok()) continue;
      first = status;
      abort(first.error().message());
    }
    return first;
  }

  const std::vector<std::unique_ptr<Group>> groups_;
  const std::vector<bool> striped_;
  const size_t least_;
  std::map<int64_t, std::vector<Part>> open_;  // by ticket
  int64_t tickets_ = 0;
};

}  // namespace

std::unique_ptr<Group> make_striped_group(std::vector<std::unique_ptr<Group>> groups,
                                          std::vector<bool> striped, size_t least) {
  OSTRO_CHECK(!groups.empty(), "a striped group of no groups");
  if (groups.size() == 1) return std::move(groups[0]);
  return std::make_unique<StripedGroup>(std::move(groups), std::move(striped), least);
}

}  // namespace ostro::dist
