#include "ostro/cluster/local_launcher.h"

#include <fcntl.h>
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
#include <utility>

#include "ostro/base/log.h"
#include "ostro/cluster/watch/overheard.h"

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
    for (const Process& p : running_) ::kill(p.pid, SIGKILL);
    for (const Process& p : running_) ::waitpid(p.pid, nullptr, 0);
  }

  Result<int> run() {
    for (int64_t i = 0; i < workers_.count; ++i) RETURN_IF_ERROR(start(false));
    while (!running_.empty()) {
      for (size_t i = 0; i < running_.size();) {
        int status = 0;
        const pid_t pid = ::waitpid(running_[i].pid, &status, WNOHANG);
        running_[i].said.read();
        if (pid != running_[i].pid) {
          ++i;
          continue;
        }
        const Process process = std::move(running_[i]);
        running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
        RETURN_IF_ERROR(ended(process, status));
      }
      if (workers_.look) workers_.look();
      end_hopeless();
      press();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return result_;
  }

 private:
  struct Process {
    pid_t pid = 0;
    Overheard said;
  };

  // `overheard`: the worker's standard error goes through this process.
  Status start(bool overheard) {
    int ends[2] = {-1, -1};
    if (overheard && ::pipe2(ends, O_CLOEXEC) != 0)
      return Error(ErrorCode::kIo, fmt::format("cannot start a worker: {}", std::strerror(errno)));
    Process process;
    if (overheard) {
      process.said = Overheard(ends[0]);
      ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    }
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid == 0) {
      // Only calls that are safe after a fork of a process with threads. The workers get a process group of
      // their own: the terminal's Ctrl-C reaches the launcher alone, which asks them to end.
      ::setpgid(0, 0);
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (overheard) ::dup2(ends[1], STDERR_FILENO);
      if (::getppid() == parent) ::execve(argv_.get()[0], argv_.get(), envp_.get());
      ::_exit(127);
    }
    if (overheard) ::close(ends[1]);
    if (pid < 0) return Error(ErrorCode::kIo, fmt::format("cannot start a worker: {}", std::strerror(errno)));
    process.pid = pid;
    running_.push_back(std::move(process));
    return Status();
  }

  // A worker that was killed or lost its place is replaced, unless no_more() refuses; one that left is not;
  // any other status ends the job.
  Status ended(const Process& process, int status) {
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    const bool replaceable = WIFSIGNALED(status) || code == kExitLostPlace;
    const std::string what = WIFSIGNALED(status) ? fmt::format("was killed by signal {}", WTERMSIG(status))
                                                 : std::string("lost its place");
    if (replaceable && !over_) {
      if (const std::string why = no_more(process); !why.empty()) {
        log_error(fmt::format("worker process {} {}; {}: giving up", process.pid, what, why));
        finish(1);
        return Status();
      }
      RETURN_IF_ERROR(start(fruitless_ == most_fruitless()));
      log_warning(fmt::format("worker process {} {}; process {} takes its place", process.pid, what,
                              running_.back().pid));
    } else if (code == kExitLeft && !over_) {
      log_info(fmt::format("worker process {} has left", process.pid));
    } else if (!replaceable) {
      if (code == 127) log_error(fmt::format("{} could not be started", workers_.command[0]));
      finish(code);
    }
    return Status();
  }

  int64_t most_fruitless() const { return workers_.restarts_without_progress * workers_.count; }

  // The reason why a worker that ended is not replaced; "" if it is, and then counts the replacement.
  std::string no_more(const Process& process) {
    const int64_t now = workers_.progress ? workers_.progress() : restarts_;
    if (std::exchange(progress_, now) != now) fruitless_ = 0;
    if (restarts_ >= workers_.restarts)
      return fmt::format("{} workers were replaced already", workers_.restarts);
    if (fruitless_ >= most_fruitless())
      return fmt::format("{} workers were replaced already while no step was done; {}", fruitless_,
                         process.said.last_words());
    ++restarts_;
    ++fruitless_;
    return "";
  }

  // SIGKILL also ends a stopped process. A pid is not reused before waitpid(), so it is one of this
  // launcher's.
  void end_hopeless() {
    if (!workers_.hopeless) return;
    for (const int64_t pid : workers_.hopeless()) {
      if (std::none_of(running_.begin(), running_.end(),
                       [&](const Process& p) { return p.pid == static_cast<pid_t>(pid); }))
        continue;
      log_warning(fmt::format("worker process {} is silent: it is killed", pid));
      ::kill(static_cast<pid_t>(pid), SIGKILL);
    }
  }

  void finish(int code) {
    if (result_ == 0) result_ = code;
    if (!over_) over_ = Clock::now();
  }

  // Ends workers that remain when the job is over, with a stronger signal after each grace period.
  void press() {
    if (!over_ || Clock::now() - *over_ < kGrace * (pressed_ + 1) || pressed_ > 1) return;
    signal_all(pressed_ == 0 && result_ == 0 ? SIGTERM : SIGKILL);
    ++pressed_;
  }

  void signal_all(int number) {
    for (const Process& p : running_) ::kill(p.pid, number);
  }

  const LocalWorkers& workers_;
  Words argv_, envp_;
  std::vector<Process> running_;
  std::optional<Clock::time_point> over_;  // when the job ended
  int64_t restarts_ = 0;
  int64_t fruitless_ = 0;  // replaced since there was progress
  int64_t progress_ = 0;
  int pressed_ = 0, result_ = 0;
};

}  // namespace

Result<int> run_local_workers(const LocalWorkers& workers) { return Launcher(workers).run(); }

}  // namespace ostro::cluster
