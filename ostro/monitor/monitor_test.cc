// A monitor beside a run that is made of files: metrics by HTTP, events, alerts and their command.
#include "ostro/monitor/monitor.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "ostro/base/log.h"
#include "ostro/http/client_for_test.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/local_file_system.h"
#include "ostro/monitor/run_metrics.h"
#include "ostro/run/report/meters.h"

namespace ostro::monitor {
namespace {

// A run's directory, and the log.
struct Folder {
  Folder() {
    path = std::filesystem::temp_directory_path() / "ostro_monitor_XXXXXX";
    REQUIRE(::mkdtemp(path.data()) != nullptr);
    config.trainer.log_dir = path;
    config.trainer.id = "run";
    config.trainer.alert_disk_free = 0;  // this machine's disk is its own affair
    std::filesystem::create_directories(path + "/run");
    before = set_log_sink([this](LogLevel, std::string_view line) { log += std::string(line) + "\n"; });
  }
  ~Folder() {
    set_log_sink(std::move(before));
    std::filesystem::remove_all(path);
  }
  std::string read(const std::string& name) const {
    return io::local_file_system().read_file(path + "/" + name).value();
  }
  // The events or alerts of a file, as "kind: text".
  std::string told(const std::string& name, const char* kind) const {
    std::istringstream lines(read("run/" + name));
    std::string out;
    for (std::string line; std::getline(lines, line);) {
      const auto json = nlohmann::json::parse(line);
      out += json.at(kind).get<std::string>() + ": " + json.at("text").get<std::string>() + "\n";
    }
    return out;
  }
  std::string path, log;
  train::TrainConfig config;
  LogSink before;
};

cluster::JobState job_with(const std::vector<cluster::JobEvent>& events) {
  cluster::JobState job;
  job.events = events;
  job.event_count = static_cast<int64_t>(events.size());
  job.lost_count = 1;
  job.epoch = 4;
  return job;
}

TEST_CASE("events come once and in order, a loss is an alert, and its command gets it without a shell") {
  Folder folder;
  folder.config.trainer.alert_command = {"sh", "-c", "cat >> \"$1/told by it's\"", "$HOME", folder.path};
  auto monitor = Monitor::create(io::local_file_system(), folder.config).value();
  run::MeterFile meters(io::local_file_system(), folder.path + "/run");
  meters.now().step = 12;
  monitor->note("early", "is not told: the run is not this process's yet");
  monitor->begin("a test", [] {
    return job_with({{1000, "joined", "worker 0"}, {1001, "lost", "worker 0: it is gone"}});
  });
  monitor->note("notice", "of mine");
  meters.saved(12, 1000, 0.25);
  meters.write();
  monitor->end("failed: for a reason");
  monitor.reset();
  const std::string events = folder.told("events.jsonl", "event");
  CHECK(events.find("begin: a test on ") == 0);
  for (const char* line : {"joined: worker 0\nlost: worker 0: it is gone\n", "notice: of mine\n",
                           "saved: the checkpoint of step 12 was written in 0.25 s, 1000 bytes\n",
                           "alert: worker_lost: 1 worker was lost; the last: worker 0: it is gone\n",
                           "alert: failed: failed: for a reason\n"})
    CHECK_MESSAGE(events.find(line) != std::string::npos, events);
  CHECK(events.find("early") == std::string::npos);
  CHECK(events.find("joined") == events.rfind("joined"));
  CHECK(events.ends_with("end: failed: for a reason\n"));
  const std::string alerts = folder.told("alerts.jsonl", "alert");
  CHECK(alerts ==
        "worker_lost: 1 worker was lost; the last: worker 0: it is gone\nfailed: failed: for a reason\n");
  CHECK(folder.read("told by it's") == folder.read("run/alerts.jsonl"));
}

TEST_CASE("a clock of the training machine that is an hour off is no stall") {
  for (const double off : {-3600.0, 3600.0}) {
    CAPTURE(off);
    Folder folder;
    std::atomic<int> looks = 0;
    auto monitor = Monitor::create(io::local_file_system(), folder.config).value();
    monitor->begin("a test", [&] {
      ++looks;
      return job_with({});
    });
    run::Meters meters;
    meters.step = 12, meters.median_seconds = 1;
    const double now = static_cast<double>(std::time(nullptr));
    meters.ended = now + off, meters.updated = now + 7200;
    REQUIRE(io::write_file_atomically(io::local_file_system(), folder.path + "/run/meters.json",
                                      run::meters_json(meters))
                .ok());
    // A look that has begun may have read before this.
    const int before = looks;
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(300);
    while (looks < before + 2 && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    monitor->end("finished");
    const std::string events = folder.told("events.jsonl", "event");
    CHECK_MESSAGE(events.find("stalled") == std::string::npos, events);
  }
}

TEST_CASE("a run that ends well gives no alert and runs no command") {
  Folder folder;
  folder.config.trainer.alert_command = {"touch", folder.path + "/called"};
  auto monitor = Monitor::create(io::local_file_system(), folder.config).value();
  monitor->begin("a test", {});
  monitor->end("finished");
  monitor.reset();
  CHECK(!std::filesystem::exists(folder.path + "/called"));
  CHECK(!std::filesystem::exists(folder.path + "/run/alerts.jsonl"));
  CHECK(folder.told("events.jsonl", "event").find("end: finished\n") != std::string::npos);
}

TEST_CASE("metrics are there at a loopback address for those that name it, until the end") {
  Folder folder;
  folder.config.trainer.metrics_listen = "127.0.0.1:0";
  auto monitor = Monitor::create(io::local_file_system(), folder.config).value();
  const std::string word = "http://127.0.0.1:";
  const size_t at = folder.log.find(word);
  REQUIRE(at != std::string::npos);
  const int port = std::stoi(folder.log.substr(at + word.size()));
  const std::string asks = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
  CHECK(http::answer(port, asks).find("ostro_train_info{run=\"") != std::string::npos);
  monitor->begin("a test", [] { return job_with({{1000, "lost", "worker 0"}}); });
  run::MeterFile meters(io::local_file_system(), folder.path + "/run");
  meters.now().step = 12;
  meters.step_ended(0.5);
  meters.write();
  const std::string text = http::answer(port, asks);
  CHECK(text.find("Content-Type: text/plain; version=0.0.4") != std::string::npos);
  for (const char* line :
       {"\nostro_train_step 12\n", "\nostro_train_workers_lost_total 1\n", "\nostro_train_epoch 4\n",
        "\nostro_train_step_duration_seconds_bucket{le=\"0.5\"} 1\n", "\nostro_train_disk_free_bytes "})
    CHECK_MESSAGE(text.find(line) != std::string::npos, text);
  // Once a look has been.
  std::string looked;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(300);
  while (looked.find("ostro_train_alert_active{") == std::string::npos &&
         std::chrono::steady_clock::now() < until)
    looked = http::answer(port, asks);
  CHECK_MESSAGE(looked.find("\nostro_train_alerts_total{alert=\"worker_lost\"} 1\n") != std::string::npos,
                looked);
  CHECK_MESSAGE(looked.find("\nostro_train_alert_active{alert=\"stalled\"} 0\n") != std::string::npos,
                looked);
  CHECK_MESSAGE(looked.find("alert_active{alert=\"worker_lost\"}") == std::string::npos, looked);
  CHECK(http::answer(port, "GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n").find("403") !=
        std::string::npos);
  CHECK(http::answer(port, "GET /run HTTP/1.1\r\nHost: localhost\r\n\r\n").find("404") != std::string::npos);
  monitor->end("finished");
}

TEST_CASE("an address that is none, or is in use, is an error that names the option") {
  Folder folder;
  folder.config.trainer.metrics_listen = "127.0.0.1";
  const auto none = Monitor::create(io::local_file_system(), folder.config);
  REQUIRE(!none.ok());
  CHECK(none.error().message().find("trainer.metrics_listen") == 0);
}

}  // namespace
}  // namespace ostro::monitor
