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

// How a program has ended.
struct Ended {
  int status = 0;  // as waitpid() gives it
  int error = 0;   // errno of waitpid(): the status is not known; 0: it is
  enum class Killed { kNo, kLimit, kStop } killed = Killed::kNo;
};

// Waits for its end, and kills it when the limit has passed, or when it is to stop.
Ended wait_for(pid_t pid, const ProgramCall& call) {
  constexpr std::chrono::milliseconds kLook{10};
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + call.limit.value_or(std::chrono::milliseconds(0));
  const bool looks = call.limit || call.stop;
  Ended out;
  while (true) {
    const bool waits = !looks || out.killed != Ended::Killed::kNo;
    const pid_t ended = waitpid(pid, &out.status, waits ? 0 : WNOHANG);
    if (ended == pid) return out;
    if (ended < 0 && errno != EINTR) {
      out.error = errno;
      return out;
    }
    if (waits) continue;
    if (call.limit && Clock::now() >= until)
      out.killed = Ended::Killed::kLimit;
    else if (call.stop && call.stop())
      out.killed = Ended::Killed::kStop;
    else
      std::this_thread::sleep_for(kLook);
    if (out.killed != Ended::Killed::kNo) kill(-pid, SIGKILL);
  }
}

}  // namespace

Result<std::string> run_program(const std::vector<std::string>& words) {
  return run_program(ProgramCall{words, "", std::nullopt, {}});
}

Result<std::string> run_program(const ProgramCall& call) {
  const std::vector<std::string>& words = call.words;
  if (call.status != nullptr) call.status->reset();
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
  if (call.limit || call.stop) posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t pid = 0;
  const int failed = posix_spawnp(&pid, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (input >= 0) close(input);
  const Ended ended = failed == 0 ? wait_for(pid, call) : Ended();
  std::string text = output_of(output);
  close(output);
  if (failed != 0) return not_found(fmt::format("{} does not start: {}", words[0], std::strerror(failed)));
  if (ended.killed == Ended::Killed::kStop)
    return busy(fmt::format("{} was no longer wanted and was killed", words[0]));
  if (ended.killed == Ended::Killed::kLimit)
    return io_error(fmt::format("{} took longer than {:.1f} s and was killed", words[0],
                                std::chrono::duration<double>(*call.limit).count()));
  if (ended.error != 0)
    return io_error(
        fmt::format("how {} ended is not known: waitpid: {}; this process must not ignore SIGCHLD", words[0],
                    std::strerror(ended.error)));
  const int status = ended.status;
  if (call.status != nullptr && WIFEXITED(status)) *call.status = WEXITSTATUS(status);
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
