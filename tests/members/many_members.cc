// many_members: a coordinator in a process of its own, and many members in this one. They train nothing: in
// each epoch every member sets an address, gets those of all, and says that it has begun.
//
//   many_members     64 members, and 2 kills of the coordinator; with OSTRO_TEST_SIZE=full 1,024 and 30
//   many_members --coordinate PORT JOURNAL MEMBERS     the coordinator, which this program starts
//
// Shown: all join; a member that is lost is replaced, which changes the epoch; no kill of the coordinator
// ends an epoch; what the coordinator sends and keeps stays within bounds. Times are printed, and judged in
// the full form alone: 1,024 members join within 60 s, and a change takes less than 10 s.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ostro/base/log.h"
#include "ostro/base/run_program.h"
#include "ostro/base/test_size.h"
#include "ostro/cluster/coordinator.h"
#include "ostro/cluster/member.h"

using namespace ostro;
using Clock = std::chrono::steady_clock;

namespace {

constexpr std::chrono::minutes kPatience{10};  // for what must happen
constexpr const char* kSecret = "a secret of this test";

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "error: %s\n", why.c_str());
  std::_Exit(1);
}

// In the full form `seconds`, which `what` took, must be less than `most`. A sample says nothing of 1,024
// members, and runs on busy machines.
void judge(const char* what, double seconds, double most) {
  if (sized<bool>(false, true, true) && seconds >= most)
    fail(fmt::format("{} took {:.2f} s, and must take less than {:.0f} s", what, seconds, most));
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// What the coordinator tells: a line of four numbers, many times a second, behind one with its port.
struct Sight {
  int64_t epoch = 0, size = 0, goes_on = 0, bytes = 0;
};

int coordinate(int port, const std::string& journal, int64_t members) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  cluster::CoordinatorOptions options;
  options.port = port;
  options.secret = kSecret;
  options.min_workers = options.max_workers = members;
  options.lease = std::chrono::minutes(1);
  options.journal = journal;
  Result<std::unique_ptr<cluster::Coordinator>> started = cluster::Coordinator::start(options);
  for (int i = 0; !started.ok() && started.error().code() == ErrorCode::kBusy && i < 1000; ++i) {
    std::this_thread::sleep_for(
        std::chrono::milliseconds(10));  // the one before has been killed, and is not gone
    started = cluster::Coordinator::start(options);
  }
  if (!started.ok()) fail(started.error().message());
  std::printf("%d\n", (*started)->port());
  while (!(*started)->over()) {
    const cluster::JobState state = (*started)->watched();
    std::printf("%lld %lld %d %lld\n", static_cast<long long>(state.epoch),
                static_cast<long long>(state.size()), state.goes_on ? 1 : 0,
                static_cast<long long>(state.control_bytes));
    std::fflush(stdout);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  // Until the members have read that the run is over.
  for (int i = 0; i < 3000 && (*started)->members() > 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  return 0;
}

// The coordinator's process, and the last that it told.
class CoordinatorProcess {
 public:
  CoordinatorProcess(std::string journal, int64_t members)
      : journal_(std::move(journal)), members_(members) {}
  ~CoordinatorProcess() { end(0); }

  void start() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail("no pipe");
    std::vector<std::string> words = {own_path().value(), "--coordinate", std::to_string(port_), journal_,
                                      std::to_string(members_)};
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    if (::posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ) != 0) fail("no process");
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    std::FILE* told = ::fdopen(ends[0], "r");
    if (std::fscanf(told, "%d", &port_) != 1) fail("the coordinator does not start");
    sight_ = {};
    reader_ = std::thread([this, told] { read(told); });
  }

  // Waits for what it does by itself, or kills it.
  void end(int signal) {
    if (pid_ <= 0) return;
    if (signal != 0) ::kill(pid_, signal);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
    reader_.join();
  }

  template <typename F>
  Sight await(const std::string& what, F there) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, kPatience, [&] { return there(sight_); }))
      fail(fmt::format("{}: epoch {} of {} members, which {}", what, sight_.epoch, sight_.size,
                       sight_.goes_on != 0 ? "goes on" : "has ended"));
    return sight_;
  }

  int port() const { return port_; }
  // The most memory that it has had, in bytes.
  int64_t peak() const {
    std::ifstream status(fmt::format("/proc/{}/status", pid_));
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("VmHWM:")) return std::atoll(line.c_str() + 6) * 1024;
    return 0;
  }

 private:
  void read(std::FILE* told) {
    long long epoch = 0, size = 0, bytes = 0;
    int goes_on = 0;
    while (std::fscanf(told, "%lld %lld %d %lld", &epoch, &size, &goes_on, &bytes) == 4) {
      const std::lock_guard lock(mutex_);
      sight_ = {epoch, size, goes_on, bytes};
      changed_.notify_all();
    }
    std::fclose(told);
  }

  const std::string journal_;
  const int64_t members_;
  int port_ = 0;
  pid_t pid_ = -1;
  std::thread reader_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Sight sight_;
};

// The members, each with a thread.
class Crew {
 public:
  explicit Crew(int64_t size) : size_(size) {}

