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

}  // namespace
}  // namespace ostro::chain
