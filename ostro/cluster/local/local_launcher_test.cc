// The launcher's decisions, with shells in the place of workers.
#include "ostro/cluster/local/local_launcher.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include "ostro/base/log.h"

namespace ostro::cluster {
namespace {

using std::chrono::milliseconds;

// Shells that run the script in a folder of their own, and the log.
struct Shells {
  explicit Shells(const std::string& script, int64_t count, int64_t least) {
    folder = std::filesystem::temp_directory_path() / "ostro_launcher_XXXXXX";
    REQUIRE(::mkdtemp(folder.data()) != nullptr);
    workers.command = {"/bin/sh", "-c", "cd " + folder + "\n" + script};
    workers.count = count, workers.least = least;
    workers.rest = milliseconds(10);
    old_sink = set_log_sink([this](LogLevel, std::string_view line) { log += std::string(line) + "\n"; });
  }
  ~Shells() {
    set_log_sink(std::move(old_sink));
    std::filesystem::remove_all(folder);
  }
  int run() { return run_local_workers(workers).value(); }

  std::string folder, log;
  LocalWorkers workers;
  LogSink old_sink;
};

// The first to make a folder fails; the second waits for a third, which comes in the place of the first.
constexpr const char* kOneFails = R"(
mkdir first 2> /dev/null && exit 3
mkdir second 2> /dev/null && { while [ ! -e third ]; do sleep 0.01; done; exit 0; }
touch third
exit 77)";

TEST_CASE("a worker that fails leaves alone, and another is tried in its place") {
  Shells shells(kOneFails, 2, 1);
  CHECK(shells.run() == 0);
  CHECK_MESSAGE(shells.log.find("ended with status 3; the others go on") != std::string::npos, shells.log);
}

TEST_CASE("a job that has made progress has patience with its workers, one at its start has not") {
  for (const bool progress : {false, true}) {
    Shells shells(kOneFails, 2, 2);
    shells.workers.progress = [progress] { return progress ? 5 : 0; };
    bool stopped = false;
    shells.workers.stop = [&] { stopped = true; };
    shells.workers.stop_grace = milliseconds(0);
    CHECK(shells.run() == (progress ? 0 : 3));
    CHECK(stopped == !progress);  // so that the other may save
  }
  Shells shells("exit 4", 3, 2);
  shells.workers.progress = [] { return 1; };
  CHECK(shells.run() == 4);
  CHECK_MESSAGE(shells.log.find("are needed") != std::string::npos, shells.log);
}

TEST_CASE("the status of a job that has ended is its own, not that of a worker") {
  Shells shells("exit 5", 2, 1);
  shells.workers.over = [] { return std::optional(1); };
  CHECK(shells.run() == 1);
  CHECK(shells.log.find("go on") == std::string::npos);
}

TEST_CASE("a worker that fails when another has ended says nothing of a job that has a status of its own") {
  // The second fails when the end of the first has been noticed.
  constexpr const char* kFailsLater = R"(
mkdir first 2> /dev/null && { echo $$ > pid; exit 0; }
while [ ! -s pid ]; do sleep 0.01; done
while kill -0 $(cat pid) 2> /dev/null; do sleep 0.01; done
exit 3)";
  for (const auto& [own, wanted] : {std::pair(std::optional(0), 0), {1, 1}, {std::nullopt, 3}}) {
    CAPTURE(wanted);
    Shells shells(kFailsLater, 2, 1);
    shells.workers.over = [status = own] { return status; };
    CHECK(shells.run() == wanted);
  }
}

TEST_CASE("workers that are asked to stop and do not are ended when the grace is over") {
  Shells shells("exec sleep 1000", 2, 1);
  shells.workers.stopping = [] { return true; };
  shells.workers.stop_grace = milliseconds(50);
  CHECK(shells.run() == 1);
  CHECK_MESSAGE(shells.log.find("not saved within 0 s (trainer.stop_timeout)") != std::string::npos,
                shells.log);
}

