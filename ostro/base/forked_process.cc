#include "ostro/base/forked_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <utility>

namespace ostro {
namespace {

// Nothing may be thrown out of it: the stack below is that of the process that it is a copy of.
[[noreturn]] void run_work(const std::function<std::string()>& work, int pipe, pid_t parent) noexcept {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // it ended before the line above
  const std::string text = work();
  for (size_t at = 0; at < text.size();) {
    const ssize_t wrote = ::write(pipe, text.data() + at, text.size() - at);
    if (wrote < 0 && errno != EINTR) break;
    if (wrote > 0) at += static_cast<size_t>(wrote);
  }
  std::fflush(nullptr);
  ::_exit(0);
}

}  // namespace

Result<ForkedProcess> ForkedProcess::start(const std::function<std::string()>& work) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return io_error(fmt::format("pipe: {}", std::strerror(errno)));
  std::fflush(nullptr);
  const pid_t parent = ::getpid(), process = ::fork();
  if (process == 0) {
    ::close(ends[0]);
    run_work(work, ends[1], parent);
  }
  if (process > 0) ::setpgid(process, process);  // whichever of the two comes first
  ::close(ends[1]);
  if (process < 0) {
    ::close(ends[0]);
    return io_error(fmt::format("cannot start a process: {}", std::strerror(errno)));
  }
  return ForkedProcess(process, ends[0]);
}

ForkedProcess::ForkedProcess(ForkedProcess&& other) noexcept
    : process_(std::exchange(other.process_, 0)),
      pipe_(std::exchange(other.pipe_, -1)),
      answer_(std::move(other.answer_)) {}

ForkedProcess& ForkedProcess::operator=(ForkedProcess&& other) noexcept {
  std::swap(process_, other.process_);
  std::swap(pipe_, other.pipe_);
  answer_.swap(other.answer_);
  return *this;
}

ForkedProcess::~ForkedProcess() {
  if (process_ > 0) end_group();
  if (pipe_ >= 0) ::close(pipe_);
}

void ForkedProcess::signal(int number) const { ::kill(-process_, number); }

bool ForkedProcess::read_some() {
  char some[4096];
  const ssize_t size = ::read(pipe_, some, sizeof some);
  if (size > 0) answer_.append(some, static_cast<size_t>(size));
  return size == 0 || (size < 0 && errno != EINTR);
}

// The group keeps its number as long as its leader was not waited for, so the signal reaches no other one.
int ForkedProcess::end_group() {
  siginfo_t info{};
  const auto has_ended = [&](int how) {
    int done = 0;
    do done = ::waitid(P_PID, static_cast<id_t>(process_), &info, WEXITED | WNOWAIT | how);
    while (done < 0 && errno == EINTR);
    return done != 0 || info.si_pid != 0;
  };
  if (!has_ended(WNOHANG)) {
    ::kill(-process_, SIGKILL);
    has_ended(0);
  }
  ::kill(-process_, SIGKILL);  // what it left behind
  int status = 0;
  while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  process_ = 0;
  return status;
}

ForkedProcess::End ForkedProcess::end() {
  // The answer has ended, so the process is about to; a signal now would hide how.
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(process_), &info, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
  }
  return {std::move(answer_), end_group()};
}

std::optional<ForkedProcess::End> ForkedProcess::wait_for(std::chrono::milliseconds limit) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + limit;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd one{.fd = pipe_, .events = POLLIN, .revents = 0};
    const int wait = static_cast<int>(std::clamp<int64_t>(left, 0, INT_MAX));
    const int ready = ::poll(&one, 1, wait);
    if (ready > 0 && read_some()) return end();
    if (ready == 0 && left <= 0) break;
    if (ready < 0 && errno != EINTR) break;
  }
  end_group();
  return std::nullopt;
}

}  // namespace ostro
