// Gloo 0.5 as Debian has it. Behaviour that its documentation does not state, found by trying and reading:
// - Any wait that runs out of time closes all connections of the context. So no wait may be a short look.
// - Closing the connections wakes no wait of another thread, abortWait... does.
// - A message that is half read when its connection breaks is not notified: its wait sleeps until its
// timeout. Only messages that have not begun are notified. Hence `watch_` below.
// - Its thread must not find a connection locked by another thread. Hence gloo_loop.h.
// - Closing a connection throws away bytes that were sent and not yet acknowledged.
#include "ostro/dist/gloo_wire.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gloo/transport/unbound_buffer.h>

#include "ostro/dist/gloo_loop.h"
#include "ostro/dist/gloo_pairs.h"
#include "ostro/dist/pump.h"

namespace ostro::dist {
namespace {

using std::chrono::milliseconds;
using GlooBuffer = gloo::transport::UnboundBuffer;

constexpr std::chrono::hours kForEver{24 * 365};

// Gloo's messages begin with a line of its own source, in brackets, and end with an address, which is not the
// peer's (gloo_pairs.h).
std::string reason_of(const std::exception& e) {
  std::string text = e.what();
  const size_t end = text.starts_with('[') ? text.find("] ") : std::string::npos;
  if (end != std::string::npos) text.erase(0, end + 2);
  return text.substr(0, text.find(" ["));
}

// A message that is sent or received.
struct Pending {
  std::unique_ptr<GlooBuffer> buffer;
  int64_t peer;
  uint64_t slot;
  bool receives;
  bool head;
  bool done = false;
};

struct Messages final : Flight {
  std::vector<Pending> pending;  // receivers first: a message that has arrived is then delivered at once
  std::mutex mutex;              // guards what follows
  std::vector<std::optional<std::string>> refused;  // the reason why a message could not be started
};

class Wire final : public GlooWire {
 public:
  Wire(GlooPairs pairs, std::unique_ptr<GlooLoop> loop, std::unique_ptr<Pump> pump, WireLimit limit)
      : context_(std::move(pairs.context)),
        loop_(std::move(loop)),
        pump_(std::move(pump)),
        rank_(context_->rank),
        size_(context_->size),
        descriptors_(std::move(pairs.descriptors)),
        limit_(std::move(limit)),
        watched_(descriptors_.size()) {}
  ~Wire() override { close(); }

  // Throws. Awaits one byte from every peer, which the peer sends only before it leaves. So when a connection
  // breaks there is always a message on it that has not begun, and Gloo notifies the thread that waits for it
  // at once.
  void start_watch() {
    watch_ = context_->createUnboundBuffer(watched_.data(), watched_.size());
    for (int64_t peer = 0; peer < size_; ++peer)
      if (peer != rank_)
        watch_->recv(static_cast<int>(peer), slot_of(SlotKind::kWatch, 0), static_cast<size_t>(peer), 1);
    watcher_ = std::thread([this] { watch(); });
    if (limit_) clock_ = std::thread([this] { watch_clock(); });
  }

  std::shared_ptr<Flight> start(std::span<const Transfer> transfers, size_t heads) override {
    auto flight = std::make_shared<Messages>();
    if (!context_) return flight;
    for (const bool receives : {true, false})
      for (size_t i = 0; i < transfers.size(); ++i) {
        const Transfer& t = transfers[i];
        void* data = receives ? t.receive.data() : const_cast<std::byte*>(t.send.data());
        const size_t size = receives ? t.receive.size() : t.send.size();
        if (size > 0)
          flight->pending.push_back(
              {context_->createUnboundBuffer(data, size), t.peer, t.slot, receives, i < heads, false});
      }
    flight->refused.resize(flight->pending.size());
    {
      const std::lock_guard lock(mutex_);
      flights_.push_back(flight);
      if (aborted_ || broken_ || late_) wake(*flight);
    }
    if (!flight->pending.empty()) loop_->run([flight] { post(*flight); });
    return flight;
  }

  Status land(Flight& flight, bool limited, const std::function<Status()>& check) override {
    auto& messages = dynamic_cast<Messages&>(flight);
    Status status = ended() || !context_ ? stopped() : Status();
    limited_ = limited;
    if (status.ok() && check) {
      status = wait(messages, [](const Pending& p) { return p.head && p.receives; });
      if (status.ok()) status = check();
    }
    if (status.ok()) status = wait(messages, [](const Pending&) { return true; });
    if (status.ok())
      forget(messages);
    else
      close();
    return status;
  }

