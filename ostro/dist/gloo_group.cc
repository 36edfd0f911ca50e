#include "ostro/dist/gloo_group.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "ostro/base/check.h"
#include "ostro/dist/gloo_wire.h"
#include "ostro/dist/peer_sockets.h"

namespace ostro::dist {
namespace {

// In every exchange each pair swaps one frame: the size of the message, and the message itself if it fits. A
// longer message is sent at the same time as its frame, but only a receiver of its size can take it
// (body_slot): when sizes disagree, the frame shows it and the body is not delivered.
struct Frame {
  uint64_t size = 0;
  std::array<std::byte, 248> small{};
};
constexpr uint64_t kLeaves = std::numeric_limits<uint64_t>::max();  // as a size: the sender leaves the group
constexpr std::chrono::seconds kLeaveTimeout{2};

class GlooGroup final : public Group {
 public:
  GlooGroup(ir::Mesh mesh, int64_t rank, std::unique_ptr<GlooWire> wire)
      : mesh_(std::move(mesh)),
        rank_(rank),
        wire_(std::move(wire)),
        exchanges_(static_cast<size_t>(mesh_.size())) {}

  ~GlooGroup() override {
    if (!fault_) leave();
    wire_->close();
  }

  int64_t rank() const override { return rank_; }
  int64_t size() const override { return mesh_.size(); }
  int64_t bytes_sent() const override { return bytes_sent_; }
  std::vector<int64_t> peers(std::string_view mesh_axes) const override {
    return mesh_.peers(rank_, mesh_axes);
  }
  void abort(const std::string& reason) override { wire_->abort(reason); }
  void wait_for_ever(bool on) override { wait_for_ever_ = on; }

  Status exchange(std::span<const int64_t> peers, std::span<const std::span<const std::byte>> send,
                  std::span<const std::span<std::byte>> receive) override {
    ASSIGN_OR_RETURN(const int64_t ticket, start(peers, send, receive));
    return wait(ticket);
  }

  Result<int64_t> start(std::span<const int64_t> peers, std::span<const std::span<const std::byte>> send,
                        std::span<const std::span<std::byte>> receive) override {
    if (fault_) return *fault_;
    auto made = try_start(peers, send, receive);
    if (!made.ok()) return fail(made.error());
    open_.emplace(++tickets_, std::move(*made));
    return tickets_;
  }

  Status wait(int64_t ticket) override {
    if (fault_) return *fault_;
    const auto it = open_.find(ticket);
    OSTRO_CHECK(it != open_.end(), "no exchange has the ticket {}", ticket);
    const Status status = finish(*it->second);
    if (!status.ok()) return fail(status.error());
    open_.erase(it);
    return status;
  }

 private:
  // An exchange that has been started. The spans' memory is the caller's.
  struct Exchange {
    std::vector<int64_t> peers;
    std::vector<std::span<const std::byte>> send;
    std::vector<std::span<std::byte>> receive;
    std::vector<Frame> out, in;
    int64_t bytes = 0;
    std::shared_ptr<Flight> flight;
  };

  // After an error it is unknown which of the messages arrived, so the group cannot be used any more. Closing
  // it notifies the peers.
  Error fail(const Error& error) {
    fault_ = error;
    wire_->close();
    open_.clear();
    return error;
  }

  // The next slot between this worker and the peer. Both count alike, so messages of a pair keep their order.
  uint64_t next(int64_t peer) { return exchanges_[static_cast<size_t>(peer)]++; }

  Status check_arguments(const Exchange& e) const {
    if (e.send.size() != e.peers.size() || e.receive.size() != e.peers.size())
      return invalid_argument(fmt::format("exchange with {} peers, {} to send, {} to receive", e.peers.size(),
                                          e.send.size(), e.receive.size()));
    for (size_t i = 0; i < e.peers.size(); ++i) {
      if (e.peers[i] < 0 || e.peers[i] >= size())
        return invalid_argument(fmt::format("exchange with worker {} of {}", e.peers[i], size()));
      if (const size_t most = std::max(e.send[i].size(), e.receive[i].size()); most > kMaxBody)
        return invalid_argument(fmt::format("a message of {} bytes, {} at most", most, kMaxBody));
    }
    return Status();
  }

  // Starts the frames of all peers first and the bodies after them, as one flight whose heads are the frames.
  // A message to this worker itself is copied in finish().
  Result<std::unique_ptr<Exchange>> try_start(std::span<const int64_t> peers,
                                              std::span<const std::span<const std::byte>> send,
                                              std::span<const std::span<std::byte>> receive) {
    auto made = std::make_unique<Exchange>();
    Exchange& e = *made;
    e.peers.assign(peers.begin(), peers.end());
    e.send.assign(send.begin(), send.end());
    e.receive.assign(receive.begin(), receive.end());
    RETURN_IF_ERROR(check_arguments(e));
    e.out.resize(peers.size());
    e.in.resize(peers.size());
    std::vector<Transfer> transfers;  // the frames, then the bodies
    std::vector<Transfer> bodies;
    for (size_t i = 0; i < peers.size(); ++i) {
      if (peers[i] == rank_) continue;
      const uint64_t number = next(peers[i]);
      Frame &out = e.out[i], &in = e.in[i];
      out.size = send[i].size();
      if (!send[i].empty() && send[i].size() <= out.small.size())
        std::memcpy(out.small.data(), send[i].data(), send[i].size());
      transfers.push_back({peers[i], slot_of(SlotKind::kFrame, number), std::as_bytes(std::span(&out, 1)),
                           std::as_writable_bytes(std::span(&in, 1))});
      if (send[i].size() > out.small.size())
        bodies.push_back({peers[i], body_slot(number, send[i].size()), send[i], {}});
      if (receive[i].size() > in.small.size())
        bodies.push_back({peers[i], body_slot(number, receive[i].size()), {}, receive[i]});
      e.bytes += static_cast<int64_t>(send[i].size());
    }
    const size_t heads = transfers.size();
    transfers.insert(transfers.end(), bodies.begin(), bodies.end());
    e.flight = wire_->start(transfers, heads);
    return made;
  }

