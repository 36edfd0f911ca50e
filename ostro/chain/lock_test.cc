#include "ostro/chain/lock.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include "ostro/io/files/local_file_system.h"

namespace ostro::chain {
namespace {

TEST_CASE("the second on a run directory is refused with the first one's name, until that is gone") {
  const std::string folder = "/tmp/ostro_lock_test_" + std::to_string(getpid());
  io::FileSystem& fs = io::local_file_system();
  check_ok(fs.make_dirs(folder));
  {
    const auto first = lock_run(fs, folder, 3);
    REQUIRE(first.ok());
    const auto second = lock_run(fs, folder, 4);
    REQUIRE(!second.ok());
    CHECK(second.error().code() == ErrorCode::kBusy);
    const std::string& message = second.error().message();
    CHECK_MESSAGE(message.find(fmt::format("process {} on ", getpid())) != std::string::npos, message);
    CHECK_MESSAGE(message.find("(epoch 3)") != std::string::npos, message);
    CHECK_MESSAGE(message.find(folder) != std::string::npos, message);
  }
  CHECK(lock_run(fs, folder, 4).ok());
  check_ok(fs.remove_all(folder));
}

TEST_CASE("a session without an end runs while its lock is held, and was killed when it is not") {
  const std::string folder = "/tmp/ostro_outcome_test_" + std::to_string(getpid());
  io::FileSystem& fs = io::local_file_system();
  check_ok(fs.make_dirs(folder));
  RunRecord record;
  record.sessions.resize(3);
  record.sessions[0].outcome = record.sessions[2].outcome = "running";
  record.sessions[1].outcome = "interrupted";
  const auto outcomes = [&] {
    std::string out;
    for (size_t i = 0; i < 3; ++i) out += outcome_now(fs, folder, record, i) + ";";
    return out;
  };
  {
    const auto lock = lock_run(fs, folder, 1);
    REQUIRE(lock.ok());
    CHECK(is_locked_here(fs, folder + "/lock"));
    CHECK(outcomes() == "killed;interrupted;running;");
  }
  CHECK(!is_locked_here(fs, folder + "/lock"));
  CHECK(outcomes() == "killed;interrupted;killed;");
  const auto foreign = fs.create(folder + "/lock");
  REQUIRE(foreign.ok());
  check_ok((*foreign)->append("process 1 on another-host since 2026-11-21T10:04:33Z (epoch 1)"));
  CHECK(outcomes() == "killed;interrupted;running or killed;");
  check_ok(fs.remove_all(folder));
}

}  // namespace
}  // namespace ostro::chain