  void move_last(std::span<const Transfer> transfers, milliseconds time) override {
    stop_watch();
    const auto until = std::chrono::steady_clock::now() + time;
    const auto flight = start(transfers, 0);
    auto& messages = dynamic_cast<Messages&>(*flight);
    // To Gloo zero means for ever, and a negative time its default.
    for (size_t i = 0; i < messages.pending.size(); ++i)
      (void)wait_one(messages, i,
                     std::max(std::chrono::ceil<milliseconds>(until - std::chrono::steady_clock::now()),
                              milliseconds(1)));
    close();
  }

  void abort(const std::string& reason) override {
    const std::lock_guard lock(mutex_);
    if (!aborted_) aborted_ = reason;
    wake_all();
  }

  void close() override {
    stop_watch();
    if (!context_) return;
    loop_->stop();
    for (int peer = 0; peer < size_; ++peer) try {
        if (peer != rank_) context_->getPair(peer)->close();
      } catch (const std::exception&) {  // a connection that is broken already
      }
    pump_.reset();  // it sends what Gloo has written
    // A buffer that a message is in lives as long as the connection, and its destructor waits for that.
    {
      const std::lock_guard lock(mutex_);
      for (const auto& flight : flights_) flight->pending.clear();
      flights_.clear();
    }
    watch_.reset();
    loop_.reset();
    context_.reset();
  }

 private:
  void watch() {
    try {
      // Each peer that leaves ends one wait; no more than these can come. The time is a year: never.
      for (int64_t i = 1; i < size_; ++i)
        if (!watch_->waitRecv(nullptr, kForEver)) return;
    } catch (const std::exception& e) {
      const std::lock_guard lock(mutex_);
      broken_ = reason_of(e);
      wake_all();
    }
  }

  // Ends waits in which nothing moves for too long: no byte comes from the peer that is waited for, and none
  // that it was sent is acknowledged. Gloo's own limit does not see whether a long message moves.
  void watch_clock() {
    using Clock = std::chrono::steady_clock;
    std::unique_lock lock(clock_mutex_);
    int64_t waits = -1, moved = 0;
    Clock::time_point since;
    milliseconds look{1};
    while (!clock_stops_) {
      clock_changed_.wait_for(lock, look, [this] { return clock_stops_; });
      const std::optional<milliseconds> limit = limit_();
      look = std::clamp(limit.value_or(milliseconds(4000)) / 8, milliseconds(1), milliseconds(500));
      const int64_t peer = waits_for_, now_waits = waits_;
      const int64_t now_moved = peer < 0 ? 0 : bytes_moved(descriptors_[static_cast<size_t>(peer)]);
      if (peer < 0 || !limited_ || !limit || waits != now_waits || moved != now_moved) {
        waits = now_waits, moved = now_moved;
        since = Clock::now();
        continue;
      }
      if (Clock::now() - since < *limit) continue;
      const std::lock_guard guard(mutex_);
      late_ = fmt::format("worker {} sends and takes nothing: no byte has moved for {:.1f} s", peer,
                          std::chrono::duration<double>(*limit).count());
      wake_all();
      return;
    }
  }

  void stop_watch() {
    if (clock_.joinable()) {
      {
        const std::lock_guard lock(clock_mutex_);
        clock_stops_ = true;
      }
      clock_changed_.notify_all();
      clock_.join();
    }
    if (!watcher_.joinable()) return;
    watch_->abortWaitRecv();
    watcher_.join();
  }

  static void wake(Messages& flight) {
    for (const Pending& p : flight.pending) {
      p.buffer->abortWaitRecv();
      p.buffer->abortWaitSend();
    }
  }

  // With the mutex held.
  void wake_all() {
    for (const auto& flight : flights_) wake(*flight);
  }

  void forget(const Messages& messages) {
    const std::lock_guard lock(mutex_);
    std::erase_if(flights_, [&](const auto& flight) { return flight.get() == &messages; });
  }

  // On Gloo's thread.
  static void post(Messages& flight) {
    for (size_t i = 0; i < flight.pending.size(); ++i) {
      Pending& p = flight.pending[i];
      try {
        p.receives ? p.buffer->recv(static_cast<int>(p.peer), p.slot)
                   : p.buffer->send(static_cast<int>(p.peer), p.slot);
      } catch (const std::exception& e) {
        const std::lock_guard lock(flight.mutex);
        flight.refused[i] = reason_of(e);
        p.buffer->abortWaitRecv();
        p.buffer->abortWaitSend();
      }
    }
  }

