// NoticeWatch: learns that this machine is about to be taken away: from a signal, a file that appears, or a
// command that ends with status 0.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "ostro/train/options/options.h"

namespace ostro::run {

// Whether such a notice is there now: the reason, for people; nothing: there is none. Runs the command, which
// has ten seconds; one that cannot be run, or takes longer, is no notice.
std::optional<std::string> notice_now(const train::TrainerOptions& options);

// Looks while it exists: every 50 ms for a signal, twice a second for the file, every 5 seconds by the
// command. It has threads of its own, which call what it is given.
class NoticeWatch {
 public:
  struct Calls {
    std::function<bool()> signalled;                     // whether a signal asks this process to stop
    std::function<void(const std::string& why)> on_ask;  // once; "": a signal has come
    std::function<void()> on_late;                       // once, when trainer.notice_grace has passed since
  };
  // `options` must outlive it.
  NoticeWatch(const train::TrainerOptions& options, Calls calls);
  ~NoticeWatch();  // kills a command that runs
  NoticeWatch(const NoticeWatch&) = delete;
  NoticeWatch& operator=(const NoticeWatch&) = delete;

  // Whether to save and to end. Any thread.
  bool asked() const { return asked_; }

 private:
  void look();
  void run_command();
  bool wait(std::chrono::milliseconds time);  // false: it is over

  const train::TrainerOptions& options_;
  const Calls calls_;
  std::atomic<bool> asked_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::string told_;  // the command's notice; "": none
  std::thread looker_, commander_;
};

}  // namespace ostro::run
