#include <doctest/doctest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "ostro/base/log.h"
#include "ostro/base/watch/fault_point.h"

using namespace ostro;

namespace {

// The wait status of a child that does `work` with OSTRO_FAULT set.
int run_faulty(const std::string& spec, const std::string& once, const std::function<void()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    set_log_sink([](LogLevel, std::string_view) {});
    ::setenv("OSTRO_FAULT", spec.c_str(), 1);
    ::setenv("OSTRO_FAULT_ONCE", once.c_str(), 1);
    work();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, WUNTRACED);
  if (WIFSTOPPED(status)) {  // it goes on
    ::kill(child, SIGCONT);
    int end = 0;
    ::waitpid(child, &end, WUNTRACED);
    CHECK(WIFEXITED(end));
    if (WIFSTOPPED(end)) ::kill(child, SIGKILL);
    CHECK(WEXITSTATUS(end) == 0);
  }
  return status;
}

void three_steps_of_two_workers() {
  for (int64_t step = 1; step <= 3; ++step)
    for (int64_t rank = 0; rank < 2; ++rank)
      for (const char* phase : {"leaf", "exchange", "update"}) fault_point(phase, step, rank);
}

int run_steps(const std::string& spec, const std::string& once = "") {
  return run_faulty(spec, once, three_steps_of_two_workers);
}

bool was_killed(int status) { return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL; }
bool ended_with(int status, int code) { return WIFEXITED(status) && WEXITSTATUS(status) == code; }

}  // namespace

TEST_CASE("a fault happens at its phase, step and rank and nowhere else") {
  CHECK(ended_with(run_steps(""), 0));
  CHECK(was_killed(run_steps("exchange:3:1:kill")));
  CHECK(was_killed(run_steps("exchange:*:*:kill")));
  CHECK(ended_with(run_steps("exchange:4:1:kill"), 0));
  CHECK(ended_with(run_steps("exchange:3:2:kill"), 0));
  CHECK(ended_with(run_steps("gather:3:1:kill"), 0));
  CHECK(ended_with(run_steps("leaf:1:0:exit"), 1));
  CHECK(ended_with(run_steps("leaf:*:1:exit=76"), 76));
  // The first that is reached, not the first of the list.
  CHECK(ended_with(run_steps("leaf:3:0:exit=7,update:2:1:exit=8"), 8));
  const int stopped = run_steps("leaf:2:1:stop");
  CHECK(WIFSTOPPED(stopped));
}

TEST_CASE("an entry of OSTRO_FAULT happens once") {
  const auto begin = std::chrono::steady_clock::now();
  CHECK(ended_with(run_steps("leaf:*:*:delay=40"), 0));
  CHECK(std::chrono::steady_clock::now() - begin >= std::chrono::milliseconds(40));
  const int stopped = run_steps("leaf:*:*:stop");  // six passes
  CHECK(WIFSTOPPED(stopped));
}

TEST_CASE("with OSTRO_FAULT_ONCE a fault happens once in all processes") {
  const std::string directory = "/tmp/ostro_fault_once_" + std::to_string(::getpid());
  std::filesystem::create_directory(directory);
  const std::string spec = "leaf:2:0:kill,update:2:0:exit=9,leaf:2:0:kill";
  CHECK(was_killed(run_steps(spec, directory)));
  CHECK(std::filesystem::exists(directory + "/0.leaf:2:0:kill"));
  CHECK(was_killed(run_steps(spec, directory)));  // the third entry, which is another one
  CHECK(ended_with(run_steps(spec, directory), 9));
  CHECK(ended_with(run_steps(spec, directory), 0));
  CHECK(was_killed(run_steps(spec)));  // without the directory the worker dies again
  std::filesystem::remove_all(directory);
}

TEST_CASE("a gate is passed once its file has the number of the step") {
  const std::string file = "/tmp/ostro_gate_" + std::to_string(::getpid());
  std::filesystem::remove(file);
  const auto begin = std::chrono::steady_clock::now();
  std::thread opens([&] {
    for (const char* number : {"1", "none", "2", "3"}) {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      std::ofstream(file) << number;
    }
  });
  CHECK(ended_with(run_steps("leaf:*:*:gate=" + file), 0));
  CHECK(std::chrono::steady_clock::now() - begin >= std::chrono::milliseconds(120));
  opens.join();
  CHECK(ended_with(run_steps("leaf:*:1:gate=" + file), 0));
  CHECK(ended_with(run_steps("gather:*:*:gate=/tmp/ostro_no_such_gate"), 0));
  std::filesystem::remove(file);
}

TEST_CASE("an OSTRO_FAULT that cannot be read ends the process") {
  for (const char* spec :
       {"leaf", "leaf:1:1", "leaf:1:1:kill:", "leef:1:1:kill", "leaf:x:1:kill", "leaf:1::kill",
        "leaf:1:-1:kill", "leaf:1:1:burn", "leaf:1:1:kill=1", "leaf:1:1:flip", "gradient:1:1:kill",
        "gradient:1:1:flip=x", "leaf:1:1:delay", "leaf:1:1:gate", "leaf:1:1:exit=256", ",leaf:1:1:kill"}) {
    CAPTURE(spec);
    const int status = run_faulty(spec, "", [] {
      ::signal(SIGABRT, SIG_DFL);  // not the one of doctest
      ::close(2);
      three_steps_of_two_workers();
    });
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == SIGABRT);
  }
}

TEST_CASE("a silent fault flips one bit at its phase, step and rank, once, and the worker goes on") {
  const auto flips = [](const std::string& spec) {
    return run_faulty(spec, "", [] {
      int count = 0;
      for (int64_t step = 1; step <= 3; ++step)
        for (int64_t rank = 0; rank < 2; ++rank) {
          std::byte bytes[4] = {};
          const bool told = fault_bytes("gradient", step, rank, bytes);
          int bits = 0;
          for (const std::byte b : bytes) bits += static_cast<int>(b);
          count += told && step == 2 && rank == 1 ? bits : (told ? 100 : bits);
          (void)fault_bytes("gradient", step, rank, {});
        }
      ::_exit(count);
    });
  };
  CHECK(ended_with(flips(""), 0));
  CHECK(ended_with(flips("gradient:2:1:flip"), 1));
  CHECK(ended_with(flips("gradient:2:1:flip=19"), 8));  // bit 3 of the third byte
  CHECK(ended_with(flips("gradient:2:1:flip=51"), 8));  // modulo 32
  CHECK(ended_with(flips("cell:2:1:flip"), 0));
}
