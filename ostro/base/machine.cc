#include "ostro/base/machine.h"

#include <fmt/core.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <thread>

namespace ostro {
namespace {

// The number that a file begins with; nothing for "max", or if there is no such file.
std::optional<int64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  int64_t value = 0;
  return file >> value ? std::optional(value) : std::nullopt;
}

// The number after a name, in a file with a name and a number per line; 0 if it has none.
int64_t number_of(const std::string& path, const std::string& wanted) {
  std::ifstream file(path);
  int64_t value = 0;
  for (std::string name; file >> name >> value;)
    if (name == wanted) return value;
  return 0;
}

// Bytes; `name` is that of a line of /proc/meminfo.
std::optional<int64_t> meminfo(const std::string& root, std::string_view name) {
  const std::optional<std::string> value = value_in(root + "/proc/meminfo", name);
  int64_t kib = 0;
  if (value && std::istringstream(*value) >> kib) return kib * 1024;
  return std::nullopt;
}

// The files of a version of control groups that say how much memory a group may have and has.
struct GroupFiles {
  const char *limit, *usage;
  const char* given_back;  // in memory.stat: pages of files that the usage counts, and that a need takes back
};
constexpr GroupFiles kVersion1 = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
constexpr GroupFiles kVersion2 = {"memory.max", "memory.current", "inactive_file"};

// The memory that the limits of a group and of those above it leave; nothing if no limit is set.
std::optional<int64_t> left_in_groups(const std::string& top, std::string group, const GroupFiles& files) {
  std::optional<int64_t> least;
  while (true) {
    const std::string folder = top + group + "/";
    const auto limit = number_in(folder + files.limit), usage = number_in(folder + files.usage);
    if (limit && usage) {
      const int64_t used = std::max<int64_t>(0, *usage - number_of(folder + "memory.stat", files.given_back));
      const int64_t left = std::max<int64_t>(1, *limit - used);  // 0 would say: not known
      least = std::min(least.value_or(left), left);
    }
    const size_t slash = group.rfind('/');
    if (group.empty() || slash == std::string::npos) return least;
    group.resize(slash);
  }
}

// The addresses that this process may still map under its limit; nothing if it has none.
std::optional<int64_t> left_of_addresses() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  const int64_t pages = number_in("/proc/self/statm").value_or(0);  // the first number: mapped pages
  return std::max<int64_t>(1, static_cast<int64_t>(limit.rlim_cur) - pages * sysconf(_SC_PAGESIZE));
}

}  // namespace

std::optional<std::string> value_in(const std::string& path, std::string_view name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(name)) return line.substr(line.find(':') + 1);
  return std::nullopt;
}

std::vector<int> cpus_of_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  std::set<std::string> cores;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &set)) continue;
      std::ifstream file(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu));
      std::string siblings;
      if (!std::getline(file, siblings)) siblings = fmt::format("cpu{}", cpu);
      if (cores.insert(siblings).second) cpus.push_back(cpu);
    }
  } else {
    for (unsigned cpu = 0; cpu < std::thread::hardware_concurrency(); ++cpu)
      cpus.push_back(static_cast<int>(cpu));
  }
  if (cpus.empty()) cpus.push_back(0);
  return cpus;
}

Result<int> default_threads() {
  const char* text = std::getenv("OSTRO_THREADS");
  if (text == nullptr || *text == '\0') return static_cast<int>(cpus_of_cores().size());
  const std::string_view view(text);
  int threads = 0;
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), threads);
  if (error != std::errc() || end != view.data() + view.size() || threads < 1 || threads > 1024)
    return invalid_argument(fmt::format("OSTRO_THREADS is \"{}\"; give a number from 1 to 1024", view));
  return threads;
}

std::string processor_name() {
  const std::string value = value_in("/proc/cpuinfo", "model name").value_or("");
  const size_t begin = value.find_first_not_of(" \t");
  return begin == std::string::npos ? "unknown" : value.substr(begin);
}

int64_t total_memory() { return meminfo("", "MemTotal:").value_or(0); }

AvailableMemory available_memory(const std::string& root) {
  AvailableMemory out;
  if (const auto available = meminfo(root, "MemAvailable:")) out = {*available, "MemAvailable"};
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {  // "hierarchy:controllers:/group"
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool unified = controllers == ",,";
    if (!unified && controllers.find(",memory,") == std::string::npos) continue;
    std::string group = line.substr(second + 1);
    if (group == "/") group.clear();
    // In a container the group may be named as the host sees it; its files are then at the top.
    const auto left = unified ? left_in_groups(root + "/sys/fs/cgroup", group, kVersion2)
                              : left_in_groups(root + "/sys/fs/cgroup/memory", group, kVersion1);
    if (left && (out.bytes == 0 || *left < out.bytes)) out = {*left, "the limit of its control group"};
  }
  if (const auto left = root.empty() ? left_of_addresses() : std::nullopt)
    if (out.bytes == 0 || *left < out.bytes) out = {*left, "its limit of addresses (ulimit -v)"};
  return out;
}

}  // namespace ostro
