#include "ostro/run/notice/notice_watch.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <utility>

#include "ostro/base/log.h"
#include "ostro/base/run_program.h"

namespace ostro::run {
namespace {

using NoticeClock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kSignalLook{50}, kFileLook{500}, kCommandLook{5000};
constexpr std::chrono::seconds kCommandLimit{10};

std::optional<std::string> file_notice(const train::TrainerOptions& options) {
  std::error_code error;
  if (!options.notice_file || !std::filesystem::exists(*options.notice_file, error)) return std::nullopt;
  return fmt::format("{} is there (trainer.notice_file)", *options.notice_file);
}

// `no_answer` gets why the command said neither yes nor no, where it did not; "" otherwise.
std::optional<std::string> command_notice(const train::TrainerOptions& options,
                                          std::string* no_answer = nullptr,
                                          const std::function<bool()>& stop = {}) {
  if (options.notice_command.empty()) return std::nullopt;
  std::optional<int> status;
  const auto done = run_program(ProgramCall{options.notice_command, "", kCommandLimit, stop, &status});
  if (done.ok())
    return fmt::format("{} ended with status 0 (trainer.notice_command)", options.notice_command[0]);
  const bool is_wanted = done.error().code() != ErrorCode::kBusy;  // else this process ends
  if (no_answer != nullptr) *no_answer = status || !is_wanted ? "" : done.error().message();
  return std::nullopt;
}

}  // namespace

std::optional<std::string> notice_now(const train::TrainerOptions& options) {
  if (auto why = file_notice(options)) return why;
  return command_notice(options);
}

NoticeWatch::NoticeWatch(const train::TrainerOptions& options, Calls calls)
    : options_(options), calls_(std::move(calls)), looker_([this] { look(); }) {
  if (!options.notice_command.empty()) commander_ = std::thread([this] { run_command(); });
}

NoticeWatch::~NoticeWatch() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  looker_.join();
  if (commander_.joinable()) commander_.join();
}

bool NoticeWatch::wait(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, time, [this] { return over_; });
  return !over_;
}

void NoticeWatch::look() {
  std::optional<NoticeClock::time_point> late;
  auto next_file = NoticeClock::now();
  do {
    if (asked_) {
      if (!late || NoticeClock::now() < *late) continue;
      late.reset();
      if (calls_.on_late) calls_.on_late();
      continue;
    }
    std::optional<std::string> why;
    if (calls_.signalled && calls_.signalled()) why = "";
    if (!why && NoticeClock::now() >= next_file) {
      why = file_notice(options_);
      next_file = NoticeClock::now() + kFileLook;
    }
    if (const std::lock_guard lock(mutex_); !why && !told_.empty()) why = told_;
    if (!why) continue;
    asked_ = true;
    if (options_.notice_grace)
      late = NoticeClock::now() + std::chrono::seconds(options_.notice_grace->seconds);
    if (calls_.on_ask) calls_.on_ask(*why);
  } while (wait(kSignalLook));
}

// A notice does not go away again, so it is asked for until there is one.
void NoticeWatch::run_command() {
  bool failed = false;
  do {
    std::string no_answer;
    const auto why = command_notice(options_, &no_answer, [this] {
      const std::lock_guard lock(mutex_);
      return over_;
    });
    if (why) {
      const std::lock_guard lock(mutex_);
      told_ = *why;
      return;
    }
    // A program that says no is as it should be. One that is not there, or always hangs, never gives a
    // notice.
    if (!no_answer.empty() && !std::exchange(failed, true))
      log_warning(
          fmt::format("trainer.notice_command: {}; no notice comes from it while that is so", no_answer));
  } while (wait(kCommandLook));
}

}  // namespace ostro::run
