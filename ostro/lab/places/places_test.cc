// Steps that are done elsewhere, by a cluster that is a function.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/local_file_system.h"
#include "ostro/lab/places/elsewhere.h"

namespace ostro::lab {
namespace {

using How = AttemptEnd::How;

// Does what the next of `ends` says: each gets the number of the attempt.
struct DrawnCluster final : Cluster {
  Result<bool> has(const TaskFiles&) const override { return there; }
  Result<AttemptEnd> attempt(const TaskFiles& files, bool, const std::function<bool()>&) const override {
    ++attempts;
    return act(files, attempts);
  }
  Status cancel_waiting(const TaskFiles&) const override {
    ++cancelled;
    return {};
  }
  std::function<Result<AttemptEnd>(const TaskFiles&, int)> act;
  bool there = false;
  mutable int attempts = 0, cancelled = 0;
};

struct Place {
  Place() { std::filesystem::remove_all(folder); }
  ~Place() { std::filesystem::remove_all(folder); }

  std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("ostro_places_test_" + std::to_string(::getpid()));
  io::FileSystem& fs = io::local_file_system();
  TaskFiles files{folder.string(), "out/0123456789abcdef"};
  StepTask task{.attempt = {},
                .plan = "plan.yaml",
                .sanity = true,
                .step = "base[rate=0.1]",
                .fingerprint = "f",
                .folder = (folder / "out/0123456789abcdef").string(),
                .where = "/",
                .seeds = {"r", "b"},
                .made = {{"texts", {"f1", "c1", "", {{.path = "a b.txt", .size = 3, .mtime_ns = 4}}, {"h"}}},
                         {"rows", {"f2", "c2", "out/2", {}, {}}}},
                .argv = {"lab", "run"},
                .version = "1.2"};
  DrawnCluster cluster;
  int begun = 0;
  std::vector<bool> agains;
  bool stops = false, saves = true;

