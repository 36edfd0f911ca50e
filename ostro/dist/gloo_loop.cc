#include "ostro/dist/gloo_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <mutex>
#include <stdexcept>
#include <vector>

#include <gloo/transport/tcp/device.h>

namespace ostro::dist {
namespace {

class Loop final : public GlooLoop, public gloo::transport::tcp::Handler {
 public:
  explicit Loop(std::shared_ptr<gloo::transport::tcp::Device> device)
      : device_(std::move(device)), event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (event_ < 0) throw std::runtime_error("the system has no descriptor left");
    device_->registerDescriptor(event_, EPOLLIN, this);
  }
  ~Loop() override {
    stop();
    wake();  // Gloo waits for the next turn of its thread
    device_->unregisterDescriptor(event_, this);
    // No turn is under way now. The lock orders the last one's read before this, also for a tool that cannot
    // see into Gloo.
    const std::lock_guard running(run_mutex_);
    ::close(event_);
  }

  void run(std::function<void()> work) override {
    {
      const std::lock_guard lock(queue_mutex_);
      if (stopped_) return;
      queue_.push_back(std::move(work));
    }
    wake();
  }

  void stop() override {
    {
      const std::lock_guard lock(queue_mutex_);
      stopped_ = true;
      queue_.clear();
    }
    const std::lock_guard running(run_mutex_);
  }

  void handleEvents(int /*events*/) override {
    const std::lock_guard running(run_mutex_);
    uint64_t count = 0;
    [[maybe_unused]] const auto n = ::read(event_, &count, sizeof count);
    std::vector<std::function<void()>> work;
    {
      const std::lock_guard lock(queue_mutex_);
      work.swap(queue_);
    }
    for (const auto& w : work) w();
  }

 private:
  void wake() {
    const uint64_t one = 1;
    [[maybe_unused]] const auto n = ::write(event_, &one, sizeof one);
  }

  const std::shared_ptr<gloo::transport::tcp::Device> device_;
  const int event_;
  std::mutex run_mutex_;    // held while work runs
  std::mutex queue_mutex_;  // guards what follows
  std::vector<std::function<void()>> queue_;
  bool stopped_ = false;
};

}  // namespace

std::unique_ptr<GlooLoop> GlooLoop::start(std::shared_ptr<gloo::transport::Device> device) {
  auto tcp = std::dynamic_pointer_cast<gloo::transport::tcp::Device>(device);
  if (tcp == nullptr) throw std::runtime_error("not Gloo's TCP");
  return std::make_unique<Loop>(std::move(tcp));
}

}  // namespace ostro::dist
