#include "ostro/objects/s3/lock_text.h"

#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <fstream>
#include <iterator>

#include "ostro/base/host_name.h"

namespace ostro::objects {
namespace {

constexpr std::string_view kSecondLine = "ostro lock 1, ";

std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// "BOOT/SPACE/": of processes with the same prefix this one sees each.
std::string here() {
  const std::string boot = boot_id(), space = own_namespace("pid");
  return boot.empty() || space.empty() ? "" : fmt::format("{}/{}/", boot, space);
}

// When process `pid` began, in ticks since the boot; "" if there is none. It is the 22nd word of its stat,
// the 20th after the name, which may have blanks and parentheses.
std::string start_of(const std::string& pid) {
  const std::string stat = content_of(fmt::format("/proc/{}/stat", pid));
  size_t at = stat.rfind(')');
  if (at == std::string::npos) return "";
  if (stat.substr(at).starts_with(") Z")) return "ended";  // its parent has not looked yet
  for (int i = 0; i < 20 && at != std::string::npos; ++i) at = stat.find(' ', at + 1);
  if (at == std::string::npos) return "";
  return stat.substr(at + 1, stat.find(' ', at + 1) - at - 1);
}

int64_t number_after(std::string_view line, std::string_view word, int64_t otherwise) {
  const size_t at = line.find(word);
  if (at == std::string_view::npos) return otherwise;
  int64_t value = 0;
  const char* const begin = line.data() + at + word.size();
  return std::from_chars(begin, line.data() + line.size(), value).ec == std::errc() ? value : otherwise;
}

}  // namespace

std::string LockText::text() const {
  return fmt::format("{}{}\n{}lease {} s, term {}, renewal {}, process {}\n", free ? kFreeLock : "", owner,
                     kSecondLine, lease, term, renewal, process);
}

LockText parse_lock_text(std::string_view text) {
  LockText lock;
  const size_t end = text.find('\n');
  std::string_view first = text.substr(0, end), second;
  if (end != std::string_view::npos) second = text.substr(end + 1);
  if (first.starts_with(kFreeLock)) {
    lock.free = true;
    first.remove_prefix(kFreeLock.size());
  }
  lock.owner = first;
  if (!second.starts_with(kSecondLine)) return lock;
  second = second.substr(0, second.find('\n'));
  lock.lease = number_after(second, "lease ", lock.lease);
  lock.term = number_after(second, "term ", 0);
  lock.renewal = number_after(second, "renewal ", 0);
  constexpr std::string_view kProcess = "process ";
  if (const size_t at = second.find(kProcess); at != std::string_view::npos)
    lock.process = second.substr(at + kProcess.size());
  return lock;
}

std::string this_process() {
  const std::string place = here(), pid = std::to_string(::getpid());
  return place.empty() ? "" : fmt::format("{}{}/{}", place, pid, start_of(pid));
}

HolderState state_of_process(const std::string& process) {
  const std::string place = here();
  if (place.empty() || !process.starts_with(place)) return HolderState::kElsewhere;
  const std::string rest = process.substr(place.size());
  const size_t slash = rest.find('/');
  if (slash == std::string::npos) return HolderState::kElsewhere;
  const std::string pid = rest.substr(0, slash), start = start_of(pid);
  const auto number = static_cast<pid_t>(number_after(pid, "", 0));
  // It is there, and what is said of it may not be read.
  if (start.empty() && number > 0 && (::kill(number, 0) == 0 || errno == EPERM))
    return HolderState::kElsewhere;
  return !start.empty() && start == rest.substr(slash + 1) ? HolderState::kAlive : HolderState::kGone;
}

}  // namespace ostro::objects
