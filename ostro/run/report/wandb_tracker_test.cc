#include "ostro/run/report/wandb_tracker.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ostro/base/log.h"
#include "ostro/io/files/local_file_system.h"

namespace ostro::run {
namespace {

// A folder with a package `wandb` of our own, which writes down how it is called.
class FakePackage {
 public:
  explicit FakePackage(const std::string& init) {
    char name[] = "/tmp/ostro-wandb-XXXXXX";
    folder_ = ::mkdtemp(name);
    std::ofstream(folder_ + "/wandb.py")
        << "import json, os\n"
           "said = open(os.environ['OSTRO_TEST_WANDB'], 'a')\n"
           "def write(*call): said.write(json.dumps(call).replace('NaN', 'null') + '\\n'); said.flush()\n"
           "class Run:\n"
           "  url, dir = None, '/there'\n"
           "  def log(self, metrics, step): write('log', step, metrics)\n"
           "  def finish(self): write('finish')\n"
           "def init(**options):\n  print('noise')\n  write('init', options)\n  "
        << init << "\n  return Run()\n";
    ::setenv("PYTHONPATH", folder_.c_str(), 1);
    ::setenv("OSTRO_TEST_WANDB", (folder_ + "/calls").c_str(), 1);
  }
  ~FakePackage() {
    ::unsetenv("PYTHONPATH");
    ::unsetenv("OSTRO_TEST_WANDB");
    std::filesystem::remove_all(folder_);
  }
  std::string run() const { return folder_ + "/runs/nano"; }
  std::vector<nlohmann::json> calls() const {
    std::ifstream in(folder_ + "/calls");
    std::vector<nlohmann::json> out;
    for (std::string line; std::getline(in, line);) out.push_back(nlohmann::json::parse(line));
    return out;
  }

 private:
  std::string folder_;
};

TEST_CASE("wandb gets what was logged, under one id also when the run is resumed") {
  const FakePackage package("pass");
  io::FileSystem& fs = io::local_file_system();
  train::WandbTrackerOptions options;
  options.project = "p";
  options.mode = "offline";
  for (int64_t step : {1, 2}) {
    std::string said;
    const LogSink before = set_log_sink([&](LogLevel, std::string_view line) { said = line; });
    auto tracker = wandb_tracker(fs, package.run(), options);
    set_log_sink(before);
    CHECK(said == "wandb: /there");
    REQUIRE_MESSAGE(tracker.ok(), tracker.error().message());
    check_ok((*tracker)->log(step, {{"train/loss", 2.5}, {"train/grad_norm", std::nan("")}}));
    check_ok((*tracker)->finish());
  }
  const auto calls = package.calls();
  REQUIRE(calls.size() == 6);
  CHECK(calls[0][0] == "init");
  CHECK(calls[0][1]["project"] == "p");
  CHECK(calls[0][1]["mode"] == "offline");
  CHECK(calls[0][1]["name"] == "nano");
  CHECK(calls[0][1]["dir"] == package.run());
  CHECK(calls[0][1]["id"].get<std::string>().size() == 16);
  CHECK(!calls[0][1].contains("entity"));
  CHECK(calls[1][0] == "log");
  CHECK(calls[1][1] == 1);
  CHECK(calls[1][2]["train/loss"] == 2.5);
  CHECK(calls[1][2]["train/grad_norm"].is_null());  // a NaN
  CHECK(calls[2][0] == "finish");
  CHECK(calls[3] == calls[0]);
  CHECK(calls[4][1] == 2);
}

TEST_CASE("what is wrong with wandb is told when the run begins") {
  io::FileSystem& fs = io::local_file_system();
  {
    const FakePackage package("raise RuntimeError('no key')");
    const auto tracker = wandb_tracker(fs, package.run(), {});
    REQUIRE(!tracker.ok());
    CHECK(tracker.error().message() == "trainer.tracker: wandb: wandb.init: RuntimeError: no key");
  }
  {
    const FakePackage package("os._exit(3)");
    CHECK(wandb_tracker(fs, package.run(), {}).error().message() ==
          "trainer.tracker: wandb: its process ended without a word");
    ::setenv("OSTRO_PYTHON", "/no/such/python", 1);
    CHECK(wandb_tracker(fs, package.run(), {}).error().message().find("cannot start /no/such/python") == 0);
    ::unsetenv("OSTRO_PYTHON");
  }
}

TEST_CASE("a wandb that has ended costs its metrics, and not the run") {
  const FakePackage package("globals()['Run'].log = lambda *a, **k: os._exit(1)");
  io::FileSystem& fs = io::local_file_system();
  auto tracker = wandb_tracker(fs, package.run(), {});
  REQUIRE_MESSAGE(tracker.ok(), tracker.error().message());
  (void)(*tracker)->log(1, {{"a", 1}});
  CHECK(!(*tracker)->finish().ok());
}

}  // namespace
}  // namespace ostro::run
