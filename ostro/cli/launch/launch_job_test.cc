// A job that ends before its first worker starts.
#include "ostro/cli/launch/launch_job.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>

#include "ostro/io/files/local_file_system.h"

namespace ostro::cli {
namespace {

TEST_CASE("a launcher that fails to start its workers says so in the run's events, and gives an alert") {
  std::string folder = std::filesystem::temp_directory_path() / "ostro_launch_XXXXXX";
  REQUIRE(::mkdtemp(folder.data()) != nullptr);
  std::filesystem::create_directories(folder + "/run");
  train::TrainConfig config;
  config.trainer.log_dir = folder;
  config.trainer.id = "run";
  config.trainer.alert_disk_free = 0;  // this machine's disk is its own affair
  const auto status = run_job(config, "a test", {}, {}, [](int port, cluster::LocalWorkers&) {
    CHECK(port > 0);
    return Status(io_error("no place for a worker"));
  });
  REQUIRE(!status.ok());
  CHECK(status.error().message() == "no place for a worker");
  const std::string events = io::local_file_system().read_file(folder + "/run/events.jsonl").value();
  CHECK_MESSAGE(events.find("\"event\":\"end\"") != std::string::npos, events);
  const auto alerts = io::local_file_system().read_file(folder + "/run/alerts.jsonl");
  REQUIRE(alerts.ok());
  CHECK_MESSAGE(alerts->find("failed: no place for a worker") != std::string::npos, *alerts);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace ostro::cli
