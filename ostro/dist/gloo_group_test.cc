#include "ostro/dist/gloo_group.h"

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <iterator>
#include <optional>
#include <thread>

#include "ostro/dist/gloo_play_for_test.h"
#include "ostro/dist/socket.h"

namespace ostro::dist {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// What happens at once, also on a busy machine; less than any limit of time after which it would happen too.
constexpr milliseconds kAtOnce{20'000};

TEST_CASE("threads connected by Gloo as a group") {
  for (const GroupCase& c : kGroupCases) SUBCASE(c.name) {
      c.check([](const ir::Mesh& mesh, const Work& work) { return run_gloo_workers(mesh, work); });
    }
}

TEST_CASE("abort ends an exchange that waits, at once, and all later ones") {
  for (int round = 0; round < 10; ++round) {
    std::promise<void> over;
    const std::shared_future<void> done = over.get_future().share();
    std::vector<std::string> errors(2);
    milliseconds took{};
    play(line(2), [&](int64_t rank, Result<std::unique_ptr<Group>> group) {
      if (rank == 1) return done.wait();  // it may see the end before it has connected
      if (!group.ok()) errors[0] = group.error().message();
      if (group.ok()) {
        Clock::time_point called;
        std::thread other([&] {
          std::this_thread::sleep_for(milliseconds(round));  // before, while and after it begins to wait
          called = Clock::now();
          (*group)->abort("superseded");
          (*group)->abort("too late");
        });
        const auto result = all(**group, "x", 1);
        errors[0] = result.ok() ? "no error" : result.error().message();
        const auto end = Clock::now();
        other.join();
        took = std::chrono::duration_cast<milliseconds>(end - called);
        errors[1] = text_of((*group)->exchange({}, {}, {}));
      }
      over.set_value();
    });
    CHECK(errors[0] == "worker 0: the group was aborted: superseded");
    CHECK(errors[1] == errors[0]);
    CHECK(took < kAtOnce);
  }
}

TEST_CASE("who leaves is missed only by those who exchange with it") {
  std::vector<std::string> errors(3);
  std::atomic<bool> gone = false;
  play(line(3), [&](int64_t rank, Result<std::unique_ptr<Group>> group) {
    std::string& error = errors[static_cast<size_t>(rank)];
    if (!group.ok()) {
      error = group.error().message();
      return;
    }
    error = text_of(swap_checked(**group, "x", [](int64_t, int64_t) { return 100'000; }, 0));
    if (rank == 2) {
      group->reset();
      gone = true;
      return;
    }
    // Workers 0 and 1 go on until worker 2 has closed its connections, both for the same number of rounds.
    const std::vector<int64_t> peer{1 - rank};
    for (bool last = false; !last && error.empty();) {
      const bool mine = gone;
      bool theirs = false;
      const std::vector<std::span<const std::byte>> send{std::as_bytes(std::span(&mine, 1))};
      const std::vector<std::span<std::byte>> receive{std::as_writable_bytes(std::span(&theirs, 1))};
      error = text_of((*group)->exchange(peer, send, receive));
      last = mine && theirs;
    }
    if (!error.empty()) return;
    const auto begin = Clock::now();
    const auto result = all(**group, "x", 1);
    error = result.ok() ? "no error" : result.error().message();
    if (Clock::now() - begin > kAtOnce) error += "(late)";
    if (all(**group, "x", 1).ok()) error += "(no error later)";
  });
  CHECK(errors[2].empty());
  CHECK_MESSAGE(errors[0].find("worker 0: lost worker ") == 0, errors[0]);
  CHECK_MESSAGE(errors[1].find("worker 1: lost worker ") == 0, errors[1]);
  CHECK(errors[0].find("late") == std::string::npos);
  CHECK(errors[1].find("late") == std::string::npos);
}

TEST_CASE("who leaves while the others wait for it is named at once") {
  std::vector<std::string> errors(3);
  const auto begin = Clock::now();
  play(line(3), [&](int64_t rank, Result<std::unique_ptr<Group>> group) {
    if (!group.ok() || rank == 2) return;
    const auto result = all(**group, "x", 1);
    errors[static_cast<size_t>(rank)] = result.ok() ? "no error" : result.error().message();
  });
  CHECK(Clock::now() - begin < kAtOnce);
  // One of the two may be told by the other, which has closed its connections.
  const std::string wanted = "lost worker 2: it left the group";
  CHECK_MESSAGE((errors[0] + errors[1]).find(wanted) != std::string::npos, (errors[0] + "; " + errors[1]));
  for (const std::string& error : {errors[0], errors[1]})
    CHECK(error.find(": lost worker ") != std::string::npos);
}

TEST_CASE("a worker that does not know the secret is refused by all") {
  std::vector<std::string> errors(3);
  play(
      line(3),
      [&](int64_t rank, Result<std::unique_ptr<Group>> group) {
        errors[static_cast<size_t>(rank)] = group.ok() ? "connected" : group.error().message();
      },
      [](int64_t rank) {
        GlooOptions options;
        options.secret = rank == 2 ? "guess" : "right";
        options.connect_timeout = milliseconds(5000);  // proofs arrive within it
        return options;
      });
  // It may leave after the first of them.
  const auto has = [&](size_t rank, std::string_view text) {
    return errors[rank].find(text) != std::string::npos;
  };
  for (const size_t rank : {size_t{0}, size_t{1}})
    CHECK_MESSAGE((has(rank, "worker 2 did not prove to worker") || has(rank, "no connection with worker 2")),
                  errors[rank]);
  CHECK((has(0, "did not prove") || has(1, "did not prove")));
  CHECK_MESSAGE(has(2, "did not prove to worker 2 that it knows the job's secret"), errors[2]);
}

TEST_CASE("what keeps workers from connecting is named") {
  MemoryKeyValue store;
  GlooOptions options;
  options.meet_timeout = milliseconds(100);
  const auto error = [](const Result<std::unique_ptr<Group>>& group) {
    return group.ok() ? "connected" : group.error().message();
  };
  CHECK(error(connect_gloo(line(2), 0, store, "a/", options)) ==
        "worker 0: waiting for worker 1: no value of a/address/1");
  CHECK(error(connect_gloo(line(3), 1, store, "a/", options)) ==
        "worker 1: worker 0 is one of 2 workers, worker 1 of 3");
  CHECK(error(connect_gloo(line(2), 2, store, "a/", options)) == "worker 2 of 2 workers");
  options.reach.bind = "nowhere.invalid";
  const std::string nowhere = error(connect_gloo(line(1), 0, store, "b/", options));
  CHECK_MESSAGE(nowhere.find("worker 0: host 'nowhere.invalid': ") == 0, nowhere);
  // One that stops waits no more.
  options = {};
  options.given_up = [] { return true; };
  CHECK(error(connect_gloo(line(2), 0, store, "c/", options)) == "worker 0: waiting for worker 1: given up");
}

// Named by an address that no interface of this machine has (RFC 5737).
TEST_CASE("an address of another machine is an error") {
  MemoryKeyValue store;
  GlooOptions options;
  options.reach.bind = "192.0.2.1";
  const std::vector<std::string> errors = outcomes(2, [&](int64_t) { return options; });
  CHECK_MESSAGE(errors[0].find("worker 0: cannot listen at 192.0.2.1: ") == 0, errors[0]);
  CHECK_MESSAGE(errors[1].find("worker 1: cannot listen at 192.0.2.1: ") == 0, errors[1]);
}

// Tells one worker that it is gone when that asks for addresses.
class Failing final : public KeyValue {
 public:
  explicit Failing(KeyValue& store) : store_(store) {}
  Status set(const std::string& key, std::string_view value) override { return store_.set(key, value); }
  Result<std::string> get(const std::string& key, milliseconds timeout) override {
    if (key.find("address") != std::string::npos) return io_error("the store is gone");
    return store_.get(key, timeout);
  }

 private:
  KeyValue& store_;
};

TEST_CASE("a worker that fails while it connects is missed by the others when their time is over") {
  MemoryKeyValue store;
  Failing failing(store);
  GlooOptions options;
  options.connect_timeout = milliseconds(5000);  // worker 2 misses worker 1 before worker 0 goes
  std::vector<std::string> errors(3);
  const auto begin = Clock::now();
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < 3; ++rank)
    threads.emplace_back([&, rank] {
      KeyValue& mine = rank == 1 ? static_cast<KeyValue&>(failing) : store;
      const auto group = connect_gloo(line(3), rank, mine, "c/", options);
      errors[static_cast<size_t>(rank)] = group.ok() ? "connected" : group.error().message();
    });
  for (std::thread& t : threads) t.join();
  CHECK(Clock::now() - begin < kAtOnce);
  CHECK(errors[1] == "worker 1: waiting for the addresses of the workers: the store is gone");
  // Worker 0 waits for connections, worker 2 makes them.
  CHECK_MESSAGE(errors[0].find("worker 0: no connection with worker ") == 0, errors[0]);
  CHECK_MESSAGE(errors[2].find("worker 2: lost worker 1: ") == 0, errors[2]);
}

// Lets strangers connect to a worker's port before any other worker knows of it.
class Scanned final : public KeyValue {
 public:
  Status set(const std::string& key, std::string_view value) override {
    const std::string text(value);
    const size_t host = text.find(' ') + 1, port = text.find(' ', host) + 1;
    for (int kind = 0; kind < 4; ++kind) {
      Socket stranger = begin_connect(text.substr(host, port - 1 - host), text.substr(port)).value().socket;
      pollfd there{stranger.fd(), POLLOUT, 0};
      ::poll(&there, 1, 10'000);
      // One says nothing, one half of a worker's word, one a whole one that proves nothing; one is gone.
      std::string word =
          kind == 1 ? "ostropr" : std::string(kind == 2 ? "ostropr1" : "GET / HTTP/1.1\r\n\r\n");
      if (kind == 2) word += std::string("\x02\0\0\0\0\0\0\0", 8) + std::string(64, 'x');
      if (kind > 0) (void)::send(stranger.fd(), word.data(), word.size(), MSG_NOSIGNAL);
      if (kind == 3) continue;
      const std::lock_guard lock(mutex_);  // several workers set their addresses at a time
      strangers_.push_back(std::move(stranger));
    }
    return store_.set(key, value);
  }
  Result<std::string> get(const std::string& key, milliseconds timeout) override {
    return store_.get(key, timeout);
  }

 private:
  MemoryKeyValue store_;
  std::mutex mutex_;
  std::vector<Socket> strangers_;
};

TEST_CASE("strangers who connect first keep no worker out") {
  Scanned store;
  std::vector<std::string> errors(3, "none");
  std::vector<std::thread> threads;
  std::mutex mutex;
  for (int64_t rank = 0; rank < 3; ++rank)
    threads.emplace_back([&, rank] {
      GlooOptions options;
      options.secret = "right";
      auto group = connect_gloo(line(3), rank, store, "scanned/", options);
      const auto got = group.ok() ? all(**group, "x", rank) : group.error();
      const std::lock_guard lock(mutex);
      errors[static_cast<size_t>(rank)] = !got.ok()                               ? got.error().message()
                                          : *got == std::vector<int64_t>{0, 1, 2} ? ""
                                                                                  : "wrong values";
    });
  for (std::thread& t : threads) t.join();
  CHECK(errors == std::vector<std::string>(3));
}

TEST_CASE("a connection counts the bytes that it moves, in both directions") {
  const Listener listener = listen_at("127.0.0.1", 4).value();
  const Socket from = begin_connect(listener.host, listener.port).value().socket;
  pollfd there{listener.socket.fd(), POLLIN, 0};
  REQUIRE(::poll(&there, 1, 20'000) == 1);
  const Socket to = accept_from(listener);
  break_when_silent(from, milliseconds(60'000));
  const int64_t sent = bytes_moved(from.fd()), received = bytes_moved(to.fd());
  REQUIRE(::send(from.fd(), "12345", 5, MSG_NOSIGNAL) == 5);
  there = {to.fd(), POLLIN, 0};
  REQUIRE(::poll(&there, 1, 20'000) == 1);
  CHECK(bytes_moved(to.fd()) == received + 5);
  const auto until = Clock::now() + kAtOnce;
  while (bytes_moved(from.fd()) != sent + 5 && Clock::now() < until) std::this_thread::yield();
  CHECK(bytes_moved(from.fd()) == sent + 5);
  CHECK(bytes_moved(-1) == 0);
}

TEST_CASE("a peer from which no byte comes is an error when the exchange's limit is over, and not before") {
  std::promise<void> over;
  std::string error;
  std::atomic<int> asked = 0;
  play(
      line(2),
      [&](int64_t rank, Result<std::unique_ptr<Group>> group) {
        if (rank == 1) return over.get_future().wait();
        const auto result = group.ok() ? all(**group, "x", 1) : group.error();
        error = result.ok() ? "no error" : result.error().message();
        over.set_value();
      },
      [&](int64_t rank) {
        GlooOptions options;
        // Without a limit it waits; the limit follows what is measured.
        if (rank == 0)
          options.exchange_limit = [&]() -> std::optional<milliseconds> {
            return ++asked < 3 ? std::nullopt : std::optional(milliseconds(100));
          };
        return options;
      });
  CHECK(error == "worker 0: worker 1 sends and takes nothing: no byte has moved for 0.1 s");
  CHECK(asked >= 3);
}

TEST_CASE("groups that come and go leave no files and threads behind") {
  const auto count = [](const char* folder) {
    return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
  };
  const auto cycle = [] {
    const Status status = run_gloo_workers(line(3), [](runtime::Collectives& c) -> Status {
      ASSIGN_OR_RETURN(const auto got, all(c, "x", c.rank()));
      return got == std::vector<int64_t>{0, 1, 2} ? Status() : Status(invalid_argument("wrong values"));
    });
    REQUIRE_MESSAGE(status.ok(), text_of(status));
  };
  cycle();
  const auto files = count("/proc/self/fd");
  const auto threads = count("/proc/self/task");
  for (int i = 0; i < 50; ++i) cycle();
  CHECK(count("/proc/self/fd") == files);
  // The system still lists a thread for a moment after it was joined, so the first count may be high, too.
  for (int i = 0; i < 300'000 && count("/proc/self/task") > threads; ++i)
    std::this_thread::sleep_for(milliseconds(1));
  CHECK(count("/proc/self/task") <= threads);
}

}  // namespace
}  // namespace ostro::dist
