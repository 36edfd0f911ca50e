#include "ostro/base/net/look_up.h"

#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "ostro/base/log.h"

namespace ostro {
namespace {

using LookUpClock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kFirstPause{100}, kMostPause{2000};
constexpr std::chrono::seconds kUntilNotice{2};
constexpr std::chrono::seconds kStale{10};  // the age of an answer that nothing waited for any more

// Whether the text can be a name: not an address in numbers, or something close to one.
bool is_name(const std::string& host) {
  return !host.empty() && host.find_first_not_of("0123456789.") != std::string::npos &&
         host.find_first_of(": \t") == std::string::npos;
}

bool may_come(int failed) {
  return failed == EAI_AGAIN || failed == EAI_NONAME || failed == EAI_FAIL || failed == EAI_SYSTEM ||
         failed == EAI_NODATA;
}

// What the system's resolver was asked, and has answered.
struct Question {
  std::optional<Result<AddressList>> answer;
  LookUpClock::time_point answered;
};

struct Questions {
  std::mutex mutex;
  std::condition_variable answered;
  std::map<std::pair<std::string, int>, std::shared_ptr<Question>> by_place;  // whose answers none has taken
};

// It outlives main(), as threads that wait for a name server may.
Questions& open_questions() {
  static Questions& all = *new Questions;
  return all;
}

std::shared_ptr<Question> ask(const std::string& host, int port) {
  auto question = std::make_shared<Question>();
  std::thread([host, port, question] {
    auto found = look_up(host, port);
    Questions& all = open_questions();
    const std::lock_guard lock(all.mutex);
    question->answer = std::move(found);
    question->answered = LookUpClock::now();
    all.answered.notify_all();
  }).detach();
  return question;
}

}  // namespace

Result<AddressList> look_up(const std::string& host, int port, int flags) {
  if (port < 0 || port > 65535) return invalid_argument(fmt::format("{} is no port (0 to 65535)", port));
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int failed = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &list);
  if (failed == 0)
    return AddressList(list, [](const addrinfo* all) { ::freeaddrinfo(const_cast<addrinfo*>(all)); });
  const int error = errno;
  const std::string message = fmt::format(
      "host '{}': {}", host, failed == EAI_SYSTEM ? std::strerror(error) : ::gai_strerror(failed));
  const bool later = may_come(failed) && is_name(host) && (flags & AI_NUMERICHOST) == 0;
  return later ? not_found(message) : invalid_argument(message);
}

Result<AddressList> look_up_until(const std::string& host, int port, LookUpClock::time_point deadline) {
  auto numbers = look_up(host, port, AI_NUMERICHOST);
  if (numbers.ok() || !is_name(host)) return numbers;
  Questions& all = open_questions();
  std::unique_lock lock(all.mutex);
  std::shared_ptr<Question>& place = all.by_place[{host, port}];
  const bool stale = place && place->answer && LookUpClock::now() > place->answered + kStale;
  if (!place || stale) place = ask(host, port);
  const std::shared_ptr<Question> question = place;
  if (!all.answered.wait_until(lock, deadline, [&] { return question->answer.has_value(); }))
    return not_found(fmt::format("host '{}': the system's resolver has not answered yet", host));
  const auto open = all.by_place.find({host, port});
  if (open != all.by_place.end() && open->second == question) all.by_place.erase(open);
  return *question->answer;
}

Result<AddressList> look_up_late(const std::string& host, int port, const std::string& what,
                                 LookUpClock::time_point deadline) {
  const auto notice = LookUpClock::now() + kUntilNotice;
  bool told = false;
  auto pause = kFirstPause;
  for (int asked = 1;; ++asked) {
    auto list =
        look_up_until(host, port, std::min(deadline, std::max(notice, LookUpClock::now() + kMostPause)));
    if (list.ok() || list.error().code() != ErrorCode::kNotFound) return list;
    const auto now = LookUpClock::now();
    if (now >= deadline)
      return io_error(
          fmt::format("{}: {}; asked {} time{}", what, list.error().message(), asked, asked == 1 ? "" : "s"));
    if (now >= notice && !std::exchange(told, true))
      log_info(fmt::format("{}: the name has no address yet ({}): waiting for it, at most {} s more", what,
                           list.error().message(),
                           std::chrono::ceil<std::chrono::seconds>(deadline - now).count()));
    std::this_thread::sleep_until(std::min(deadline, now + pause));
    pause = std::min(kMostPause, pause * 2);
  }
}

bool is_loopback(const sockaddr& address) {
  constexpr uint32_t kLoopbackNet = 127;
  if (address.sa_family == AF_INET)
    return ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 24 == kLoopbackNet;
  return address.sa_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr) != 0;
}

}  // namespace ostro