  void add(int port) {
    threads_.emplace_back(
        [this, port, number = static_cast<int64_t>(threads_.size())] { live(port, number); });
  }
  // One member goes without a word.
  void lose_one() { to_lose_ = 1; }
  // Waits until all members of an epoch after `epoch` have each other's addresses; returns its number.
  int64_t await_epoch_after(int64_t epoch) {
    std::unique_lock lock(mutex_);
    const auto whole = [&] {
      return !begun_.empty() && begun_.rbegin()->first > epoch && begun_.rbegin()->second == size_;
    };
    if (!changed_.wait_for(lock, kPatience, whole))
      fail(fmt::format("no epoch of {} members after {}", size_, epoch));
    return begun_.rbegin()->first;
  }
  void finish() {
    finishes_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  void live(int port, int64_t number) {
    const cluster::Hello hello{"job", {{"program", "p"}}, fmt::format("node{:04}", number), 1000 + number};
    auto joined = cluster::Member::join("127.0.0.1", port, kSecret, hello, kPatience);
    if (!joined.ok()) fail(joined.error().message());
    cluster::Member& member = **joined;
    int64_t last = 0;
    while (true) {
      // The first two look whether they are to go or to end the run.
      const auto epoch = member.wait_epoch(
          last, number < 2 ? std::chrono::milliseconds(50) : std::chrono::milliseconds(kPatience));
      if (!epoch.ok() && epoch.error().code() == ErrorCode::kNotFound) return;
      if (!epoch.ok() && epoch.error().code() != ErrorCode::kBusy) fail(epoch.error().message());
      if (epoch.ok()) {
        last = epoch->number;
        begin(member, *epoch);
      } else if (number == 0 && finishes_.exchange(false)) {
        member.done(0);
      } else if (number == 1 && to_lose_.exchange(0) == 1) {
        return;
      }
    }
  }

  void begin(cluster::Member& member, const cluster::Epoch& epoch) {
    const auto address = [&](int64_t rank) {
      return fmt::format("{} 10.20.30.{} 40{:03}", size_, rank % 256, rank);
    };
    dist::KeyValue& store = member.store(epoch.number);
    const std::string prefix = fmt::format("gloo/{}here/address/", epoch.number);
    if (!store.set(prefix + std::to_string(epoch.rank), address(epoch.rank)).ok()) return;
    const auto all = store.get_all(prefix, epoch.size, kPatience);
    if (!all.ok() && all.error().code() == ErrorCode::kBusy) fail(all.error().message());
    if (!all.ok()) return;  // the epoch has ended
    for (int64_t rank = 0; rank < epoch.size; ++rank)
      if ((*all)[static_cast<size_t>(rank)] != address(rank))
        fail(fmt::format("a wrong address of rank {}", rank));
    member.began(epoch.number);
    const std::lock_guard lock(mutex_);
    ++begun_[epoch.number];
    changed_.notify_all();
  }

  const int64_t size_;
  std::vector<std::thread> threads_;
  std::atomic<int> to_lose_ = 0;
  std::atomic<bool> finishes_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int64_t, int64_t> begun_;  // members with all addresses, by epoch
};

int run() {
  const auto members = sized<int64_t>(64, 1024, 1024);
  const auto kills = sized<int64_t>(2, 30, 30);
  std::string folder = std::filesystem::temp_directory_path() / "ostro_members_XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) fail("no folder");
  set_log_sink([](LogLevel, std::string_view) {});
  CoordinatorProcess coordinator(folder + "/journal", members);
  Crew crew(members);

  auto begin = Clock::now();
  coordinator.start();
  for (int64_t i = 0; i < members; ++i) crew.add(coordinator.port());
  int64_t epoch = crew.await_epoch_after(0);
  const double joined = seconds_since(begin);
  std::printf("%lld members joined and have all addresses after %.2f s\n", static_cast<long long>(members),
              joined);
  judge("joining", joined, 60);

  coordinator.await("the first epoch", [&](const Sight& s) { return s.size == members; });
  begin = Clock::now();
  crew.lose_one();
  // By then all answers of the first epoch are counted.
  const Sight before = coordinator.await("a loss", [&](const Sight& s) { return s.goes_on == 0; });
  crew.add(coordinator.port());
  epoch = crew.await_epoch_after(epoch);
  const double change = seconds_since(begin);
  const Sight after = coordinator.await("the next epoch",
                                        [&](const Sight& s) { return s.goes_on != 0 && s.size == members; });
  const double megabytes = static_cast<double>(after.bytes - before.bytes) / 1e6;
  const double peak = static_cast<double>(coordinator.peak()) / static_cast<double>(1 << 20);
  std::printf(
      "one was lost and replaced: epoch %lld after %.2f s, %.2f MB; the coordinator had %.0f MiB at most\n",
      static_cast<long long>(epoch), change, megabytes, peak);
  judge("a change of the epoch", change, 10);
  const double share = static_cast<double>(members) / 1024;
  if (const double most = 56 * share * share + 2 * share; megabytes > most)
    fail(fmt::format("{:.2f} MB went over the wire for an epoch, {:.2f} at most", megabytes, most));
  if (peak > 1024) fail(fmt::format("the coordinator had {:.0f} MiB, 1024 at most", peak));

  begin = Clock::now();
  for (int64_t i = 0; i < kills; ++i) {
    coordinator.end(SIGKILL);
    coordinator.start();
    const Sight back = coordinator.await("a new coordinator",
                                         [&](const Sight& s) { return s.goes_on != 0 && s.size == members; });
    if (back.epoch != epoch) fail(fmt::format("kill {}: epoch {} instead of {}", i, back.epoch, epoch));
  }
  std::printf("%lld kills of the coordinator: epoch %lld goes on, with all members after %.2f s each\n",
              static_cast<long long>(kills), static_cast<long long>(epoch),
              seconds_since(begin) / static_cast<double>(kills));
  crew.finish();
  coordinator.end(0);
  std::filesystem::remove_all(folder);
  std::printf("all members have ended\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  ::signal(SIGPIPE, SIG_DFL);
  if (argc == 5 && std::strcmp(argv[1], "--coordinate") == 0)
    return coordinate(std::atoi(argv[2]), argv[3], std::atoll(argv[4]));
  if (argc != 1) fail("unknown arguments; the head of this file names them");
  return run();
}
