// A machine, whose shell this machine's stands for, that loses what was brought to it.
#include "ostro/cli/launch/bring_to_hosts.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "ostro/base/sha256.h"
#include "ostro/io/files/local_file_system.h"

namespace ostro::cli {
namespace {

TEST_CASE("a machine that lost its copy gets it again; one that has it is looked at, and told apart") {
  std::string home = std::filesystem::temp_directory_path() / "ostro_home_XXXXXX";
  REQUIRE(::mkdtemp(home.data()) != nullptr);
  const std::string text = "#!/bin/sh\nexit 0\n";
  const cluster::BroughtCopy copy = {.folder = home + "/copies",
                                     .files = {{.name = "bin/ostro",
                                                .from = {},
                                                .text = text,
                                                .size = static_cast<int64_t>(text.size()),
                                                .sha256 = sha256_hex(text)}},
                                     .program = "bin/ostro",
                                     .elsewhere = {}};
  {
    BringToHosts bringer(
        io::local_file_system(), copy, {"a", "down"}, [](size_t host, const std::string& script) {
          return cluster::LineProcess::start(host == 0 ? std::vector<std::string>{"sh", "-c", script}
                                                       : std::vector<std::string>{"false"});
        });
    NoProgress progress;
    CHECK(bringer.all(progress, [](const std::vector<bool>& has) { return has[0]; }) ==
          std::vector<bool>{true, false});
    CHECK(bringer.take_brought() == std::vector<size_t>{0});
    CHECK(bringer.ready(1));  // so that the launcher tries it, and counts its failures
    for (const bool is_lost : {true, false}) {
      if (is_lost) std::filesystem::remove_all(home + "/copies");
      bringer.look_again(0);
      const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(5);
      while (!bringer.ready(0) && std::chrono::steady_clock::now() < until)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      CHECK(std::filesystem::exists(copy.place() + "/list"));
      CHECK(bringer.take_brought() == (is_lost ? std::vector<size_t>{0} : std::vector<size_t>{}));
    }
  }
  std::filesystem::remove_all(home);
}

}  // namespace
}  // namespace ostro::cli
