// Gloo 0.5 as Debian has it. Behaviour that its documentation does not state, found by trying and reading:
// - Any wait that runs out of time closes all connections of the context. So no wait may be a short look.
// - Closing the connections wakes no wait of another thread, abortWait... does.
// - A message that is half read when its connection breaks is not notified: its wait sleeps until its
// timeout. Only messages that have not begun are notified. Hence `watch_` below.
// - Its thread must not find a connection locked by another thread. Hence gloo_loop.h.
// - Closing a connection throws away bytes that were sent and not yet acknowledged.
#include "ostro/dist/gloo_wire.h"

#include <algorithm>
#include <functional>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include "ostro/base/watch/fault_point.h"
#include "ostro/dist/gloo_loop.h"
#include "ostro/dist/meet.h"

namespace ostro::dist {
namespace {

using std::chrono::milliseconds;
using GlooBuffer = gloo::transport::UnboundBuffer;

// The store that Gloo's rendezvous asks for. Gloo's own stores wait 30 seconds in get(), whatever timeout was
// set.
class GlooStore final : public gloo::rendezvous::Store {
 public:
  // Calls `published` after each set(): of this process's address.
  GlooStore(KeyValue& store, std::string prefix, Deadline deadline, std::function<void()> published)
      : store_(store), prefix_(std::move(prefix)), deadline_(deadline), published_(std::move(published)) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    const Status status = store_.set(prefix_ + key, std::string_view(data.data(), data.size()));
    if (!status.ok()) throw std::runtime_error(status.error().message());
    published_();
  }
  std::vector<char> get(const std::string& key) override {
    const auto value = store_.get(prefix_ + key, left_until(deadline_));
    if (!value.ok()) throw std::runtime_error(value.error().message());
    return {value->begin(), value->end()};
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) get(key);
  }
  void wait(const std::vector<std::string>& keys, const milliseconds& /*timeout*/) override { wait(keys); }

 private:
  KeyValue& store_;
  const std::string prefix_;
  const Deadline deadline_;
  const std::function<void()> published_;
};

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
  Wire(std::shared_ptr<gloo::rendezvous::Context> context, std::unique_ptr<GlooLoop> loop, int64_t rank,
       int64_t size)
      : context_(std::move(context)),
        loop_(std::move(loop)),
        rank_(rank),
        size_(size),
        watched_(static_cast<size_t>(size)) {}
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
      if (aborted_ || broken_) wake(*flight);
    }
    if (!flight->pending.empty()) loop_->run([flight] { post(*flight); });
    return flight;
  }

  Status land(Flight& flight, Deadline deadline, const std::function<Status()>& check) override {
    auto& messages = dynamic_cast<Messages&>(flight);
    Status status = ended() || !context_ ? stopped() : Status();
    if (status.ok() && check) {
      status = wait(messages, deadline, [](const Pending& p) { return p.head && p.receives; });
      if (status.ok()) status = check();
    }
    if (status.ok()) status = wait(messages, deadline, [](const Pending&) { return true; });
    if (status.ok())
      forget(messages);
    else
      close();
    return status;
  }

  void move_last(std::span<const Transfer> transfers, Deadline deadline) override {
    stop_watch();
    const auto flight = start(transfers, 0);
    auto& messages = dynamic_cast<Messages&>(*flight);
    for (size_t i = 0; i < messages.pending.size(); ++i) (void)wait_one(messages, i, deadline);
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
    try {
      context_->closeConnections();
    } catch (const std::exception&) {  // connections that are broken already
    }
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
        if (!watch_->waitRecv(nullptr, std::chrono::hours(24 * 365))) return;
    } catch (const std::exception& e) {
      const std::lock_guard lock(mutex_);
      broken_ = e.what();
      wake_all();
    }
  }

  void stop_watch() {
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
        flight.refused[i] = e.what();
        p.buffer->abortWaitRecv();
        p.buffer->abortWaitSend();
      }
    }
  }

  template <typename F>
  Status wait(Messages& flight, Deadline deadline, F which) {
    for (size_t i = 0; i < flight.pending.size(); ++i) {
      Pending& p = flight.pending[i];
      if (p.done || !which(p)) continue;
      RETURN_IF_ERROR(wait_one(flight, i, deadline));
      p.done = true;
    }
    return Status();
  }

  // Waits for one message. Gloo's wait returns when the message is there, the wait was aborted or the time is
  // over.
  Status wait_one(Messages& flight, size_t i, Deadline deadline) {
    const Pending& p = flight.pending[i];
    std::string why;
    try {
      const milliseconds left = left_until(deadline);
      if (p.receives ? p.buffer->waitRecv(left) : p.buffer->waitSend(left)) return Status();
      const std::lock_guard lock(flight.mutex);
      if (!flight.refused[i]) return stopped();
      why = *flight.refused[i];
    } catch (const std::exception& e) {
      why = e.what();
    }
    return Deadline::clock::now() < deadline
               ? io_error(fmt::format("lost worker {}: {}", p.peer, why))
               : io_error(fmt::format("worker {} {} nothing in time", p.peer, p.receives ? "sent" : "took"));
  }

  bool ended() {
    const std::lock_guard lock(mutex_);
    return aborted_ || broken_;
  }

  // The reason why a wait was aborted. When a connection broke, its peer is found by posting a receive to
  // every peer: only the broken connection refuses it.
  Status stopped() {
    std::optional<std::string> broken;
    {
      const std::lock_guard lock(mutex_);
      if (aborted_) return io_error("the group was aborted: " + *aborted_);
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

  std::shared_ptr<gloo::rendezvous::Context> context_;
  std::unique_ptr<GlooLoop> loop_;
  const int64_t rank_;
  const int64_t size_;
  std::vector<char> watched_;
  std::unique_ptr<GlooBuffer> watch_;
  std::thread watcher_;

  std::mutex mutex_;                                // guards what follows
  std::vector<std::shared_ptr<Messages>> flights_;  // that have not landed
  std::optional<std::string> aborted_;
  std::optional<std::string> broken_;
};

}  // namespace

Result<std::unique_ptr<GlooWire>> GlooWire::connect(int64_t rank, int64_t size, KeyValue& store,
                                                    const std::string& prefix, int64_t epoch,
                                                    const std::string& bind, Deadline deadline) {
  RETURN_IF_ERROR(check_address(bind));
  RETURN_IF_ERROR(meet(rank, size, store, prefix, deadline));
  try {
    gloo::transport::tcp::attr address(
        bind.c_str());  // without it Gloo asks for the address of the host's name
    std::shared_ptr<gloo::transport::Device> device = gloo::transport::tcp::CreateDevice(address);
    auto context =
        std::make_shared<gloo::rendezvous::Context>(static_cast<int>(rank), static_cast<int>(size));
    context->setTimeout(std::max(left_until(deadline) / 5, milliseconds(1)));  // Gloo multiplies by five
    GlooStore addresses(store, prefix + "address/", deadline, [&] { fault_point("connect", epoch, rank); });
    // The wire gets the context only afterwards: closing one that did not connect fails.
    context->connectFullMesh(addresses, device);
    auto wire = std::make_unique<Wire>(std::move(context), GlooLoop::start(device), rank, size);
    wire->start_watch();
    return std::unique_ptr<GlooWire>(std::move(wire));
  } catch (const std::exception& e) {
    return io_error(fmt::format("connecting {} workers by {}: {}", size, bind, e.what()));
  }
}

}  // namespace ostro::dist
