// What the coordinator knows of a job, for people.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "ostro/base/log.h"
#include "ostro/cluster/watch/cluster_file.h"
#include "ostro/cluster/watch/overheard.h"
#include "ostro/io/files/memory_file_system.h"

namespace ostro::cluster {
namespace {

Progress at_step(int64_t step, int64_t compute_microseconds, int64_t leaves = 2) {
  return {.epoch = 1,
          .step = step,
          .phase = "leaf",
          .compute_microseconds = compute_microseconds,
          .work = leaves};
}

TEST_CASE("a progress that makes no sense is not sane") {
  CHECK(at_step(3, 100).sane());
  CHECK(Progress().sane());
  CHECK_FALSE(at_step(-1, 100).sane());
  CHECK_FALSE(at_step(3, int64_t{1} << 60).sane());
  for (const char* phase : {"a phase that is longer than 32 bytes are", "Leaf", "leaf\n", "<b>"}) {
    Progress progress = at_step(3, 100);
    progress.phase = phase;
    CHECK_FALSE(progress.sane());
  }
}

TEST_CASE("shares that a leader tells are an event of their own, and no last word") {
  JobWatch watch;
  watch.joined(1, "job", "here", 10);
  watch.says(1, std::string(kSharesWord) + "leaves are shared out by speed");
  watch.says(1, "it fails");
  const std::vector<JobEvent> events = watch.state().events;
  REQUIRE(events.size() == 3);
  CHECK(events[1].kind == "shares");
  CHECK(events[1].text == "leaves are shared out by speed");
  CHECK(events[2].kind == "error");
}

TEST_CASE("a worker straggles when it is slow for a leaf in every report over 20 steps") {
  Stragglers stragglers;
  int64_t named = 0, named_at = 0;
  for (int64_t step = 1; step <= 60; step += 5) {
    stragglers.report(1, at_step(step, 1000));
    stragglers.report(2, at_step(step, 1900, 4));  // more leaves, not slower
    if (stragglers.report(3, at_step(step, 1600))) ++named, named_at = step;
  }
  CHECK(named == 1);
  CHECK(named_at == 21);
  CHECK(stragglers.straggles(3));
  CHECK_FALSE(stragglers.straggles(1));
  CHECK(stragglers.ratio(3) == doctest::Approx(1.6));
  stragglers.report(3, at_step(61, 1100));  // it has caught up
  CHECK_FALSE(stragglers.straggles(3));
  // One quick step in between, and it is not consistently slow.
  for (int64_t step = 66; step <= 140; step += 5)
    CHECK_FALSE(stragglers.report(3, at_step(step, step % 20 == 6 ? 1000 : 1600)));
}

TEST_CASE("a step is done when a worker tells of a later one") {
  const LogSink before = set_log_sink([](LogLevel, std::string_view) {});
  JobWatch watch;
  watch.joined(1, "runs/a", "one", 11);
  watch.joined(2, "runs/a", "two", 12);
  watch.report(1, at_step(0, 100));
  watch.report(1, at_step(7, 100));  // where it begins
  watch.report(2, at_step(7, 100));
  watch.report(2, at_step(7, 100));
  CHECK(watch.steps_done() == 0);
  watch.report(2, at_step(8, 100));
  CHECK(watch.steps_done() == 1);
  watch.gone(2, "killed");
  watch.joined(3, "runs/a", "two", 13);
  watch.report(3, at_step(8, 100));  // another worker begins
  CHECK(watch.steps_done() == 1);
  set_log_sink(before);
}

TEST_CASE("what a process says is passed on, and the end of it kept") {
  const auto heard = [](const std::string& text) {
    int ends[2];
    REQUIRE(::pipe2(ends, O_NONBLOCK) == 0);
    Overheard said(ends[0]);
    REQUIRE(::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    std::string also;
    said.read([&](std::string_view bytes) { also += bytes; });
    ::close(ends[1]);
    said.read({});
    CHECK(also == text);
    return said.last_words();
  };
  CHECK(heard("one line\n  and another\n") == "its last words: one line and another");
  CHECK(heard(std::string(5000, 'a') + " the end") ==
        "its last words: " + std::string(592, 'a') + " the end");
  CHECK(heard("") == "it said nothing");
  CHECK(Overheard().last_words() == "what it said is above");
}

TEST_CASE("cluster.json holds what happened and reads back") {
  const LogSink before = set_log_sink([](LogLevel, std::string_view) {});
  JobWatch watch;
  watch.joined(1, "runs/a", "host \"one\"", 11);
  watch.joined(2, "runs/a", "two", 12);
  watch.look(3, 3, [](int64_t member) { return member == 1 ? 1 : 0; }, "");
  watch.report(2, at_step(7, 2500));
  JobState state = watch.state();
  REQUIRE(state.members.size() == 2);
  CHECK(state.members[0].member == 2);  // by rank
  CHECK(state.size() == 2);
  state.mesh = "data 2";
  io::MemoryFileSystem fs;
  REQUIRE(write_cluster_file(fs, "cluster.json", state).ok());
  const auto read = read_cluster_file(fs, "cluster.json");
  REQUIRE_MESSAGE(read.ok(), (read.ok() ? "" : read.error().message()));
  CHECK(cluster_json(*read) == cluster_json(state));
  CHECK(read->members[0].progress.step == 7);
  CHECK(read->events.size() == 3);

  watch.gone(1, "the connection was closed");
  watch.look(3, 0, [](int64_t) { return -1; }, "worker 1 is lost");
  watch.gone(2, "");
  state = watch.state();
  CHECK(state.members.empty());
  CHECK(state.events[3].kind == "lost");
  CHECK(state.events[3].text.find("worker 1 on host \"one\" (pid 11): the connection was closed") == 0);
  CHECK(state.events[4].text == "epoch 3 ended: worker 1 is lost");
  CHECK(state.events[5].kind == "left");
  watch.look(4, 4, [](int64_t) { return 0; }, "");
  CHECK(watch.state().goes_on);
  for (int i = 0; i < 300; ++i) watch.happened("over", "again");
  CHECK(!watch.state().goes_on);
  CHECK(watch.state().events.size() == 100);
  set_log_sink(before);
}

TEST_CASE("a cluster.json that is none gives an error that names the field") {
  io::MemoryFileSystem fs;
  const auto error_of = [&](const std::string& text) {
    auto file = fs.create("c");
    REQUIRE(file.ok());
    REQUIRE((*file)->append(text).ok());
    const auto read = read_cluster_file(fs, "c");
    return read.ok() ? std::string() : read.error().message();
  };
  CHECK(error_of("{") == "c: not valid JSON");
  CHECK(error_of("{\"format\": \"ostro run\"}").find("\"format\"") != std::string::npos);
  std::string text = cluster_json(JobWatch().state());
  CHECK(error_of(text) == "");
  CHECK(error_of(text.substr(0, text.size() / 2)) == "c: not valid JSON");
  text.replace(text.find("\"members\": []"), 13, "\"members\": [{}]");
  CHECK(error_of(text).find("members[0]: \"member\" is missing") != std::string::npos);
}

}  // namespace
}  // namespace ostro::cluster
