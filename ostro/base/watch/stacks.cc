#include "ostro/base/watch/stacks.h"

#include <cxxabi.h>
#include <execinfo.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

namespace ostro {
namespace {

constexpr int kMostFrames = 64;
constexpr std::chrono::milliseconds kPatience{200};

// The answer of a thread, written by the signal handler, which must not allocate.
struct Answer {
  std::atomic<pid_t> wanted{0};  // the thread that is asked; 0: none
  std::atomic<bool> done{false};
  std::array<void*, kMostFrames> frames{};
  int count = 0;
};
Answer answer;

void on_signal(int) {
  const int saved = errno;
  const auto self = static_cast<pid_t>(::syscall(SYS_gettid));
  // A thread that answers after its time limit is ignored: another one is asked by now.
  if (answer.wanted == self && !answer.done) {
    answer.count = ::backtrace(answer.frames.data(), kMostFrames);
    answer.done = true;
  }
  errno = saved;
}

// "program(_ZN5ostro3runEv+0x12) [0x55]" as "ostro::run()+0x12 [0x55]".
std::string readable(std::string_view line) {
  const size_t open = line.find('('), plus = line.find('+', open == std::string_view::npos ? 0 : open);
  if (open == std::string_view::npos || plus == std::string_view::npos || plus == open + 1)
    return std::string(line);
  const std::string mangled(line.substr(open + 1, plus - open - 1));
  int failed = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &failed), &std::free);
  if (failed != 0 || name == nullptr) return std::string(line);
  const size_t close = line.find(')', plus);
  return close == std::string_view::npos
             ? name.get()
             : fmt::format("{}{}{}", name.get(), line.substr(plus, close - plus), line.substr(close + 1));
}

std::vector<pid_t> threads() {
  std::vector<pid_t> out;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", failed))
    out.push_back(static_cast<pid_t>(std::atoi(entry.path().filename().c_str())));
  std::sort(out.begin(), out.end());
  return out;
}

std::string name_of(pid_t thread) {
  std::ifstream file(fmt::format("/proc/self/task/{}/comm", thread));
  std::string name;
  std::getline(file, name);
  return name;
}

// Sends the signal to a thread and waits until its handler has filled `answer`, or kPatience is over. Returns
// whether it answered.
bool ask(pid_t thread, int signal_number) {
  answer.count = 0;
  answer.done = false;
  answer.wanted = thread;
  if (::syscall(SYS_tgkill, ::getpid(), thread, signal_number) != 0) return false;
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (!answer.done && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  answer.wanted = 0;
  return answer.done;
}

}  // namespace

std::string thread_stacks() {
  std::array<void*, 4> warm_up{};
  (void)::backtrace(warm_up.data(), 4);  // the first call loads a library, which a handler must not
  const int number = SIGRTMIN + 6;
  struct sigaction action{}, before{};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  ::sigaction(number, &action, &before);
  std::string out;
  for (const pid_t thread : threads()) {
    if (thread == static_cast<pid_t>(::syscall(SYS_gettid))) continue;
    out += fmt::format("thread {} ({}){}\n", thread, name_of(thread),
                       thread == ::getpid() ? ", the main one" : "");
    if (!ask(thread, number)) {
      out += "  does not answer\n";
      continue;
    }
    const std::unique_ptr<char*, decltype(&std::free)> lines(
        ::backtrace_symbols(answer.frames.data(), answer.count), &std::free);
    // The first two frames are the handler and what the kernel puts below it.
    for (int i = 2; lines != nullptr && i < answer.count; ++i)
      out += fmt::format("  {}\n", readable(lines.get()[i]));
  }
  ::sigaction(number, &before, nullptr);
  return out;
}

}  // namespace ostro
