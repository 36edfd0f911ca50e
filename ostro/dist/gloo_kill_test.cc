// Workers as processes, one of which is killed.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <thread>
#include <utility>

#include "ostro/dist/gloo_group.h"
#include "ostro/dist/group_cases_for_test.h"
#include "ostro/dist/key_value_for_test.h"

namespace ostro::dist {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kTimeout{30};

// Exchanges large messages until it fails. At round `fatal` another thread kills this process after the
// delay.
std::string work(int64_t rank, const std::filesystem::path& folder, int64_t fatal,
                 std::chrono::milliseconds delay, bool tls) {
  FolderKeyValue store(folder);
  GlooOptions options;
  options.secret = "secret";
  options.tls = tls;
  options.exchange_limit = [] { return kTimeout; };
  const auto group = connect_gloo({{{"x", 3}}}, rank, store, "kill/", options);
  if (!group.ok()) return group.error().message();
  const std::vector<int64_t> peers = (*group)->peers("x");
  const std::vector<std::byte> out(size_t{16} << 20);
  std::vector<std::vector<std::byte>> in(peers.size(), out);
  const std::vector<std::span<const std::byte>> send(peers.size(), out);
  const std::vector<std::span<std::byte>> receive(in.begin(), in.end());
  for (int64_t round = 0; round < 1000; ++round) {
    if (round == fatal)
      std::thread([delay] {
        std::this_thread::sleep_for(delay);
        ::kill(::getpid(), SIGKILL);
      }).detach();
    const auto begin = Clock::now();
    const Status status = (*group)->exchange(peers, send, receive);
    if (status.ok()) continue;
    const bool late = Clock::now() - begin > kTimeout / 3;
    return late ? "late: " + status.error().message() : status.error().message();
  }
  return "no error";
}

TEST_CASE("a worker that is killed in the middle of a message is missed at once by all") {
  // With TLS, too: it is carried by other threads.
  for (const auto& [delay, tls] : {std::pair(0, false), {3, false}, {10, false}, {0, true}, {5, true}}) {
    std::string folder = std::filesystem::temp_directory_path() / "ostro_gloo_kill_XXXXXX";
    REQUIRE(::mkdtemp(folder.data()) != nullptr);
    std::array<pid_t, 2> children{};
    for (size_t i = 0; i < children.size(); ++i) {
      children[i] = ::fork();
      REQUIRE(children[i] >= 0);
      if (children[i] > 0) continue;
      const int64_t rank = static_cast<int64_t>(i) + 1;
      const std::string error = work(rank, folder, rank == 1 ? 3 : -1, std::chrono::milliseconds(delay), tls);
      ::_exit(error.find("worker 2: lost worker ") == 0 ? 0 : 1);
    }
    const std::string error = work(0, folder, -1, {}, tls);
    std::array<int, 2> ends{};
    for (size_t i = 0; i < children.size(); ++i) CHECK(::waitpid(children[i], &ends[i], 0) == children[i]);
    std::filesystem::remove_all(folder);
    // The other survivor closes its connections too, so either may be the first that is missed.
    CHECK_MESSAGE(error.find("worker 0: lost worker ") == 0, error);
    CHECK((WIFSIGNALED(ends[0]) && WTERMSIG(ends[0]) == SIGKILL));
    CHECK((WIFEXITED(ends[1]) && WEXITSTATUS(ends[1]) == 0));
  }
}

}  // namespace
}  // namespace ostro::dist
