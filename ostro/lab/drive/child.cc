#include "ostro/lab/drive/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

namespace ostro::lab {
namespace {

std::string to_text(const Performed& performed) {
  nlohmann::json out;
  if (!performed.ok()) {
    out = {{"code", static_cast<int>(performed.error().code())}, {"error", performed.error().message()}};
  } else if (*performed) {
    out = {{"content", **performed}};
  } else {
    out = {{"stopped", true}};
  }
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// In the child: what is printed goes to the file.
bool print_to(const std::string& log) {
  const int file = ::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return false;
  const bool done = ::dup2(file, STDOUT_FILENO) >= 0 && ::dup2(file, STDERR_FILENO) >= 0;
  ::close(file);
  return done;
}

[[noreturn]] void run_child(const std::function<Performed()>& work, const std::string& log, int threads,
                            int pipe, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // it ended before the line above
  ::setenv("OSTRO_THREADS", std::to_string(threads).c_str(), 1);
  const std::string text =
      print_to(log) ? to_text(work()) : to_text(io_error(fmt::format("{}: {}", log, std::strerror(errno))));
  for (size_t at = 0; at < text.size();) {
    const ssize_t wrote = ::write(pipe, text.data() + at, text.size() - at);
    if (wrote < 0 && errno != EINTR) break;
    if (wrote > 0) at += static_cast<size_t>(wrote);
  }
  std::fflush(nullptr);
  ::_exit(0);
}

}  // namespace

Result<Child> Child::start(const std::function<Performed()>& work, const std::string& log, int threads) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return io_error(fmt::format("pipe: {}", std::strerror(errno)));
  std::fflush(nullptr);
  const pid_t parent = ::getpid(), process = ::fork();
  if (process == 0) {
    ::close(ends[0]);
    run_child(work, log, threads, ends[1], parent);
  }
  if (process > 0) ::setpgid(process, process);  // whichever of the two comes first
  ::close(ends[1]);
  if (process < 0) {
    ::close(ends[0]);
    return io_error(fmt::format("cannot start a process: {}", std::strerror(errno)));
  }
  return Child(process, ends[0], log);
}

Child::Child(Child&& other) noexcept
    : process_(std::exchange(other.process_, 0)),
      pipe_(std::exchange(other.pipe_, -1)),
      log_(std::move(other.log_)),
      text_(std::move(other.text_)) {}

Child& Child::operator=(Child&& other) noexcept {
  std::swap(process_, other.process_);
  std::swap(pipe_, other.pipe_);
  log_.swap(other.log_);
  text_.swap(other.text_);
  return *this;
}

Child::~Child() {
  if (pipe_ >= 0) ::close(pipe_);
  if (process_ <= 0) return;
  ::kill(-process_, SIGKILL);
  while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

// As a terminal does, this tells the programs that the step runs, too.
void Child::stop() const { ::kill(-process_, SIGTERM); }

bool Child::read_some() {
  char some[4096];
  const ssize_t size = ::read(pipe_, some, sizeof some);
  if (size > 0) text_.append(some, static_cast<size_t>(size));
  return size == 0 || (size < 0 && errno != EINTR);
}

Performed Child::result() {
  int status = 0;
  while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  process_ = 0;
  const auto json = nlohmann::json::parse(text_, nullptr, false);
  if (json.is_object() && json.contains("content")) return std::optional(json["content"].get<std::string>());
  if (json.is_object() && json.contains("stopped")) return std::optional<std::string>();
  if (json.is_object())
    return Error(static_cast<ErrorCode>(json["code"].get<int>()), json["error"].get<std::string>());
  return io_error(fmt::format("its process ended without a result ({}); {} has what it said",
                              WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status))
                                                  : fmt::format("exit code {}", WEXITSTATUS(status)),
                              log_));
}

std::optional<Performed> Child::wait_for_one(std::vector<Child>& children, int milliseconds, size_t& ended) {
  std::vector<pollfd> pipes;
  for (const Child& child : children) pipes.push_back({.fd = child.pipe_, .events = POLLIN, .revents = 0});
  if (::poll(pipes.data(), pipes.size(), milliseconds) <= 0) return std::nullopt;
  for (size_t i = 0; i < children.size(); ++i)
    if (pipes[i].revents != 0 && children[i].read_some()) {
      ended = i;
      return children[i].result();
    }
  return std::nullopt;
}

}  // namespace ostro::lab
