#include "ostro/lab/drive/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
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

}  // namespace

Result<Child> Child::start(const std::function<Performed()>& work, const std::string& log, int threads) {
  ASSIGN_OR_RETURN(ForkedProcess process, ForkedProcess::start([&] {
                     ::setenv("OSTRO_THREADS", std::to_string(threads).c_str(), 1);
                     return print_to(log)
                                ? to_text(work())
                                : to_text(io_error(fmt::format("{}: {}", log, std::strerror(errno))));
                   }));
  return Child(std::move(process), log);
}

// As a terminal does, this tells the programs that the step runs, too.
void Child::stop() const { process_.signal(SIGTERM); }

Performed Child::result() {
  const ForkedProcess::End end = process_.end();
  const auto json = nlohmann::json::parse(end.answer, nullptr, false);
  if (json.is_object() && json.contains("content")) return std::optional(json["content"].get<std::string>());
  if (json.is_object() && json.contains("stopped")) return std::optional<std::string>();
  if (json.is_object())
    return Error(static_cast<ErrorCode>(json["code"].get<int>()), json["error"].get<std::string>());
  return io_error(fmt::format("its process ended without a result ({}); {} has what it said",
                              WIFSIGNALED(end.status) ? fmt::format("signal {}", WTERMSIG(end.status))
                                                      : fmt::format("exit code {}", WEXITSTATUS(end.status)),
                              log_));
}

std::optional<Performed> Child::wait_for_one(std::vector<Child>& children, int milliseconds, size_t& ended) {
  std::vector<pollfd> pipes;
  for (const Child& child : children)
    pipes.push_back({.fd = child.process_.descriptor(), .events = POLLIN, .revents = 0});
  if (::poll(pipes.data(), pipes.size(), milliseconds) <= 0) return std::nullopt;
  for (size_t i = 0; i < children.size(); ++i)
    if (pipes[i].revents != 0 && children[i].process_.read_some()) {
      ended = i;
      return children[i].result();
    }
  return std::nullopt;
}

}  // namespace ostro::lab
