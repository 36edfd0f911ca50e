#include "ostro/dist/loop_collectives.h"

#include <array>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "ostro/base/check.h"

namespace ostro::dist {

// Messages by (sender, receiver, number): how many the sender has sent to the receiver before. So a worker
// may be several exchanges ahead of another, and may wait for exchanges in any order. One mutex guards
// everything.
struct LoopGroup::Shared {
  explicit Shared(ir::Mesh m) : mesh(std::move(m)) {}

  void abort(const std::string& reason) {
    const std::lock_guard lock(mutex);
    if (!aborted) aborted = reason;
    arrived.notify_all();
  }

  const ir::Mesh mesh;
  std::mutex mutex;
  std::condition_variable arrived;
  std::map<std::array<int64_t, 3>, std::vector<std::byte>> mail;
  std::optional<std::string> aborted;
};

class LoopGroup::Worker final : public runtime::Collectives {
 public:
  Worker(Shared* shared, int64_t rank) : shared_(shared), rank_(rank) {}

  int64_t rank() const override { return rank_; }
  int64_t size() const override { return shared_->mesh.size(); }
  int64_t bytes_sent() const override { return bytes_sent_; }

  std::vector<int64_t> peers(std::string_view mesh_axes) const override {
    return shared_->mesh.peers(rank_, mesh_axes);
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
    std::vector<Awaited> awaited;
    const std::lock_guard lock(shared_->mutex);
    for (size_t i = 0; i < peers.size(); ++i) {
      if (peers[i] < 0 || peers[i] >= size())
        return invalid_argument(fmt::format("exchange with worker {} of {}", peers[i], size()));
      const int64_t number = numbers_[peers[i]]++;
      shared_->mail[{rank_, peers[i], number}].assign(send[i].begin(), send[i].end());
      awaited.push_back({peers[i], number, receive[i]});
      if (peers[i] != rank_) bytes_sent_ += static_cast<int64_t>(send[i].size());
    }
    shared_->arrived.notify_all();
    open_[++tickets_] = std::move(awaited);
    return tickets_;
  }

  Status wait(int64_t ticket) override {
    const auto it = open_.find(ticket);
    OSTRO_CHECK(it != open_.end(), "no exchange has the ticket {}", ticket);
    const std::vector<Awaited> awaited = std::move(it->second);
    open_.erase(it);
    std::unique_lock lock(shared_->mutex);
    for (const Awaited& a : awaited) {
      const std::array<int64_t, 3> key{a.peer, rank_, a.number};
      shared_->arrived.wait(lock, [&] { return shared_->mail.contains(key) || shared_->aborted; });
      if (shared_->aborted)
        return io_error(fmt::format("worker {}: the group was aborted: {}", rank_, *shared_->aborted));
      const std::vector<std::byte> message = std::move(shared_->mail.extract(key).mapped());
      if (message.size() != a.receive.size())
        return invalid_argument(fmt::format("worker {} expects {} bytes from worker {}, which sent {}", rank_,
                                            a.receive.size(), a.peer, message.size()));
      if (!message.empty()) std::memcpy(a.receive.data(), message.data(), message.size());
    }
    return Status();
  }

  void abort(const std::string& reason) override { shared_->abort(reason); }

 private:
  struct Awaited {
    int64_t peer, number;
    std::span<std::byte> receive;
  };

  Shared* shared_;
  int64_t rank_;
  std::map<int64_t, int64_t> numbers_;            // of exchanges with each worker so far
  std::map<int64_t, std::vector<Awaited>> open_;  // by ticket
  int64_t tickets_ = 0;
  int64_t bytes_sent_ = 0;
};

LoopGroup::LoopGroup(ir::Mesh mesh) : shared_(std::make_unique<Shared>(std::move(mesh))) {
  for (int64_t rank = 0; rank < shared_->mesh.size(); ++rank)
    workers_.push_back(std::make_unique<Worker>(shared_.get(), rank));
}

LoopGroup::~LoopGroup() = default;

runtime::Collectives& LoopGroup::worker(int64_t rank) {
  OSTRO_CHECK(rank >= 0 && rank < static_cast<int64_t>(workers_.size()), "worker {} of {}", rank,
              workers_.size());
  return *workers_[static_cast<size_t>(rank)];
}

void LoopGroup::abort(const std::string& reason) { shared_->abort(reason); }

Status run_workers(const ir::Mesh& mesh, const std::function<Status(runtime::Collectives&)>& work) {
  LoopGroup group(mesh);
  std::mutex mutex;
  std::optional<std::pair<int64_t, Error>> first;  // the failure that aborted the group
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < mesh.size(); ++rank)
    threads.emplace_back([&, rank] {
      const Status status = work(group.worker(rank));
      if (status.ok()) return;
      {
        const std::lock_guard lock(mutex);
        if (!first) first.emplace(rank, status.error());
      }
      group.abort(fmt::format("worker {} failed: {}", rank, status.error().message()));
    });
  for (std::thread& t : threads) t.join();
  if (!first) return Status();
  return first->second.with_context(fmt::format("worker {}", first->first));
}

}  // namespace ostro::dist
