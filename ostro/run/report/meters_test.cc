// The figures of a run in meters.json: written, read again, counted on.
#include "ostro/run/report/meters.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "ostro/io/files/memory_file_system.h"

namespace ostro::run {
namespace {

TEST_CASE("meters come back from their file, with what is no number, and are counted on") {
  io::MemoryFileSystem fs;
  REQUIRE(fs.make_dirs("run").ok());
  CHECK(read_meters(fs, "run").error().code() == ErrorCode::kNotFound);
  {
    MeterFile file(fs, "run");
    file.now().step = 3, file.now().total = 9;
    file.now().loss = 2.5, file.now().gradient_norm = std::numeric_limits<double>::infinity();
    for (const double seconds : {4.0, 0.02, 0.3}) file.step_ended(seconds);
    file.saved(2, 1000, 0.5);
    file.now().checked_leaves = 5, file.now().check_seconds = 0.125;
    file.write();
  }
  const auto read = read_meters(fs, "run");
  REQUIRE(read.ok());
  CHECK(read->step == 3);
  CHECK(read->loss == 2.5);
  CHECK(std::isnan(read->gradient_norm));
  CHECK(read->median_seconds == 0.3);
  CHECK(read->steps.count == 3);
  CHECK(read->checked_leaves == 5);
  CHECK(read->check_seconds == 0.125);
  CHECK(read->steps.at_most[0] == 0);   // 0.01 s
  CHECK(read->steps.at_most[1] == 1);   // 0.025 s
  CHECK(read->steps.at_most[14] == 3);  // an hour
  CHECK(!read->held_out_loss);
  MeterFile again(fs, "run");
  again.step_ended(0.1);
  again.now().held_out_loss = 1.5;
  again.saved(4, 1000, 0.25);
  again.write();
  const auto more = read_meters(fs, "run");
  REQUIRE(more.ok());
  CHECK(more->steps.count == 4);
  CHECK(more->saves == 2);
  CHECK(more->save_bytes == 2000);
  CHECK(more->save_write_seconds == 0.75);
  CHECK(more->last_save_step == 4);
  CHECK(more->median_seconds == 0.1);  // of this session alone
  CHECK(more->held_out_loss == 1.5);
}

TEST_CASE("a damaged file is an error that names the field") {
  io::MemoryFileSystem fs;
  REQUIRE(fs.make_dirs("run").ok());
  std::string text = meters_json({});
  text.replace(text.find("\"saves\": 0"), 10, "\"saves\":-1");
  REQUIRE(fs.write_file("run/meters.json", text).ok());
  const auto read = read_meters(fs, "run");
  REQUIRE(!read.ok());
  CHECK(read.error().message().find("\"saves\"") != std::string::npos);
}

}  // namespace
}  // namespace ostro::run
