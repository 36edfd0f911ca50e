#include "ostro/dist/checked_group.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "ostro/base/check.h"
#include "ostro/numerics/fingerprint.h"

namespace ostro::dist {
namespace {

using numerics::Fingerprint;

// An exchange with the fingerprints behind its messages. It must not move while it is on its way.
struct CheckedExchange {
  std::vector<int64_t> peers;  // first those of the messages, then those of the fingerprints
  std::vector<std::span<const std::byte>> send;
  std::vector<std::span<std::byte>> receive;
  std::vector<Fingerprint> sent, told;  // by message

  CheckedExchange(int64_t self, std::span<const int64_t> to, std::span<const std::span<const std::byte>> out,
                  std::span<const std::span<std::byte>> in)
      : peers(to.begin(), to.end()),
        send(out.begin(), out.end()),
        receive(in.begin(), in.end()),
        sent(to.size()),
        told(to.size()) {
    for (size_t i = 0; i < to.size(); ++i) {
      if (to[i] == self || (out[i].empty() && in[i].empty())) continue;
      sent[i] = numerics::fingerprint_bytes(out[i]);
      peers.push_back(to[i]);
      send.push_back(out[i].empty() ? std::span<const std::byte>() : std::as_bytes(std::span(&sent[i], 1)));
      receive.push_back(in[i].empty() ? std::span<std::byte>()
                                      : std::as_writable_bytes(std::span(&told[i], 1)));
    }
  }

  Status compare(int64_t self) const {
    for (size_t i = 0; i < told.size(); ++i) {
      if (peers[i] == self || receive[i].empty()) continue;
      const Fingerprint here = numerics::fingerprint_bytes(receive[i]);
      if (here == told[i]) continue;
      return io_error(fmt::format(
          "{} bytes from worker {} differ where they arrive, at worker {}: their fingerprint was "
          "{:016x}{:016x} and is {:016x}{:016x}; memory or a network card of one of the two, or the link, is "
          "at fault",
          receive[i].size(), peers[i], self, told[i].lane[0], told[i].lane[1], here.lane[0], here.lane[1]));
    }
    return Status();
  }
};

class CheckedGroup final : public Group {
 public:
  CheckedGroup(std::unique_ptr<Group> group, MessageDiffers differs)
      : differs_(std::move(differs)), group_(std::move(group)) {}

  int64_t rank() const override { return group_->rank(); }
  int64_t size() const override { return group_->size(); }
  int64_t bytes_sent() const override { return group_->bytes_sent(); }
  std::vector<int64_t> peers(std::string_view axes) const override { return group_->peers(axes); }

  Status exchange(std::span<const int64_t> peers, std::span<const std::span<const std::byte>> send,
                  std::span<const std::span<std::byte>> receive) override {
    RETURN_IF_ERROR(check_sizes(peers.size(), send.size(), receive.size()));
    const CheckedExchange e(rank(), peers, send, receive);
    RETURN_IF_ERROR(moved(group_->exchange(e.peers, e.send, e.receive)));
    return compare(e);
  }

  Result<int64_t> start(std::span<const int64_t> peers, std::span<const std::span<const std::byte>> send,
                        std::span<const std::span<std::byte>> receive) override {
    RETURN_IF_ERROR(check_sizes(peers.size(), send.size(), receive.size()));
    auto e = std::make_unique<CheckedExchange>(rank(), peers, send, receive);
    ASSIGN_OR_RETURN(const int64_t inner, group_->start(e->peers, e->send, e->receive));
    open_.emplace(++tickets_, std::pair(inner, std::move(e)));
    return tickets_;
  }

  Status wait(int64_t ticket) override {
    const auto it = open_.find(ticket);
    OSTRO_CHECK(it != open_.end(), "no exchange has the ticket {}", ticket);
    const auto [inner, e] = std::move(it->second);
    open_.erase(it);
    RETURN_IF_ERROR(moved(group_->wait(inner)));
    return compare(*e);
  }

  void abort(const std::string& reason) override { group_->abort(reason); }
  void wait_for_ever(bool on) override { group_->wait_for_ever(on); }

 private:
  static Status check_sizes(size_t peers, size_t send, size_t receive) {
    if (send == peers && receive == peers) return Status();
    return invalid_argument(
        fmt::format("exchange with {} peers, {} to send, {} to receive", peers, send, receive));
  }

  Status compare(const CheckedExchange& e) {
    const Status same = e.compare(rank());
    if (!same.ok()) end(same.error().message(), false);
    return same;
  }

  // A frame that says another size than is expected: a bit of it may have flipped. The other causes of this
  // error are mistakes of the caller, which do not pass.
  Status moved(const Status& done) {
    if (done.ok() || done.error().code() != ErrorCode::kInvalidArgument) return done;
    const std::string why = done.error().message();
    return end(why, true) ? Status(io_error(why)) : done;
  }

  bool end(const std::string& why, bool sizes) {
    const bool passes = !differs_ || differs_(why, sizes);
    group_->abort(why);
    return passes;
  }

  std::map<int64_t, std::pair<int64_t, std::unique_ptr<CheckedExchange>>> open_;  // by ticket
  int64_t tickets_ = 0;
  const MessageDiffers differs_;
  std::unique_ptr<Group> group_;  // the first to end: it may still write to what is in open_
};

}  // namespace

std::unique_ptr<Group> make_checked_group(std::unique_ptr<Group> group, MessageDiffers differs) {
  return std::make_unique<CheckedGroup>(std::move(group), std::move(differs));
}

}  // namespace ostro::dist
