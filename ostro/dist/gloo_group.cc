#include "ostro/dist/gloo_group.h"

#include <array>
#include <csignal>
#include <cstring>
#include <limits>
#include <mutex>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "ostro/dist/gloo_wire.h"
#include "ostro/dist/pair_proof.h"

namespace ostro::dist {
namespace {

// In every exchange each pair first swaps one frame: how long the message is, and the message itself if it
// fits. Gloo would end the process over a message that is longer than its receiver expects, so nothing is
// sent unannounced.
struct Frame {
  uint64_t size = 0;
  std::array<std::byte, 248> small{};
};
constexpr uint64_t kLeaves = std::numeric_limits<uint64_t>::max();  // as a size: the sender leaves the group
constexpr std::chrono::seconds kLeaveTimeout{2};
constexpr std::chrono::hours kForEver{24 * 365};

class GlooGroup final : public Group {
 public:
  GlooGroup(ir::Mesh mesh, int64_t rank, std::chrono::milliseconds timeout, std::unique_ptr<GlooWire> wire)
      : mesh_(std::move(mesh)),
        rank_(rank),
        timeout_(timeout),
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
    if (fault_) return *fault_;
    const Status status = try_exchange(peers, send, receive);
    if (status.ok()) return status;
    // Nobody can know which of the messages arrived, so the group is of no use any more. Closing it tells the
    // peers.
    fault_ = status.error();
    wire_->close();
    return status;
  }

 private:
  // The next slot between this worker and the peer. Both count alike, so messages of a pair keep their order.
  uint64_t next(int64_t peer) { return exchanges_[static_cast<size_t>(peer)]++; }

  Error lost(const Error& error) const { return error.with_context(fmt::format("worker {}", rank_)); }

  Error wrong_size(size_t expected, int64_t peer, uint64_t sent) const {
    return invalid_argument(
        fmt::format("worker {} expects {} bytes from worker {}, which sent {}", rank_, expected, peer, sent));
  }

  Status try_exchange(std::span<const int64_t> peers, std::span<const std::span<const std::byte>> send,
                      std::span<const std::span<std::byte>> receive) {
    if (send.size() != peers.size() || receive.size() != peers.size())
      return invalid_argument(fmt::format("exchange with {} peers, {} to send, {} to receive", peers.size(),
                                          send.size(), receive.size()));
    for (const int64_t peer : peers)
      if (peer < 0 || peer >= size())
        return invalid_argument(fmt::format("exchange with worker {} of {}", peer, size()));
    const Deadline deadline =
        Deadline::clock::now() + (wait_for_ever_ ? std::chrono::milliseconds(kForEver) : timeout_);
    std::vector<Frame> out(peers.size());
    std::vector<Frame> in(peers.size());
    std::vector<Transfer> frames;
    std::vector<Transfer> bodies;
    int64_t sent = 0;
    for (size_t i = 0; i < peers.size(); ++i) {
      if (peers[i] == rank_) continue;
      const uint64_t number = next(peers[i]);
      out[i].size = send[i].size();
      if (!send[i].empty() && send[i].size() <= out[i].small.size())
        std::memcpy(out[i].small.data(), send[i].data(), send[i].size());
      frames.push_back({peers[i], slot_of(SlotKind::kFrame, number), std::as_bytes(std::span(&out[i], 1)),
                        std::as_writable_bytes(std::span(&in[i], 1))});
      Transfer body{peers[i], slot_of(SlotKind::kBody, number), {}, {}};
      if (send[i].size() > out[i].small.size()) body.send = send[i];
      if (receive[i].size() > in[i].small.size()) body.receive = receive[i];
      if (!body.send.empty() || !body.receive.empty()) bodies.push_back(body);
      sent += static_cast<int64_t>(send[i].size());
    }
    if (const Status status = wire_->move(frames, deadline); !status.ok()) return lost(status.error());
    for (size_t i = 0; i < peers.size(); ++i) {
      const bool self = peers[i] == rank_;
      if (!self && in[i].size == kLeaves)
        return io_error(fmt::format("worker {}: lost worker {}: it left the group", rank_, peers[i]));
      const uint64_t size = self ? send[i].size() : in[i].size;
      if (size != receive[i].size()) return wrong_size(receive[i].size(), peers[i], size);
      if (size == 0) continue;
      if (self)
        std::memmove(receive[i].data(), send[i].data(), size);
      else if (size <= in[i].small.size())
        std::memcpy(receive[i].data(), in[i].small.data(), size);
    }
    if (!bodies.empty())
      if (const Status status = wire_->move(bodies, deadline); !status.ok()) return lost(status.error());
    bytes_sent_ += sent;
    return Status();
  }

  // What a connection has not delivered when it is closed is lost. A peer's next frame proves that it has all
  // earlier messages; a peer that is not as far within the time has at least had the time to read them.
  void leave() {
    std::vector<Frame> out(exchanges_.size());
    std::vector<Frame> in(exchanges_.size());
    const std::byte byte{};
    std::vector<Transfer> words;
    for (int64_t peer = 0; peer < size(); ++peer) {
      if (peer == rank_) continue;
      const auto i = static_cast<size_t>(peer);
      out[i].size = kLeaves;
      // The peer awaits this byte from the start: that the connection ends after it is no fault
      // (gloo_wire.cc).
      words.push_back({peer, slot_of(SlotKind::kWatch, 0), std::span(&byte, 1), {}});
      words.push_back({peer, slot_of(SlotKind::kFrame, next(peer)), std::as_bytes(std::span(&out[i], 1)),
                       std::as_writable_bytes(std::span(&in[i], 1))});
    }
    wire_->move_last(words, Deadline::clock::now() + kLeaveTimeout);
  }

  const ir::Mesh mesh_;
  const int64_t rank_;
  const std::chrono::milliseconds timeout_;
  bool wait_for_ever_ = false;
  const std::unique_ptr<GlooWire> wire_;
  std::vector<uint64_t> exchanges_;  // with each worker so far
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

  const Deadline deadline = Deadline::clock::now() + options.connect_timeout;
  const std::string context = fmt::format("worker {}", rank);
  auto wire = GlooWire::connect(rank, mesh.size(), store, prefix, options.bind, deadline);
  if (!wire.ok()) return wire.error().with_context(context);
  const Status proved = prove_pairs(**wire, rank, mesh.size(), options.secret, prefix, deadline);
  if (!proved.ok()) return proved.error().with_context(context);
  std::unique_ptr<Group> group =
      std::make_unique<GlooGroup>(mesh, rank, options.exchange_timeout, std::move(*wire));
  return group;
}

}  // namespace ostro::dist
