#include "ostro/monitor/alert_command.h"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "ostro/base/log.h"
#include "ostro/base/run_program.h"

namespace ostro::monitor {
namespace {

constexpr std::chrono::seconds kLimit{60};
constexpr size_t kMostWaiting = 100;  // alerts; more are in the file only

}  // namespace

AlertCommand::AlertCommand(std::vector<std::string> words, std::chrono::milliseconds at_end)
    : words_(std::move(words)), at_end_(at_end) {
  if (!words_.empty()) thread_ = std::thread([this] { work(); });
}

AlertCommand::~AlertCommand() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    over_ = std::chrono::steady_clock::now() + at_end_;
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

bool AlertCommand::is_late() {
  const std::lock_guard lock(mutex_);
  return over_ && std::chrono::steady_clock::now() >= *over_;
}

void AlertCommand::work() {
  const auto next = [this]() -> std::optional<std::string> {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return over_ || !alerts_.empty(); });
    if (alerts_.empty()) return std::nullopt;
    std::string alert = std::move(alerts_.front());
    alerts_.pop_front();
    return alert;
  };
  int64_t missed = 0;
  while (const auto alert = next()) {
    if (is_late()) {
      ++missed;
      continue;
    }
    const auto done = run_program(ProgramCall{words_, *alert, kLimit, [this] { return is_late(); }});
    if (!done.ok() && done.error().code() == ErrorCode::kBusy)
      ++missed;
    else if (!done.ok())
      log_warning(fmt::format("trainer.alert_command: {}", done.error().message()));
  }
  if (missed > 0)
    log_warning(fmt::format("trainer.alert_command: {} alerts were not given to it before this process ended",
                            missed));
}

}  // namespace ostro::monitor
