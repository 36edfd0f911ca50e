#include "ostro/base/machine.h"

#include <doctest/doctest.h>
#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "ostro/base/open_files.h"

namespace ostro {
namespace {

TEST_CASE("OSTRO_THREADS is the number of threads, else there is one a core") {
  CHECK(setenv("OSTRO_THREADS", "3", 1) == 0);
  CHECK(default_threads().value() == 3);
  for (const char* bad : {"0", "-1", "two", "3x", "4096"}) {
    CHECK(setenv("OSTRO_THREADS", bad, 1) == 0);
    CHECK(!default_threads().ok());
  }
  CHECK(unsetenv("OSTRO_THREADS") == 0);
  CHECK(default_threads().value() >= 1);
}

TEST_CASE("the limit of open files is raised as far as the system lets it, and never lowered") {
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const auto raised_from = [&](rlim_t soft) {
    const rlimit low{soft, before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &low) == 0);
    raise_open_files();
    rlimit now{};
    CHECK(::getrlimit(RLIMIT_NOFILE, &now) == 0);
    CHECK(now.rlim_max == before.rlim_max);
    return now.rlim_cur;
  };
  CHECK(raised_from(std::min<rlim_t>(256, before.rlim_max)) ==
        std::min<rlim_t>(before.rlim_max, kMostOpenFiles));
  CHECK(raised_from(before.rlim_cur) >= before.rlim_cur);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
}

TEST_CASE("memory is what the system has available, or what its control groups leave") {
  namespace stdfs = std::filesystem;
  const stdfs::path root = stdfs::temp_directory_path() / fmt::format("ostro_machine_test_{}", ::getpid());
  const auto put = [&root](const char* path, const char* text) {
    stdfs::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  };
  const auto memory = [&root] { return available_memory(root.string()); };
  CHECK(memory().bytes == 0);
  put("proc/meminfo", "MemTotal:       16000 kB\nMemAvailable:    8000 kB\n");
  CHECK(memory().bytes == 8000 * 1024);
  CHECK(memory().source == "MemAvailable");
  put("proc/self/cgroup", "9:name=systemd:/x\n0::/a/b\n");
  CHECK(memory().bytes == 8000 * 1024);
  put("sys/fs/cgroup/a/b/memory.max", "max\n");
  put("sys/fs/cgroup/a/b/memory.current", "1000000\n");
  CHECK(memory().bytes == 8000 * 1024);
  put("sys/fs/cgroup/a/memory.max", "5000000\n");
  put("sys/fs/cgroup/a/memory.current", "2000000\n");
  CHECK(memory().bytes == 3'000'000);
  CHECK(memory().source == "the limit of its control group");
  put("sys/fs/cgroup/a/memory.stat", "anon 1\nactive_file 7\ninactive_file 500000\n");
  CHECK(memory().bytes == 3'500'000);
  put("sys/fs/cgroup/a/memory.current", "6000000\n");
  CHECK(memory().bytes == 1);  // 0 would say: not known
  CHECK(memory().source == "the limit of its control group");
  put("proc/self/cgroup", "4:cpu,memory:/c\n");
  put("sys/fs/cgroup/memory/c/memory.limit_in_bytes", "9223372036854771712\n");
  put("sys/fs/cgroup/memory/c/memory.usage_in_bytes", "1000\n");
  CHECK(memory().bytes == 8000 * 1024);
  put("sys/fs/cgroup/memory/c/memory.limit_in_bytes", "2001000\n");
  CHECK(memory().bytes == 2'000'000);
  put("sys/fs/cgroup/memory/c/memory.stat", "inactive_file 1\ntotal_inactive_file 400\n");
  CHECK(memory().bytes == 2'000'400);
  stdfs::remove_all(root);
}

}  // namespace
}  // namespace ostro
