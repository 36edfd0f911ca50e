#include "ostro/io/arrays/safetensors.h"

#include <doctest/doctest.h>

#include "ostro/io/files/memory_file_system.h"

using namespace ostro;
using namespace ostro::io;

namespace {

const std::vector<float> kWeights = {1, 2, 3, 4, 5, 6};
const std::vector<uint16_t> kHalf = {0x3f80, 0x4000, 0x4040};

std::vector<SafetensorsEntry> sample() {
  return {{"model.w", "F32", {2, 3}, std::as_bytes(std::span(kWeights))},
          {"a \"quoted\" name", "BF16", {3}, std::as_bytes(std::span(kHalf))},
          {"empty", "I64", {0, 4}, {}},
          {"scalar", "F32", {}, std::as_bytes(std::span(kWeights)).first(4)}};
}

std::vector<float> read_weights(const SafetensorsReader& reader) {
  std::vector<float> out(6);
  check_ok(reader.read("model.w", std::as_writable_bytes(std::span(out))));
  return out;
}

}  // namespace

TEST_CASE("safetensors: a file comes back as written, with an aligned header") {
  MemoryFileSystem fs;
  check_ok(write_safetensors(fs, "m.safetensors", sample(), {{"format", "pt"}, {"run", "abc"}}));
  const std::string text = *fs.read_file("m.safetensors");
  CHECK(static_cast<uint8_t>(text[0]) % 8 == 0);
  CHECK(text.substr(8, 17) == "{\"__metadata__\":{");
  const auto reader = SafetensorsReader::open(fs, "m.safetensors");
  REQUIRE(reader.ok());
  REQUIRE(reader->tensors().size() == 4);
  CHECK(reader->tensors()[0].name == "model.w");
  CHECK(reader->find("scalar")->shape.empty());
  CHECK(reader->find("a \"quoted\" name")->dtype == "BF16");
  CHECK(reader->metadata().at("run") == "abc");
  CHECK(read_weights(*reader) == kWeights);
  std::vector<std::byte> small(3);
  CHECK(reader->read("scalar", small).error().code() == ErrorCode::kInvalidArgument);
  CHECK(reader->read("none", small).error().code() == ErrorCode::kNotFound);
}

TEST_CASE("safetensors: sharded directories, and a smaller export over a larger one") {
  MemoryFileSystem fs;
  check_ok(write_safetensors_sharded(fs, "out", sample(), 24));
  CHECK(*fs.exists("out/model-00001-of-00002.safetensors"));
  CHECK_FALSE(*fs.exists("out/model.safetensors"));
  CHECK(fs.read_file("out/model.safetensors.index.json")->find("\"total_size\": 34") != std::string::npos);
  auto reader = SafetensorsReader::open_directory(fs, "out");
  REQUIRE(reader.ok());
  CHECK(reader->tensors().size() == 4);
  CHECK(read_weights(*reader) == kWeights);

  check_ok(write_safetensors_sharded(fs, "out", sample(), 1000));
  CHECK(fs.list("out")->size() == 1);
  CHECK(read_weights(*SafetensorsReader::open_directory(fs, "out")) == kWeights);

  check_ok(write_safetensors_sharded(fs, "out", sample(), 24));
  check_ok(write_safetensors(fs, "out/model.safetensors", sample()));
  CHECK(SafetensorsReader::open_directory(fs, "out").error().message().find("the one or the other") !=
        std::string::npos);
  check_ok(fs.remove("out/model.safetensors"));
  check_ok(fs.remove("out/model-00002-of-00002.safetensors"));
  CHECK(SafetensorsReader::open_directory(fs, "out").error().code() == ErrorCode::kNotFound);
}

TEST_CASE("safetensors: entries that make no file") {
  MemoryFileSystem fs;
  auto entries = sample();
  entries[0].shape = {7};
  CHECK(write_safetensors(fs, "m", entries).error().message() ==
        "m: tensor model.w: 24 bytes given, its shape and dtype need 28");
  entries = sample();
  entries[1].name = "model.w";
  CHECK_FALSE(write_safetensors(fs, "m", entries).ok());
  entries = sample();
  entries[1].dtype = "F8";
  CHECK_FALSE(write_safetensors(fs, "m", entries).ok());
  CHECK_FALSE(*fs.exists("m"));
}

TEST_CASE("safetensors: a file cut anywhere is refused, a changed header never crashes") {
  MemoryFileSystem fs;
  check_ok(write_safetensors(fs, "m", sample()));
  const std::string good = *fs.read_file("m");
  for (size_t size = 0; size < good.size(); ++size) {
    *fs.content("m") = good.substr(0, size);
    const auto reader = SafetensorsReader::open(fs, "m");
    REQUIRE_FALSE(reader.ok());
    CHECK(reader.error().message().starts_with("m: "));
  }
  *fs.content("m") = good + "x";
  CHECK_FALSE(SafetensorsReader::open(fs, "m").ok());
  for (size_t at = 0; at + 34 < good.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      *fs.content("m") = good;
      (*fs.content("m"))[at] = static_cast<char>(good[at] ^ (1 << bit));
      const auto reader = SafetensorsReader::open(fs, "m");
      if (!reader.ok()) continue;
      for (const SafetensorsInfo& info : reader->tensors()) {
        std::vector<std::byte> bytes(static_cast<size_t>(info.bytes()));
        check_ok(reader->read(info.name, bytes));
      }
    }
  }
}
