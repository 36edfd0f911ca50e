#include "ostro/base/run_program.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <thread>

extern char** environ;  // NOLINT(readability-redundant-declaration)

namespace ostro {
namespace {

constexpr size_t kOutputKept = size_t{1} << 20;
constexpr size_t kOutputTold = 400;

std::string output_of(int fd) {
  std::string text;
  char block[4096];
  while (text.size() < kOutputKept) {
    const ssize_t got = pread(fd, block, sizeof block, static_cast<off_t>(text.size()));
    if (got <= 0) break;
    text.append(block, static_cast<size_t>(got));
  }
  return text;
}

// A file in memory with the text, read from its beginning; -1: there is none.
int file_with(const std::string& text) {
  const int fd = memfd_create("input", MFD_CLOEXEC);
  if (fd < 0) return -1;
  const bool written = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (written && lseek(fd, 0, SEEK_SET) == 0) return fd;
  close(fd);
  return -1;
}

// The program's status, as waitpid() gives it; nothing when it was killed because the limit had passed.
std::optional<int> wait_for(pid_t pid, std::optional<std::chrono::milliseconds> limit) {
  constexpr std::chrono::milliseconds kLook{10};
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + limit.value_or(std::chrono::milliseconds(0));
  bool killed = false;
  while (true) {
    int status = 0;
    const pid_t ended = waitpid(pid, &status, limit && !killed ? WNOHANG : 0);
    if (ended == pid) return killed ? std::nullopt : std::optional(status);
    if (ended < 0 && errno != EINTR) return status;
    if (!limit || killed) continue;
    if (Clock::now() < until) {
      std::this_thread::sleep_for(kLook);
      continue;
    }
    killed = true;
    kill(-pid, SIGKILL);
  }
}

}  // namespace

Result<std::string> run_program(const std::vector<std::string>& words) {
  return run_program(ProgramCall{words, "", std::nullopt});
}

Result<std::string> run_program(const ProgramCall& call) {
  const std::vector<std::string>& words = call.words;
  // The output goes to a file in memory. It has no name, cannot fill a disk, and, unlike a pipe, is not held
  // open by a daemon that the program leaves behind (that of a compiler cache).
  const int output = memfd_create("output", MFD_CLOEXEC);
  if (output < 0)
    return io_error(fmt::format("no memory for {}'s output: {}", words[0], std::strerror(errno)));
  const int input = call.input.empty() ? -1 : file_with(call.input);
  if (!call.input.empty() && input < 0) {
    close(output);
    return io_error(fmt::format("no memory for {}'s input: {}", words[0], std::strerror(errno)));
  }
  std::vector<char*> argv;
  for (const std::string& w : words) argv.push_back(const_cast<char*>(w.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (input < 0)
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  else
    posix_spawn_file_actions_adddup2(&actions, input, 0);
  posix_spawn_file_actions_adddup2(&actions, output, 1);
  posix_spawn_file_actions_adddup2(&actions, output, 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  if (call.limit) posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t pid = 0;
  const int failed = posix_spawnp(&pid, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (input >= 0) close(input);
  const std::optional<int> ended = failed == 0 ? wait_for(pid, call.limit) : 0;
  std::string text = output_of(output);
  close(output);
  if (failed != 0) return not_found(fmt::format("{} does not start: {}", words[0], std::strerror(failed)));
  if (!ended)
    return io_error(fmt::format("{} took longer than {:.1f} s and was killed", words[0],
                                std::chrono::duration<double>(*call.limit).count()));
  const int status = *ended;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return text;
  text.resize(std::min(text.size(), kOutputTold));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return io_error(WIFEXITED(status)
                      ? fmt::format("{} ended with status {}: {}", words[0], WEXITSTATUS(status), text)
                      : fmt::format("{} was killed by signal {}: {}", words[0], WTERMSIG(status), text));
}

Result<std::string> own_path() {
  char path[PATH_MAX] = "";
  if (::readlink("/proc/self/exe", path, sizeof path - 1) < 0)
    return io_error("cannot read /proc/self/exe, the program that the workers run");
  return std::string(path);
}

// Of a program the dynamic loader has only the name that it was called by.
Result<std::string> code_path() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&own_path), &info) != 0 && info.dli_fname != nullptr)
    if (const std::string file = info.dli_fname; file.ends_with(".so")) return file;
  return own_path();
}

}  // namespace ostro