  template <typename F>
  Status wait(Messages& flight, F which) {
    for (size_t i = 0; i < flight.pending.size(); ++i) {
      Pending& p = flight.pending[i];
      if (p.done || !which(p)) continue;
      ++waits_;
      waits_for_ = p.peer;
      const Status status = wait_one(flight, i, kForEver);
      waits_for_ = -1;
      RETURN_IF_ERROR(status);
      p.done = true;
    }
    return Status();
  }

  // Waits for one message. Gloo's wait returns when the message is there, the wait was aborted or the time is
  // over.
  Status wait_one(Messages& flight, size_t i, milliseconds time) {
    const Pending& p = flight.pending[i];
    std::string why;
    try {
      if (p.receives ? p.buffer->waitRecv(time) : p.buffer->waitSend(time)) return Status();
      const std::lock_guard lock(flight.mutex);
      if (!flight.refused[i]) return stopped();
      why = *flight.refused[i];
    } catch (const std::exception& e) {
      why = reason_of(e);
    }
    return io_error(fmt::format("lost worker {}: {}", p.peer, why));
  }

  bool ended() {
    const std::lock_guard lock(mutex_);
    return aborted_ || broken_ || late_;
  }

  // The reason why a wait was aborted. When a connection broke, its peer is found by posting a receive to
  // every peer: only the broken connection refuses it.
  Status stopped() {
    std::optional<std::string> broken;
    {
      const std::lock_guard lock(mutex_);
      if (aborted_) return io_error("the group was aborted: " + *aborted_);
      if (late_) return io_error(*late_);
      broken = broken_;
    }
    if (!context_ || !broken) return io_error("the connections are closed");
    std::byte byte{};
    const auto probe = context_->createUnboundBuffer(&byte, 1);
    for (int64_t peer = 0; peer < size_; ++peer) try {
        if (peer != rank_) probe->recv(static_cast<int>(peer), slot_of(SlotKind::kProbe, 0));
      } catch (const std::exception&) {
        return io_error(fmt::format("lost worker {}: {}", peer, *broken));
      }
    return io_error("lost a worker: " + *broken);
  }

  std::shared_ptr<gloo::transport::Context> context_;
  std::unique_ptr<GlooLoop> loop_;
  std::unique_ptr<Pump> pump_;  // null: the connections are not encrypted
  const int64_t rank_;
  const int64_t size_;
  const std::vector<int> descriptors_;  // of the connections by TCP, by rank
  const WireLimit limit_;
  std::vector<char> watched_;
  std::unique_ptr<GlooBuffer> watch_;
  std::thread watcher_;

  std::thread clock_;
  std::mutex clock_mutex_;
  std::condition_variable clock_changed_;
  bool clock_stops_ = false;
  std::atomic<bool> limited_ = true;
  std::atomic<int64_t> waits_ = 0, waits_for_ = -1;  // how many there were; the peer of the present one

  std::mutex mutex_;                                // guards what follows
  std::vector<std::shared_ptr<Messages>> flights_;  // that have not landed
  std::optional<std::string> aborted_;
  std::optional<std::string> broken_;
  std::optional<std::string> late_;
};

}  // namespace

Result<std::unique_ptr<GlooWire>> GlooWire::make(int64_t rank, std::vector<PeerSocket> sockets,
                                                 WireLimit limit) {
  const size_t size = sockets.size();
  try {
    const auto device = make_gloo_device();
    auto loop = GlooLoop::start(device);
    // Gloo reads and writes sockets, so TLS is spoken by threads beside it.
    const bool encrypted =
        std::any_of(sockets.begin(), sockets.end(), [](const PeerSocket& s) { return s.session != nullptr; });
    std::vector<int> connections;
    std::unique_ptr<Pump> pump;
    if (encrypted) {
      for (const PeerSocket& peer : sockets) connections.push_back(peer.socket.fd());
      ASSIGN_OR_RETURN(pump, Pump::start(sockets));
    }
    std::vector<Socket> in_the_clear;
    for (PeerSocket& peer : sockets) in_the_clear.push_back(std::move(peer.socket));
    GlooPairs pairs = connect_pairs(device, *loop, static_cast<int>(rank), std::move(in_the_clear));
    if (encrypted) pairs.descriptors = std::move(connections);
    auto wire = std::make_unique<Wire>(std::move(pairs), std::move(loop), std::move(pump), std::move(limit));
    wire->start_watch();
    return std::unique_ptr<GlooWire>(std::move(wire));
  } catch (const std::exception& e) {
    return io_error(fmt::format("connecting {} workers: {}", size, reason_of(e)));
  }
}

}  // namespace ostro::dist
