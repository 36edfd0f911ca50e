#include "ostro/cluster/ssh/line_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>

#include "ostro/base/one_line.h"

extern char** environ;

namespace ostro::cluster {
namespace {

constexpr size_t kMostOfAnswer = size_t{1} << 20, kMostOfErrors = 4096;
constexpr std::chrono::milliseconds kLookAtStop{200};

struct LinePipe {
  Socket read, write;
};

Result<LinePipe> make_line_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return io_error(fmt::format("pipe: {}", std::strerror(errno)));
  return LinePipe{Socket(ends[0]), Socket(ends[1])};
}

// Reads what is there into `text`, at most `most` bytes in all; false at the end.
bool take_some(int fd, std::string& text, size_t most) {
  std::array<char, 4096> buffer{};
  const ssize_t count = ::read(fd, buffer.data(), buffer.size());
  if (count < 0) return errno == EINTR || errno == EAGAIN;
  text.append(buffer.data(), std::min(static_cast<size_t>(count), most - std::min(most, text.size())));
  return count > 0;
}

}  // namespace

LineProcess& LineProcess::operator=(LineProcess&& other) noexcept {
  std::swap(process_, other.process_);
  std::swap(in_, other.in_);
  std::swap(out_, other.out_);
  std::swap(errors_, other.errors_);
  std::swap(lines_, other.lines_);
  std::swap(said_, other.said_);
  return *this;
}

Result<LineProcess> LineProcess::start(const std::vector<std::string>& words) {
  ASSIGN_OR_RETURN(LinePipe in, make_line_pipe());
  ASSIGN_OR_RETURN(LinePipe out, make_line_pipe());
  ASSIGN_OR_RETURN(LinePipe errors, make_line_pipe());
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.read.fd(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out.write.fd(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors.write.fd(), STDERR_FILENO);
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  LineProcess process;
  const int failed =
      posix_spawnp(&process.process_, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    process.process_ = -1;
    return io_error(fmt::format("{}: {}", words[0], std::strerror(failed)));
  }
  ::fcntl(in.write.fd(), F_SETFL, O_NONBLOCK);
  process.in_ = std::move(in.write), process.out_ = std::move(out.read),
  process.errors_ = std::move(errors.read);
  return process;
}

LineProcess::~LineProcess() {
  if (process_ < 0) return;
  in_.close();
  constexpr int kLooks = 100;
  for (int look = 0; look < kLooks; ++look) {
    if (::waitpid(process_, nullptr, WNOHANG) != 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
}

Error LineProcess::gone(const std::string& what) const {
  return io_error(said_.empty() ? what : fmt::format("{}: {}", what, one_line(said_)));
}

Status LineProcess::ask(const std::string& line) { return send(line + "\n"); }

Status LineProcess::send(std::string_view bytes, const std::function<bool()>& stop,
                         std::chrono::milliseconds patience) {
  auto until = deadline_after(patience);
  while (!bytes.empty()) {
    const ssize_t count = ::write(in_.fd(), bytes.data(), bytes.size());
    if (count > 0) {
      bytes.remove_prefix(static_cast<size_t>(count));
      until = deadline_after(patience);
    } else if (count == 0 || (errno != EINTR && errno != EAGAIN)) {
      hear_out();
      return gone("has ended");
    } else if (stop && stop()) {
      return busy("was not waited for");
    } else if (Clock::now() >= until) {
      return gone(fmt::format("takes nothing for {} s", patience.count() / 1000));
    } else {
      pollfd in{in_.fd(), POLLOUT, 0};
      (void)::poll(&in, 1, poll_milliseconds(std::min(until, deadline_after(kLookAtStop))));
    }
  }
  return {};
}

void LineProcess::hear_out() {
  const auto until = deadline_after(std::chrono::milliseconds(500));
  while (errors_.fd() >= 0 && Clock::now() < until) (void)read(until);
}

bool LineProcess::read(Clock::time_point until) {
  std::array<pollfd, 2> fds = {pollfd{out_.fd(), POLLIN, 0}, pollfd{errors_.fd(), POLLIN, 0}};
  if (::poll(fds.data(), fds.size(), poll_milliseconds(until)) <= 0) return true;
  if (fds[1].revents != 0 && !take_some(errors_.fd(), said_, kMostOfErrors)) errors_.close();
  if (fds[0].revents == 0) return true;
  if (take_some(out_.fd(), lines_, kMostOfAnswer + 1)) return true;
  out_.close();  // poll() passes over it
  return false;
}

Result<std::string> LineProcess::answer(std::chrono::milliseconds patience,
                                        const std::function<bool()>& stop) {
  const auto until = deadline_after(patience);
  bool open = true;
  while (true) {
    if (const size_t end = lines_.find('\n'); end != std::string::npos) {
      std::string line = lines_.substr(0, end);
      lines_.erase(0, end + 1);
      return line;
    }
    if (lines_.size() > kMostOfAnswer) return gone("answers with a line without an end");
    if (!open) {
      hear_out();
      return gone("has ended");
    }
    if (Clock::now() >= until) return gone(fmt::format("gave no answer in {} s", patience.count() / 1000));
    if (stop && stop()) return gone("was not waited for");
    open = read(std::min(until, deadline_after(kLookAtStop)));
  }
}

}  // namespace ostro::cluster