TEST_CASE("a worker that is lost while the job stops is not replaced; one that has saved says so") {
  // The stop is wanted when both no longer mind SIGTERM; the second ends when the loss of the first has been
  // noticed.
  Shells shells(R"(
trap '' TERM
mkdir first 2> /dev/null && { echo $$ > pid; while [ ! -e second ]; do sleep 0.01; done; touch both; kill -9 $$; }
while [ ! -s pid ]; do sleep 0.01; done
touch second
while kill -0 $(cat pid) 2> /dev/null; do sleep 0.01; done
exit 75)",
                2, 1);
  shells.workers.stopping = [&] { return std::filesystem::exists(shells.folder + "/both"); };
  CHECK(shells.run() == 75);
  CHECK(shells.log.find("takes its place") == std::string::npos);
  Shells all_lost("kill -9 $$", 2, 1);
  all_lost.workers.stopping = [] { return true; };
  CHECK(all_lost.run() == 1);
}

TEST_CASE(
    "a job that is stopped when all its workers have left is interrupted; one of which a worker was lost is "
    "not") {
  for (const bool is_lost : {false, true}) {
    CAPTURE(is_lost);
    Shells shells(is_lost ? "mkdir first 2> /dev/null && exit 77; kill -9 $$" : "exit 77", 2, 1);
    shells.workers.stopping = [] { return true; };
    CHECK(shells.run() == (is_lost ? 1 : kExitInterrupted));
  }
  // They would be tried again after a minute; the job stops before.
  Shells waits("echo x >> all; exit 77", 2, 1);
  waits.workers.back_after = std::chrono::hours(1);
  bool stops = false;
  waits.workers.stopping = [&] { return stops; };
  waits.workers.look = [&] {
    std::ifstream in(waits.folder + "/all");
    const std::string all{std::istreambuf_iterator<char>(in), {}};
    stops = all.size() == 4 && waits.log.find("has left") != waits.log.rfind("has left");
  };
  CHECK(waits.run() == kExitInterrupted);
}

TEST_CASE("a machine on which workers fail is left out with all its places, and tried again") {
  // Places 0 and 1 are on one machine, which fails until it is left out; the worker of place 2 waits until
  // both have been tried again, and have left.
  Shells shells(R"(
[ "$1" = other ] && { while [ ! -e end ]; do sleep 0.01; done; exit 0; }
[ -e out ] && exit 77
exit 3)",
                3, 1);
  shells.workers.more = {{"sh", "bad"}, {"sh", "bad"}, {"sh", "other"}};
  shells.workers.names = {" on bad", " on bad", " on other"};
  shells.workers.machines = {0, 0, 1};
  shells.workers.left_out_after = 3;
  shells.workers.left_out_for = milliseconds(30);
  shells.workers.look = [&] {
    if (shells.log.find("left out after 3 failures in a row") != std::string::npos)
      std::ofstream(shells.folder + "/out") << "";
    if (shells.log.find("on bad has left") != shells.log.rfind("on bad has left"))
      std::ofstream(shells.folder + "/end") << "";
  };
  CHECK(shells.run() == 0);
  CHECK_MESSAGE(shells.log.find("on bad ended with status 3; the machine is left out after 3 failures in a "
                                "row, and tried again in 0 s; the others go on") != std::string::npos,
                shells.log);
  CHECK_MESSAGE(shells.log.find("on bad has left") != std::string::npos, shells.log);
  // Without the rule it is tried again and again.
  Shells patient("[ -e five ] && exit 0; echo x >> all; [ $(wc -l < all) -lt 5 ] || touch five; exit 3", 1,
                 0);
  patient.workers.progress = [] { return 1; };
  CHECK(patient.run() == 0);
  CHECK(patient.log.find("left out") == std::string::npos);
}

TEST_CASE("a machine that lacks something waits for it, and is tried at once when it has got it") {
  Shells shells(R"(
[ "$1" = other ] && { while [ ! -e end ]; do sleep 0.01; done; exit 0; }
[ -e has ] && { touch end; exit 77; }
exit 3)",
                2, 1);
  shells.workers.more = {{"sh", "lacks"}, {"sh", "other"}};
  shells.workers.machines = {0, 1};
  shells.workers.left_out_after = 1;
  shells.workers.left_out_for = std::chrono::hours(1);
  int asked = 0, failed = 0;
  shells.workers.ready = [&](size_t machine) { return machine == 1 || failed > 0 || ++asked > 3; };
  shells.workers.failed = [&](size_t machine) { failed += machine == 0 ? 1 : 100; };
  shells.workers.mended = [&]() -> std::vector<size_t> {
    if (failed != 1 || std::filesystem::exists(shells.folder + "/has")) return {};
    std::ofstream(shells.folder + "/has") << "";
    return {0};
  };
  CHECK(shells.run() == 0);
  CHECK(asked == 4);
  CHECK(failed == 1);
  CHECK_MESSAGE(shells.log.find("the machine is left out after 1 failures") != std::string::npos, shells.log);
}

