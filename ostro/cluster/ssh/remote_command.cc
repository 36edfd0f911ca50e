#include "ostro/cluster/ssh/remote_command.h"

#include <fmt/format.h>

#include <cstring>
#include <sstream>

#include "ostro/base/text_parts.h"

namespace ostro::cluster {
namespace {

constexpr const char* kStartedWorker = "started worker process";
constexpr size_t kMostOfFirstLine = 1024;

}  // namespace

std::string home_word(const std::string& path) {
  if (path == "~") return "\"$HOME\"";
  return path.starts_with("~/") ? "\"$HOME\"/" + shell_word(path.substr(2)) : shell_word(path);
}

std::string remote_script(const RemoteWorker& worker) {
  std::string words;
  for (const std::string& word : worker.words) words += " " + shell_word(word);
  const std::string touch =
      worker.touched.empty() ? ":" : fmt::format("touch -c {} 2>/dev/null", shell_word(worker.touched));
  // SSH_CONNECTION: the client's address and port, then the server's.
  const std::string script = fmt::format(
      R"(while IFS= read -r line && [ -n "$line" ]; do export "$line"; done
cd {folder} || exit 1
{touch}
set -- $SSH_CONNECTION
[ $# -eq 4 ] || {{ echo "error: SSH_CONNECTION is '$SSH_CONNECTION': the server does not say from where ssh came" >&2; exit 1; }}
coordinator={address}; coordinator=${{coordinator:-$1}}
case $coordinator in *:*) coordinator="[$coordinator]";; esac
threads=$(($(nproc) / {workers})); [ "$threads" -ge 1 ] || threads=1
export OSTRO_THREADS="${{OSTRO_THREADS:-$threads}}"
exec 3<&0
{program} worker --coordinator "$coordinator:{port}" --bind "$3"{words} 0</dev/null 3<&- &
worker=$!
host=$(uname -n); echo "{started} $worker on $host" >&2
( while read -r line <&3; do {touch}; done; kill -TERM $worker; sleep 10; kill -KILL $worker ) >/dev/null 2>&1 &
watch=$!
wait $worker; status=$?
kill $watch 2>/dev/null
[ $status -le 128 ] || status={if_killed}
exit $status)",
      fmt::arg("folder", home_word(worker.folder)), fmt::arg("touch", touch),
      fmt::arg("address", shell_word(worker.address)), fmt::arg("workers", worker.workers),
      fmt::arg("program", shell_word(worker.program)), fmt::arg("started", kStartedWorker),
      fmt::arg("port", worker.port), fmt::arg("words", words), fmt::arg("if_killed", worker.if_killed));
  return "exec sh -c " + shell_word(script);
}

void RemoteProcesses::said(size_t place, std::string_view bytes) {
  std::string& line = lines_[place];
  for (const char c : bytes) {
    if (c != '\n') {
      if (line.size() < kMostOfFirstLine) line += c;
      continue;
    }
    std::istringstream words(line.starts_with(kStartedWorker) ? line.substr(std::strlen(kStartedWorker))
                                                              : "");
    line.clear();
    int64_t pid = 0;
    std::string on, host;
    if (words >> pid >> on >> host) workers_[place] = {host, pid};
  }
}

std::optional<size_t> RemoteProcesses::place_of(const std::string& host, int64_t pid) const {
  for (const auto& [place, worker] : workers_)
    if (worker == std::pair(host, pid)) return place;
  return std::nullopt;
}

}  // namespace ostro::cluster