  Performed run() {
    return do_elsewhere(
        fs, cluster, files, task, saves,
        [&](bool again) {
          ++begun;
          agains.push_back(again);
          return fs.make_dirs(task.folder);
        },
        [&] { return stops; });
  }
  // Answers as the process of the task in the folder does.
  Result<AttemptEnd> answers(const Performed& performed) {
    const auto now = read_task(fs, files);
    REQUIRE(now.ok());
    REQUIRE(now->has_value());
    REQUIRE(write_answer(fs, files, {(*now)->attempt, performed, "no sandbox"}).ok());
    return AttemptEnd{How::kEnded, "answered"};
  }
  Result<AttemptEnd> gives(const std::string& content) { return answers(Performed(std::optional(content))); }
};

TEST_CASE("a task and an answer come back as they were") {
  Place place;
  REQUIRE(place.fs.make_dirs(place.files.directory).ok());
  CHECK(read_task(place.fs, place.files)->has_value() == false);
  place.task.attempt = new_attempt();
  CHECK(new_attempt() != place.task.attempt);
  REQUIRE(write_task(place.fs, place.files, place.task).ok());
  const auto back = read_task(place.fs, place.files);
  REQUIRE(back.ok());
  REQUIRE(back->has_value());
  const StepTask& task = **back;
  CHECK(task.attempt == place.task.attempt);
  CHECK(task.plan == "plan.yaml");
  CHECK(task.sanity);
  CHECK(task.step == "base[rate=0.1]");
  CHECK(task.folder == place.task.folder);
  CHECK(task.seeds.registration == "r");
  CHECK(task.seeds.beacon == "b");
  CHECK(task.argv == place.task.argv);
  CHECK(task.version == "1.2");
  CHECK(task.where == "/");
  REQUIRE(task.made.size() == 2);
  CHECK(task.made.at("texts").files == place.task.made.at("texts").files);
  CHECK(task.made.at("texts").pinned == std::vector<std::string>{"h"});
  CHECK(task.made.at("rows").folder == "out/2");
  place.task.step = "\xff";
  CHECK(write_task(place.fs, place.files, place.task).error().message().find("is no UTF-8") !=
        std::string::npos);
  REQUIRE(io::write_file_atomically(place.fs, place.files.task, "{}").ok());
  CHECK(read_task(place.fs, place.files).error().message().find("is no task of a step") != std::string::npos);

  const Performed failed = corrupt("bad \xff");
  REQUIRE(write_answer(place.fs, place.files, {"a", failed, ""}).ok());
  CHECK_FALSE(read_answer(place.fs, place.files, "b"));
  const auto answer = read_answer(place.fs, place.files, "a");
  REQUIRE(answer);
  REQUIRE_FALSE(answer->performed.ok());
  CHECK(answer->performed.error().code() == ErrorCode::kCorrupt);
  REQUIRE(write_answer(place.fs, place.files, {"a", std::optional<std::string>(), ""}).ok());
  CHECK_FALSE(read_answer(place.fs, place.files, "a")->performed->has_value());
}

TEST_CASE("an attempt that was lost is begun again, and one with an answer is not") {
  Place place;
  std::vector<std::string> attempts;
  place.cluster.act = [&](const TaskFiles& files, int number) -> Result<AttemptEnd> {
    attempts.push_back((*read_task(place.fs, files))->attempt);
    if (number == 1) return AttemptEnd{How::kTaken, "preempted"};
    if (number == 2) return AttemptEnd{How::kEnded, "crashed"};
    // An answer of an earlier attempt is none of this one.
    if (number == 3) {
      REQUIRE(write_answer(place.fs, files, {attempts[0], std::optional<std::string>("old"), ""}).ok());
      return AttemptEnd{How::kEnded, "crashed"};
    }
    return place.gives("content");
  };
  const Performed performed = place.run();
  REQUIRE(performed.ok());
  CHECK(*performed == "content");
  CHECK(place.cluster.attempts == 4);
  CHECK(place.begun == 4);
  CHECK(place.agains == std::vector<bool>{false, true, true, true});
  CHECK(attempts[0] != attempts[1]);
  CHECK_FALSE(sandboxed_there(place.fs, place.files).ok());
  // The next one takes the answer, wherever it does steps.
  CHECK(*place.run() == "content");
  CHECK(place.cluster.attempts == 4);
  const auto left = left_elsewhere(place.fs, place.files, place.task);
  REQUIRE(left.ok());
  REQUIRE(left->has_value());
  CHECK(***left == "content");
  // So it does when paths are typed in another way.
  StepTask typed = place.task;
  typed.where = place.folder.string();
  typed.folder = "out/0123456789abcdef";
  typed.plan = "/plan.yaml";
  CHECK(left_elsewhere(place.fs, place.files, typed)->has_value());
  // But not of another step.
  place.task.fingerprint = "g";
  CHECK(left_elsewhere(place.fs, place.files, place.task)->has_value() == false);
  CHECK_FALSE(*place.fs.exists(place.files.task));
  // Nothing stays but the lock.
  REQUIRE(write_task(place.fs, place.files, place.task).ok());
  REQUIRE(io::write_file_atomically(place.fs, place.files.environment, "A=secret").ok());
  place.task.fingerprint = "h";
  CHECK(left_elsewhere(place.fs, place.files, place.task)->has_value() == false);
  CHECK(place.fs.list(place.files.directory)->size() == 1);
}

TEST_CASE("failures, and attempts without an end") {
  Place place;
  place.cluster.act = [&](const TaskFiles&, int) { return place.answers(corrupt("bad data")); };
  Performed performed = place.run();
  CHECK(performed.error().message() == "bad data");
  CHECK(place.cluster.attempts == 1);
  place.cluster.act = [](const TaskFiles&, int) -> Result<AttemptEnd> {
    return AttemptEnd{How::kCancelled, "job 3 was cancelled"};
  };
  CHECK(place.run().error().message().find("job 3 was cancelled") != std::string::npos);
  place.cluster.act = [](const TaskFiles&, int) -> Result<AttemptEnd> {
    return AttemptEnd{How::kEnded, "crashed at last"};
  };
  place.cluster.attempts = 0;
  performed = place.run();
  CHECK(place.cluster.attempts == 4);
  CHECK(performed.error().message().find("4 times") != std::string::npos);
  CHECK(performed.error().message().find("crashed at last") != std::string::npos);
  place.cluster.act = [](const TaskFiles&, int) -> Result<AttemptEnd> { return io_error("no cluster"); };
  CHECK(place.run().error().message() == "no cluster");
  // Stopped by others, and without a part that was saved.
  place.cluster.act = [&](const TaskFiles&, int) {
    return place.answers(Performed(std::optional<std::string>()));
  };
  place.saves = false;
  place.cluster.attempts = 0;
  CHECK(place.run().error().message().find("4 times") != std::string::npos);
  place.saves = true;
  // Stopped: with and without an answer.
  place.cluster.act = [&](const TaskFiles&, int) {
    place.stops = true;
    return place.answers(Performed(std::optional<std::string>()));
  };
  CHECK_FALSE(place.run()->has_value());
  place.stops = true;
  place.cluster.attempts = 0;
  CHECK_FALSE(place.run()->has_value());
  CHECK(place.cluster.attempts == 0);
}

TEST_CASE("what an earlier driver has begun is taken over, and not done beside it") {
  Place place;
  REQUIRE(place.fs.make_dirs(place.files.directory).ok());
  place.task.attempt = "earlier";
  REQUIRE(write_task(place.fs, place.files, place.task).ok());
  {
    const auto lock = lock_task(place.fs, place.files);
    REQUIRE(lock.ok());
    const auto left = left_elsewhere(place.fs, place.files, place.task);
    CHECK(left.error().code() == ErrorCode::kBusy);
    CHECK(left.error().message().find("has begun this step elsewhere") != std::string::npos);
    place.cluster.there = true;
    place.cluster.act = [&](const TaskFiles& files, int) {
      CHECK((*read_task(place.fs, files))->attempt == "earlier");
      return place.gives("theirs");
    };
    CHECK(*place.run() == "theirs");
    CHECK(place.begun == 0);
    // Where the cluster knows no such process, it waits for the lock.
    place.cluster.there = false;
    int asked = 0;
    CHECK_FALSE(do_elsewhere(
                    place.fs, place.cluster, place.files, place.task, true, [](bool) { return Status(); },
                    [&] { return ++asked > 2; })
                    ->has_value());
  }
  REQUIRE(place.fs.make_dirs(place.task.folder).ok());
  CHECK(*place.run() == "theirs");
  CHECK(place.begun == 0);
}

TEST_CASE("an answer without its output is none") {
  Place place;
  int attempts = 0;
  place.cluster.act = [&](const TaskFiles&, int number) {
    attempts = number;
    return place.gives("content");
  };
  CHECK(*place.run() == "content");
  std::filesystem::remove_all(place.task.folder);
  CHECK(*place.run() == "content");
  CHECK(attempts == 2);
  CHECK(place.agains == std::vector<bool>{false, false});
  REQUIRE(discard_answer(place.fs, place.files).ok());
  CHECK_FALSE(*place.fs.exists(place.files.task));
  CHECK_FALSE(*place.fs.exists(place.files.answer));
  CHECK(discard_answer(place.fs, place.files).ok());
}

TEST_CASE("work that an earlier driver has begun is kept when its attempt is lost") {
  Place place;
  REQUIRE(place.fs.make_dirs(place.files.directory).ok());
  place.task.attempt = "earlier";
  REQUIRE(write_task(place.fs, place.files, place.task).ok());
  place.cluster.there = true;
  place.cluster.act = [&](const TaskFiles&, int number) -> Result<AttemptEnd> {
    if (number == 1) return AttemptEnd{How::kTaken, "preempted"};
    return place.gives("content");
  };
  CHECK(*place.run() == "content");
  CHECK(place.agains == std::vector<bool>{true});
  CHECK(place.cluster.cancelled == 0);
  // What waits for another step's task is ended.
  place.task.fingerprint = "g";
  CHECK(*place.run() == "content");
  CHECK(place.cluster.cancelled == 1);
}

}  // namespace
}  // namespace ostro::lab