TEST_CASE("a worker is told by line feeds that its launcher runs") {
  const auto before = ::signal(SIGPIPE, SIG_IGN);
  Shells shells("read -r first; read -r second && read -r third && exit 0", 1, 1);
  shells.workers.input = "x\n";
  shells.workers.line_feed_every = milliseconds(10);
  CHECK(shells.run() == 0);
  ::signal(SIGPIPE, before);
}

TEST_CASE("a machine whose workers are found corrupt is left out, however long they ran") {
  for (const int code : {kExitCorrupt, 3}) {
    CAPTURE(code);
    Shells shells(R"(
[ "$1" = other ] && { while [ ! -e enough ]; do sleep 0.01; done; exit 0; }
[ -e enough ] && exit 77
exit )" + std::to_string(code),
                  2, 1);
    shells.workers.more = {{"sh", "bad"}, {"sh", "other"}};
    shells.workers.machines = {0, 1};
    shells.workers.left_out_after = 3;
    shells.workers.left_out_for = milliseconds(30);
    shells.workers.lived = milliseconds(0);  // each has run for longer
    shells.workers.progress = [] { return 1; };
    // The other one ends when the launcher has seen four of them fail, so that it ends the job.
    shells.workers.look = [&] {
      int failed = 0;
      for (size_t at = 0; (at = shells.log.find("ended with status", at)) != std::string::npos; ++at)
        ++failed;
      if (failed >= 4) std::ofstream(shells.folder + "/enough") << "";
    };
    CHECK(shells.run() == 0);
    const bool left_out = shells.log.find("left out after 3 failures in a row") != std::string::npos;
    CHECK_MESSAGE(left_out == (code == kExitCorrupt), shells.log);
  }
}

TEST_CASE("where workers that have left come back, another is tried in their place") {
  Shells shells("mkdir first 2> /dev/null && exit 77; exit 0", 1, 1);
  shells.workers.back_after = milliseconds(10);
  CHECK(shells.run() == 0);
  CHECK_MESSAGE(shells.log.find("another is tried in its place in 0 s") != std::string::npos, shells.log);
}

TEST_CASE("a silent worker is killed by its place, and its standard error is kept") {
  Shells shells(R"(
mkdir first 2> /dev/null && { echo "silent from here" >&2; touch silent; exec sleep 1000; }
echo "the second" >&2)",
                1, 1);
  shells.workers.output_folder = shells.folder + "/kept";
  std::string said;
  shells.workers.said = [&](size_t place, std::string_view bytes) {
    said += std::to_string(place) + ":" + std::string(bytes);
  };
  bool told = false;
  shells.workers.hopeless_places = [&]() -> std::vector<size_t> {
    if (told || said.empty()) return {};
    told = true;
    return {0};
  };
  CHECK(shells.run() == 0);
  CHECK(said == "0:silent from here\n0:the second\n");
  CHECK_MESSAGE(shells.log.find("is silent: its process is killed") != std::string::npos, shells.log);
  std::ifstream in(shells.folder + "/kept/worker-0.log");
  const std::string kept{std::istreambuf_iterator<char>(in), {}};
  CHECK_MESSAGE(kept.find(" silent from here\n") != std::string::npos, kept);
  CHECK_MESSAGE(kept.find(" the second\n") != std::string::npos, kept);
}

TEST_CASE("workers are the program that the launcher is, also when its file was replaced") {
  Shells shells("exit 0", 1, 1);
  shells.workers.program = "/bin/sh";
  shells.workers.command[0] = shells.folder + "/gone";
  CHECK(shells.run() == 0);
}

}  // namespace
}  // namespace ostro::cluster
