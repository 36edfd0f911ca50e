// Whether a save fits into the grace that a notice gives.
#include "ostro/run/notice/grace.h"

#include <doctest/doctest.h>

#include "ostro/io/files/memory_file_system.h"
#include "ostro/run/report/meters.h"

namespace ostro::run {
namespace {

TEST_CASE("a step and a checkpoint fit into the grace, or it is said why not") {
  const SaveRate rate{100e6, "as stated"};
  const GraceFit fits = grace_fit(30, 4, 2.5e9, rate);
  CHECK(fits.fits.ok());
  CHECK(fits.text ==
        "grace: 30 s after a notice (trainer.notice_grace); a step of about 4.0 s and a checkpoint of 2384.2 "
        "MiB "
        "at 100.0 MB/s (as stated) take 29.0 s: it fits\n");
  const GraceFit late = grace_fit(28, 4, 2.5e9, rate);
  CHECK(late.text.find("take 29.0 s: it does not fit\n") != std::string::npos);
  CHECK(late.fits.error().message().find("28 s are less than the 29.0 s") != std::string::npos);
  CHECK(grace_fit(25, 0, 2.5e9, rate).fits.ok());  // a step's time is not known
}

TEST_CASE("the rate is the stated one, that of the last checkpoint, or measured; nothing stays behind") {
  io::MemoryFileSystem fs;
  train::TrainConfig config;
  config.trainer.log_dir = "/a/runs", config.trainer.id = "nano";
  REQUIRE(fs.make_dirs("/a").ok());
  const auto measured = save_rate(fs, config, {});
  REQUIRE(measured.ok());
  CHECK(measured->source == "measured in /a");
  CHECK(measured->bytes_per_second > 0);
  CHECK(fs.list("/a").value().empty());
  REQUIRE(fs.make_dirs("/a/runs/nano").ok());
  MeterFile file(fs, "/a/runs/nano");
  file.saved(7, 300e6, 2);
  file.write();
  CHECK(save_rate(fs, config, {})->bytes_per_second == 150e6);
  CHECK(save_rate(fs, config, {})->source == "that of its last checkpoint");
  CHECK(save_rate(fs, config, 5e6)->bytes_per_second == 5e6);
}

}  // namespace
}  // namespace ostro::run
