#include "ostro/run/report/tracker.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>

#include "ostro/base/log.h"
#include "ostro/io/files/faulty_file_system.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/run/report/event_file.h"

namespace ostro::run {
namespace {

using Json = nlohmann::json;

std::vector<Json> lines_of(const std::string& text) {
  std::vector<Json> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    REQUIRE(end != std::string::npos);
    lines.push_back(Json::parse(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return lines;
}

std::string hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out;
}

TEST_CASE("metrics.jsonl holds a line a log point, and resuming drops what was not restored") {
  io::MemoryFileSystem fs;
  {
    auto tracker = json_tracker(fs, "metrics.jsonl", 0);
    REQUIRE(tracker.ok());
    for (int64_t step = 1; step <= 3; ++step)
      check_ok((*tracker)->log(step, {{"train/loss", 0.1 * static_cast<double>(step)}}));
    check_ok((*tracker)->log(3, {{"eval/loss", std::nan("")}}));
  }
  std::vector<Json> lines = lines_of(*fs.content("metrics.jsonl"));
  REQUIRE(lines.size() == 4);
  CHECK(lines[0]["step"] == 1);
  CHECK(lines[0]["train/loss"] == 0.1);
  CHECK(lines[0]["time"].get<double>() > 1.6e9);
  CHECK(lines[3]["eval/loss"].is_null());
  *fs.content("metrics.jsonl") += "garbage\n{\"step\":1,\"tor";
  std::string warned;
  {
    const LogSink before = set_log_sink([&](LogLevel, std::string_view line) { warned = line; });
    auto tracker = json_tracker(fs, "metrics.jsonl", 2);
    set_log_sink(before);
    REQUIRE(tracker.ok());
    check_ok((*tracker)->log(3, {{"train/loss", 7}}));
    check_ok((*tracker)->finish());
  }
  CHECK(warned == "metrics.jsonl: dropped 1 unreadable lines");
  lines = lines_of(*fs.content("metrics.jsonl"));
  REQUIRE(lines.size() == 3);
  CHECK(lines[1]["step"] == 2);
  CHECK(lines[2]["step"] == 3);
  CHECK(lines[2]["train/loss"] == 7);
}

TEST_CASE("event records have the bytes that TensorFlow's writer gives") {
  // The first and the last show a wall time of zero, which TensorFlow leaves out; that reads the same.
  CHECK(hex(version_event(0)) ==
        "090000000000000000"
        "1000"
        "1a0d"
        "627261696e2e4576656e743a32");
  CHECK(hex(scalars_event(1, 300, {{"a", 0.5}})) ==
        "09000000000000f03f"
        "10ac02"
        "2a0a"
        "0a08"
        "0a0161"
        "150000003f");
  CHECK(hex(restart_event(0, 5)) ==
        "090000000000000000"
        "1005"
        "3a02"
        "0801");
  // The checksum of "123456789" is 0xe3069283.
  CHECK(masked_crc32c("123456789") == std::rotr(0xe3069283U, 15) + 0xa282ead8U);
  // As tensorboard.summary.writer.record_writer gives it.
  CHECK(hex(event_record("xyz")) == "0300000000000000b099490e78797a1e358d73");
}

TEST_CASE("the config's trackers write both files; a resumed run begins another event file") {
  io::MemoryFileSystem fs;
  check_ok(fs.make_dirs("run"));
  const std::vector<train::TrackerOptions> options = {train::JsonTrackerOptions{},
                                                      train::TensorboardTrackerOptions{}};
  for (int64_t restored : {0, 4}) {
    auto tracker = make_trackers(fs, "run", options, restored);
    REQUIRE(tracker.ok());
    check_ok((*tracker)->log(restored + 1, {{"train/loss", 1}}));
    check_ok((*tracker)->finish());
  }
  const auto files = *fs.glob("run/tb/*tfevents*");
  REQUIRE(files.size() == 2);
  CHECK(fs.content(files[0])->find("brain.Event:2") != std::string::npos);
  CHECK(fs.content(files[1])->size() > fs.content(files[0])->size());
  CHECK(lines_of(*fs.content("run/metrics.jsonl")).size() == 1 + 1);
}

TEST_CASE("one tracker's error is told and keeps nothing from the others") {
  io::MemoryFileSystem memory, good;
  io::FaultyFileSystem bad(memory);
  std::vector<std::unique_ptr<Tracker>> trackers;
  trackers.push_back(json_tracker(bad, "metrics.jsonl", 0).value());
  trackers.push_back(json_tracker(good, "metrics.jsonl", 0).value());
  bad.limit_space(0);
  const auto both = composite_tracker(std::move(trackers));
  CHECK(both->log(1, {{"a", 1}}).error().code() == ErrorCode::kIo);
  CHECK(lines_of(*good.content("metrics.jsonl")).size() == 1);
}

}  // namespace
}  // namespace ostro::run