  Status finish(Exchange& e) {
    Status wrong;  // the error that the frames show
    const Status moved = wire_->land(*e.flight, !wait_for_ever_, [&] {
      for (size_t i = 0; i < e.peers.size() && wrong.ok(); ++i)
        wrong =
            arrived(e.peers[i], e.peers[i] == rank_ ? e.send[i].size() : e.in[i].size, e.receive[i].size());
      return wrong;
    });
    RETURN_IF_ERROR(wrong);
    if (!moved.ok()) return moved.error().with_context(fmt::format("worker {}", rank_));
    for (size_t i = 0; i < e.peers.size(); ++i) {
      const size_t size = e.receive[i].size();
      if (size > 0 && e.peers[i] == rank_)
        std::memmove(e.receive[i].data(), e.send[i].data(), size);
      else if (size > 0 && size <= e.in[i].small.size())
        std::memcpy(e.receive[i].data(), e.in[i].small.data(), size);
    }
    bytes_sent_ += e.bytes;
    return Status();
  }

  // Checks the size in a peer's frame against the expected one.
  Status arrived(int64_t peer, uint64_t size, size_t expected) const {
    if (peer != rank_ && size == kLeaves)
      return io_error(fmt::format("worker {}: lost worker {}: it left the group", rank_, peer));
    if (size != expected)
      return invalid_argument(fmt::format("worker {} expects {} bytes from worker {}, which sent {}", rank_,
                                          expected, peer, size));
    return Status();
  }

  // Bytes that a connection has not delivered when it is closed are lost. So this sends a last frame to every
  // peer and waits for theirs: a peer's next frame proves that it has all earlier messages. A peer that does
  // not send one within the timeout has at least had the time to read them.
  void leave() {
    std::vector<Frame> out(exchanges_.size());
    std::vector<Frame> in(exchanges_.size());
    const std::byte byte{};
    std::vector<Transfer> words;
    for (int64_t peer = 0; peer < size(); ++peer) {
      if (peer == rank_) continue;
      const auto i = static_cast<size_t>(peer);
      out[i].size = kLeaves;
      // The peer has awaited this byte from the start: after it, the end of the connection is no fault
      // (gloo_wire.cc).
      words.push_back({peer, slot_of(SlotKind::kWatch, 0), std::span(&byte, 1), {}});
      words.push_back({peer, slot_of(SlotKind::kFrame, next(peer)), std::as_bytes(std::span(&out[i], 1)),
                       std::as_writable_bytes(std::span(&in[i], 1))});
    }
    wire_->move_last(words, kLeaveTimeout);
  }

  const ir::Mesh mesh_;
  const int64_t rank_;
  bool wait_for_ever_ = false;
  const std::unique_ptr<GlooWire> wire_;
  std::vector<uint64_t> exchanges_;                    // with each worker so far
  std::map<int64_t, std::unique_ptr<Exchange>> open_;  // by ticket: those that were not waited for yet
  int64_t tickets_ = 0;
  int64_t bytes_sent_ = 0;
  std::optional<Error> fault_;  // the first error
};

}  // namespace

Result<std::unique_ptr<Group>> connect_gloo(const ir::Mesh& mesh, int64_t rank, KeyValue& store,
                                            const std::string& prefix, const GlooOptions& options) {
  if (rank < 0 || rank >= mesh.size())
    return invalid_argument(fmt::format("worker {} of {} workers", rank, mesh.size()));
  // Gloo writes to sockets in a way that sends this signal when the peer is gone, and the signal ends the
  // process. Ignored, the write fails and we get an error.
  static std::once_flag once;
  std::call_once(once, [] { std::signal(SIGPIPE, SIG_IGN); });

  const std::string context = fmt::format("worker {}", rank);
  PeerOptions peers{rank, mesh.size(), prefix, options.reach, options.secret, nullptr, options.epoch};
  if (options.tls) {
    auto certificates = tls::Certificates::of_job(options.secret);
    if (!certificates.ok()) return certificates.error().with_context(context);
    peers.certificates = std::move(*certificates);
  }
  peers.meet_timeout = options.meet_timeout;
  peers.connect_timeout = options.connect_timeout;
  peers.given_up = options.given_up;
  auto sockets = connect_peers(peers, store);
  if (!sockets.ok()) return sockets.error().with_context(context);
  for (const PeerSocket& peer : *sockets)
    if (peer.open()) break_when_silent(peer.socket, options.link_timeout);
  auto wire = GlooWire::make(rank, std::move(*sockets), options.exchange_limit);
  if (!wire.ok()) return wire.error().with_context(context);
  std::unique_ptr<Group> group = std::make_unique<GlooGroup>(mesh, rank, std::move(*wire));
  return group;
}

}  // namespace ostro::dist
