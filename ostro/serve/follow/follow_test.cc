// Which checkpoints of a run that goes on are served, and when.
#include "ostro/serve/follow/follow.h"

#include <doctest/doctest.h>

#include "ostro/base/log.h"
#include "ostro/io/files/memory_file_system.h"

namespace ostro::serve {
namespace {

TEST_CASE("a follower serves what is new, and goes on with what it has where that cannot be loaded") {
  io::MemoryFileSystem fs;
  REQUIRE(fs.make_dirs("run/checkpoints/step-00000010").ok());
  ServedCheckpoint newest{"step-00000010", "a"};
  std::string why;
  int loads = 0;
  const auto serve_newest = [&](const ServedCheckpoint&) -> Result<ServedCheckpoint> {
    ++loads;
    if (!why.empty()) return corrupt(why);
    return newest;
  };
  const auto follower_of = [&] { return Follower::create(fs, "run", {"step-00000010", "a"}, serve_newest); };
  CHECK_FALSE(Follower::create(fs, "none", {}, serve_newest).ok());
  Follower follower = follower_of().value();
  for (int i = 0; i < 3; ++i) follower.look();
  CHECK(loads == 0);
  // One that is being written, and a file, are none.
  REQUIRE(fs.make_dirs("run/checkpoints/step-00000020.tmp").ok());
  REQUIRE(fs.create("run/checkpoints/step-00000030").ok());
  follower.look();
  CHECK(loads == 0);
  REQUIRE(fs.make_dirs("run/checkpoints/step-00000020").ok());
  why = "half written";
  std::string log;
  const LogSink before = set_log_sink([&](LogLevel, std::string_view line) { log += line; });
  for (int i = 0; i < 3; ++i) follower.look();
  CHECK(log == "--follow: step-00000020 is not served yet: half written");
  CHECK(loads == 1);
  why.clear();
  // The loader falls back on the one before: the newest is not taken for served, and is tried again later.
  Follower fallen = follower_of().value();
  for (int i = 0; i < 3; ++i) fallen.look();
  CHECK(loads == 2);
  CHECK(log.ends_with("step-00000020 is not served yet: it cannot be loaded"));
  newest = {"step-00000020", "c"};
  Follower later = follower_of().value();  // without the pause after a failure
  for (int i = 0; i < 3; ++i) later.look();
  set_log_sink(before);
  CHECK(loads == 3);
  CHECK(log.ends_with("step-00000020 is served from now on, state c"));
}

}  // namespace
}  // namespace ostro::serve
