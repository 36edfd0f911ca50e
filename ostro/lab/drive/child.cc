#include "ostro/lab/drive/child.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>
#include <utility>

namespace ostro::lab {

Result<Child> Child::start(const std::function<Performed()>& work, const std::string& log, LogBegin begin,
                           int threads) {
  ASSIGN_OR_RETURN(ForkedProcess process, ForkedProcess::start([&] {
                     ::setenv("OSTRO_THREADS", std::to_string(threads).c_str(), 1);
                     const Status prints = print_to(log, begin);
                     return performed_text(prints.ok() ? work() : prints.error());
                   }));
  return Child(std::move(process), log);
}

// As a terminal does, this tells the programs that the step runs, too.
void Child::stop() const { process_.signal(SIGTERM); }

Performed Child::result() {
  const ForkedProcess::End end = process_.end();
  if (std::optional<Performed> performed = parse_performed(end.answer)) return std::move(*performed);
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
