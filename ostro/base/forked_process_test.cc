// Work in a process of its own: its answer, how it ended, and its limits.
#include "ostro/base/forked_process.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "ostro/base/process_limits.h"

namespace ostro {
namespace {

constexpr std::chrono::minutes kPatience{5};

// How the work ended, with the answer.
ForkedProcess::End ended(const std::function<std::string()>& work) {
  auto process = ForkedProcess::start(work);
  REQUIRE_MESSAGE(process.ok(), process.error().message());
  auto end = process->wait_for(kPatience);
  REQUIRE(end.has_value());
  return *end;
}

TEST_CASE("the answer of a process comes whole, with how it ended") {
  const std::string text(300'000, 'x');
  const auto done = ended([&] { return text + std::to_string(::getpgrp() == ::getpid()); });
  CHECK(done.answer == text + "1");
  CHECK((WIFEXITED(done.status) && WEXITSTATUS(done.status) == 0));
  const auto killed = ended([]() -> std::string {
    ::raise(SIGKILL);
    return "never";
  });
  CHECK(killed.answer.empty());
  CHECK((WIFSIGNALED(killed.status) && WTERMSIG(killed.status) == SIGKILL));
  const auto left = ended([]() -> std::string { ::_exit(7); });
  CHECK((WIFEXITED(left.status) && WEXITSTATUS(left.status) == 7));
}

TEST_CASE("what takes longer than its limit is killed with all that it started") {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  // The one that it starts holds the pipe open for as long as it lives.
  auto process = ForkedProcess::start([&]() -> std::string {
    if (::fork() == 0)
      for (;;) ::pause();
    (void)!::write(ends[1], "b", 1);
    for (;;) ::pause();
  });
  REQUIRE_MESSAGE(process.ok(), process.error().message());
  ::close(ends[1]);
  char byte = 0;
  REQUIRE(::read(ends[0], &byte, 1) == 1);  // it has started the other one
  CHECK_FALSE(process->wait_for(std::chrono::milliseconds(1)).has_value());
  CHECK(::read(ends[0], &byte, 1) == 0);  // no process holds it
  ::close(ends[0]);
}

TEST_CASE("a limit of processor time ends the process by its signal") {
  const auto done = ended([]() -> std::string {
    if (const Status set = limit_process({.cpu_seconds = 1, .addresses = {}, .writable = {}}); !set.ok())
      return set.error().message();
    for (;;) (void)::getppid();
  });
  CHECK_MESSAGE((WIFSIGNALED(done.status) && WTERMSIG(done.status) == SIGXCPU), done.answer);
}

TEST_CASE("the limits are hard ones") {
  const auto done = ended([]() -> std::string {
    constexpr int64_t kAddresses = int64_t{1} << 40, kSeconds = 1000;
    const Status set = limit_process({.cpu_seconds = kSeconds, .addresses = kAddresses, .writable = {}});
    if (!set.ok()) return set.error().message();
    rlimit time{}, addresses{};
    if (::getrlimit(RLIMIT_CPU, &time) != 0 || ::getrlimit(RLIMIT_AS, &addresses) != 0) return "getrlimit";
    return std::to_string(time.rlim_cur) + " " + std::to_string(time.rlim_max) + " " +
           std::to_string(addresses.rlim_max == static_cast<rlim_t>(kAddresses));
  });
  CHECK(done.answer == "1000 1005 1");
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("a limit of addresses is a lack of memory") {
  const auto maps = [](bool is_limited) -> std::string {
    constexpr int64_t kLimit = int64_t{8} << 30;
    constexpr size_t kAsked = size_t{9} << 30;
    if (is_limited)
      if (const Status set = limit_process({.cpu_seconds = {}, .addresses = kLimit, .writable = {}});
          !set.ok())
        return set.error().message();
    void* got = ::mmap(nullptr, kAsked, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return got == MAP_FAILED ? "refused" : "mapped";
  };
  CHECK(ended([&] { return maps(true); }).answer == "refused");
  CHECK(ended([&] { return maps(false); }).answer == "mapped");
}
#endif

TEST_CASE("files can be written where it is allowed, and nowhere else") {
  namespace files = std::filesystem;
  if (writing_limit() == WritingLimit::kNone) {
    MESSAGE("NOT RUN: this kernel has no Landlock");
    return;
  }
  const files::path top = files::temp_directory_path() / ("ostro_limits_" + std::to_string(::getpid()));
  const files::path shared = "/dev/shm/ostro_limits_" + std::to_string(::getpid());
  for (const char* folder : {"in", "out"}) files::create_directories(top / folder);
  std::ofstream(top / "out/old") << "old";
  const auto writes = [](const files::path& path) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT, 0600);
    if (fd >= 0) ::close(fd);
    return fd >= 0 ? "1" : "0";
  };
  const auto tries = [&](bool is_limited) -> std::string {
    const std::string in = (top / "in").string();
    if (is_limited)
      if (const Status set = limit_process({.cpu_seconds = {}, .addresses = {}, .writable = {{in}}});
          !set.ok())
        return set.error().message();
    std::string out = writes(top / "in/new");
    out += writes(top / "out/new");
    out += writes(top / "out/old");
    std::ifstream old(top / "out/old");
    std::string text;
    old >> text;
    std::error_code failed;
    out += files::create_directory(top / "out/folder", failed) ? "1" : "0";
    out += text;
    out += writes("/dev/null");
    return out + (files::exists(shared) ? writes(shared) : is_limited ? "0" : "1");
  };
  std::ofstream(shared) << "of another program";
  CHECK(ended([&] { return tries(true); }).answer == "1000old10");
  CHECK_FALSE(files::exists(top / "out/new"));
  CHECK(ended([&] { return tries(false); }).answer == "1111old11");
  files::remove(shared);
  const auto missing = ended([&]() -> std::string {
    const Status set =
        limit_process({.cpu_seconds = {}, .addresses = {}, .writable = {{(top / "none").string()}}});
    return set.ok() ? "" : set.error().message();
  });
  CHECK_MESSAGE(missing.answer.find("none: No such file") != std::string::npos, missing.answer);
  files::remove_all(top);
}

}  // namespace
}  // namespace ostro
