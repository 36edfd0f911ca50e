#include "ostro/cluster/local_launcher.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>

#include "ostro/base/log.h"

extern char** environ;

namespace ostro::cluster {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kGrace{10};  // from the end of the job to SIGTERM, and from there to SIGKILL

// Null-terminated pointers to strings that live as long as this object.
class Words {
 public:
  explicit Words(std::vector<std::string> words) : words_(std::move(words)) {
    for (std::string& w : words_) pointers_.push_back(w.data());
    pointers_.push_back(nullptr);
  }
  char** get() { return pointers_.data(); }

 private:
  std::vector<std::string> words_;
  std::vector<char*> pointers_;
};

std::vector<std::string> environment_with(const std::vector<std::pair<std::string, std::string>>& added) {
  std::vector<std::string> out;
  for (char** e = environ; *e != nullptr; ++e) {
    const std::string entry = *e;
    bool replaced = false;
    for (const auto& [name, value] : added) replaced |= entry.rfind(name + "=", 0) == 0;
    if (!replaced) out.push_back(entry);
  }
  for (const auto& [name, value] : added) out.push_back(name + "=" + value);
  return out;
}

class Launcher {
 public:
  explicit Launcher(const LocalWorkers& workers)
      : workers_(workers), argv_(workers.command), envp_(environment_with(workers.environment)) {}
  ~Launcher() {
    for (const pid_t pid : running_) ::kill(pid, SIGKILL);
    for (const pid_t pid : running_) ::waitpid(pid, nullptr, 0);
  }

  Result<int> run() {
    for (int64_t i = 0; i < workers_.count; ++i) RETURN_IF_ERROR(start());
    while (!running_.empty()) {
      for (size_t i = 0; i < running_.size();) {
        int status = 0;
        const pid_t pid = ::waitpid(running_[i], &status, WNOHANG);
        if (pid != running_[i]) {
          ++i;
          continue;
        }
        running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
        RETURN_IF_ERROR(ended(pid, status));
      }
      if (workers_.look) workers_.look();
      end_hopeless();
      press();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return result_;
  }

 private:
  Status start() {
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid < 0) return Error(ErrorCode::kIo, fmt::format("cannot start a worker: {}", std::strerror(errno)));
    if (pid == 0) {
      // Only calls that are safe after a fork of a process with threads. The workers get a process group of
      // their own: the terminal's Ctrl-C reaches the launcher alone, which asks them to end.
      ::setpgid(0, 0);
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() == parent) ::execve(argv_.get()[0], argv_.get(), envp_.get());
      ::_exit(127);
    }
    running_.push_back(pid);
    return Status();
  }

  Status ended(pid_t pid, int status) {
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    const bool replaceable = WIFSIGNALED(status) || code == kExitLostPlace;
    const std::string what = WIFSIGNALED(status) ? fmt::format("was killed by signal {}", WTERMSIG(status))
                                                 : std::string("lost its place");
    if (replaceable && !over_) {
      if (restarts_++ >= workers_.restarts) {
        log_error(fmt::format("worker process {} {}; {} workers were replaced already: giving up", pid, what,
                              workers_.restarts));
        finish(1);
        return Status();
      }
      RETURN_IF_ERROR(start());
      log_warning(
          fmt::format("worker process {} {}; process {} takes its place", pid, what, running_.back()));
    } else if (code == kExitLeft && !over_) {
      log_info(fmt::format("worker process {} has left", pid));
    } else if (!replaceable) {
      if (code == 127) log_error(fmt::format("{} could not be started", workers_.command[0]));
      finish(code);
    }
    return Status();
  }

  // A stopped process gets SIGKILL all the same. Its number belongs to it until it was waited for.
  void end_hopeless() {
    if (!workers_.hopeless) return;
    for (const int64_t pid : workers_.hopeless()) {
      if (std::find(running_.begin(), running_.end(), static_cast<pid_t>(pid)) == running_.end()) continue;
      log_warning(fmt::format("worker process {} is silent: it is killed", pid));
      ::kill(static_cast<pid_t>(pid), SIGKILL);
    }
  }

  void finish(int code) {
    if (result_ == 0) result_ = code;
    if (!over_) over_ = Clock::now();
  }

  // Workers that stay when the job is over are told more and more clearly.
  void press() {
    if (!over_ || Clock::now() - *over_ < kGrace * (pressed_ + 1) || pressed_ > 1) return;
    signal_all(pressed_ == 0 && result_ == 0 ? SIGTERM : SIGKILL);
    ++pressed_;
  }

  void signal_all(int number) {
    for (const pid_t pid : running_) ::kill(pid, number);
  }

  const LocalWorkers& workers_;
  Words argv_, envp_;
  std::vector<pid_t> running_;
  std::optional<Clock::time_point> over_;  // when the job ended
  int64_t restarts_ = 0;
  int pressed_ = 0, result_ = 0;
};

}  // namespace

Result<int> run_local_workers(const LocalWorkers& workers) { return Launcher(workers).run(); }

}  // namespace ostro::cluster
