// Notices that a machine is about to be taken away: signals, files, commands.
#include "ostro/run/notice/notice_watch.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <thread>

#include "ostro/base/log.h"

namespace ostro::run {
namespace {

using train::TrainerOptions;

// A folder in which files appear.
struct Folder {
  Folder() {
    path = std::filesystem::temp_directory_path() / "ostro_notice_XXXXXX";
    REQUIRE(::mkdtemp(path.data()) != nullptr);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  void touch(const char* name) const { std::ofstream(path + "/" + name) << ""; }
  std::string path;
};

// The first reason that a watch gives when `begin` has been called.
std::string first_reason(const TrainerOptions& options, const std::function<void()>& begin,
                         const std::function<bool()>& signalled = {}) {
  std::promise<std::string> told;
  const NoticeWatch watch(options, {signalled, [&](const std::string& why) { told.set_value(why); }, {}});
  CHECK(!watch.asked());
  begin();
  auto reason = told.get_future();
  REQUIRE(reason.wait_for(std::chrono::seconds(300)) == std::future_status::ready);
  CHECK(watch.asked());
  return reason.get();
}

TEST_CASE("a file that appears, a command that succeeds and a signal are notices") {
  const Folder folder;
  TrainerOptions file;
  file.notice_file = folder.path + "/notice";
  CHECK(!notice_now(file));
  CHECK(first_reason(file, [&] { folder.touch("notice"); }) ==
        folder.path + "/notice is there (trainer.notice_file)");
  CHECK(notice_now(file));

  TrainerOptions command;
  command.notice_command = {"test", "-e", folder.path + "/it's $HOME"};  // no shell reads it
  CHECK(!notice_now(command));
  CHECK(first_reason(command, [&] { folder.touch("it's $HOME"); }) ==
        "test ended with status 0 (trainer.notice_command)");
  CHECK(notice_now(command));

  std::atomic<bool> signalled = false;
  CHECK(first_reason({}, [&] { signalled = true; }, [&] { return signalled.load(); }).empty());
}

TEST_CASE("when the grace is over, that is told once; without one never") {
  for (const bool limited : {true, false}) {
    TrainerOptions options;
    if (limited) options.notice_grace = config::Duration{0};  // the config refuses it; here it saves time
    std::atomic<int> late = 0;
    std::promise<void> asked;
    const NoticeWatch watch(
        options, {[] { return true; }, [&](const std::string&) { asked.set_value(); }, [&] { ++late; }});
    asked.get_future().wait();
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(300);
    while (limited && late == 0 && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::this_thread::sleep_for(std::chrono::milliseconds(limited ? 120 : 0));
    CHECK(late == (limited ? 1 : 0));
  }
}

TEST_CASE("a watch that ends kills its command") {
  const Folder folder;
  TrainerOptions options;
  const std::string pid_file = folder.path + "/pid";
  options.notice_command = {"sh", "-c", "echo $$ > \"$0\"; sleep 1000; exit 1", pid_file};
  int pid = 0;
  {
    const NoticeWatch watch(options, {});
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(300);
    while (pid == 0 && std::chrono::steady_clock::now() < until) std::ifstream(pid_file) >> pid;
    REQUIRE(pid > 0);
    CHECK(!watch.asked());
  }
  CHECK(::kill(pid, 0) != 0);
}

TEST_CASE("a command that is not there is no notice, and is told once") {
  std::string log;
  const LogSink before =
      set_log_sink([&](LogLevel, std::string_view line) { log += std::string(line) + "\n"; });
  TrainerOptions options;
  options.notice_command = {"no-such-program-of-ostro"};
  {
    const NoticeWatch watch(options, {});
  }
  set_log_sink(before);
  CHECK(log.find("trainer.notice_command: no-such-program-of-ostro does not start") != std::string::npos);
  CHECK(!notice_now(options));
}

TEST_CASE(
    "a command that is killed, as one that hangs is, has no answer, which is told; one that says no is not") {
  const Folder folder;
  std::promise<std::string> told;
  std::atomic<int> lines = 0;
  const LogSink before = set_log_sink([&](LogLevel, std::string_view line) {
    if (lines++ == 0) told.set_value(std::string(line));
  });
  TrainerOptions says_no;
  says_no.notice_command = {"sh", "-c", "echo > \"$0\"; exit 1", folder.path + "/ran"};
  CHECK(!notice_now(says_no));
  {
    const NoticeWatch watch(says_no, {});
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(300);
    while (!std::filesystem::exists(folder.path + "/ran") && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  CHECK(lines == 0);
  TrainerOptions killed;
  killed.notice_command = {"sh", "-c", "kill -9 $$"};
  auto line = told.get_future();
  {
    const NoticeWatch watch(killed, {});
    CHECK(line.wait_for(std::chrono::seconds(300)) == std::future_status::ready);
    CHECK(!watch.asked());
  }
  set_log_sink(before);
  REQUIRE(lines == 1);
  CHECK(line.get().find("trainer.notice_command: sh was killed by signal 9") != std::string::npos);
}

}  // namespace
}  // namespace ostro::run
