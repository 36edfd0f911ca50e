#include "ostro/monitor/alert_command.h"

#include <fmt/format.h>

#include <utility>

#include "ostro/base/log.h"
#include "ostro/base/run_program.h"

namespace ostro::monitor {
namespace {

constexpr std::chrono::seconds kLimit{60};
constexpr size_t kMostWaiting = 100;  // alerts; more are in the file only

}  // namespace

AlertCommand::AlertCommand(std::vector<std::string> words) : words_(std::move(words)) {
  if (!words_.empty()) thread_ = std::thread([this] { work(); });
}

AlertCommand::~AlertCommand() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void AlertCommand::run(std::string alert) {
  if (words_.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    if (alerts_.size() < kMostWaiting) alerts_.push_back(std::move(alert));
  }
  changed_.notify_all();
}

void AlertCommand::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return over_ || !alerts_.empty(); });
    if (alerts_.empty()) return;
    const std::string alert = std::move(alerts_.front());
    alerts_.pop_front();
    lock.unlock();
    const auto done = run_program(ProgramCall{words_, alert, kLimit});
    if (!done.ok()) log_warning(fmt::format("trainer.alert_command: {}", done.error().message()));
    lock.lock();
  }
}

}  // namespace ostro::monitor
