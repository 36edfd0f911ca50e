#include "ostro/page/facts/facts.h"

#include <doctest/doctest.h>

#include <tuple>

#include "ostro/io/files/memory_file_system.h"

namespace ostro::page {
namespace {

void write(io::MemoryFileSystem& fs, const std::string& path, const std::string& text) {
  auto file = fs.open_append(path);
  REQUIRE(file.ok());
  check_ok((*file)->append(text));
  check_ok((*file)->close());
}

TEST_CASE("report.json comes back as it was; what is wrong is named") {
  io::MemoryFileSystem fs;
  check_ok(fs.make_dirs("run"));
  Facts facts;
  facts.data = {{"web", {1, 2, 3}, {4, 5, 6}, Unigram{6.5, 4.25}, {{"a.txt", "0f"}}},
                {"old", {1, 2, 3}, {4, 5, 6}}};
  facts.checkpoint = "ab";
  facts.step = 7;
  facts.temperature = 0.8;
  facts.samples = {{"web", "a.txt", 3, "a\xFF", "\"b\"\n", "c"}};
  write(fs, "run/report.json", facts_json(facts));
  const Result<Facts> read = read_facts(fs, "run/report.json");
  REQUIRE_MESSAGE(read.ok(), read.error().message());
  CHECK(read->samples[0].prompt == "a\uFFFD");
  CHECK(facts_json(*read) == facts_json(facts));
  int wrong_files = 0;
  for (const auto& [from, to, field] : {std::tuple{"\"step\": 7", "\"step\": -7", "\"step\""},
                                        {"\"bytes\": 6", "\"byte\": 6", "held_out"},
                                        {"\"bits_per_byte\": 4.25", "\"bits_per_byte\": \"4\"", "unigram"},
                                        {"\"sha256\": \"0f\"", "\"sha256\": 15", "files"},
                                        {"ostro report", "ostro run", "\"format\""},
                                        {"\"prompt\"", "\"p\"", "samples[0]"}}) {
    std::string text = facts_json(facts);
    text.replace(text.find(from), std::string(from).size(), to);
    const std::string path = "run/" + std::to_string(++wrong_files) + ".json";
    write(fs, path, text);
    const Result<Facts> wrong = read_facts(fs, path);
    REQUIRE(!wrong.ok());
    CHECK(wrong.error().code() == ErrorCode::kCorrupt);
    CHECK_MESSAGE(wrong.error().message().find(field) != std::string::npos, wrong.error().message());
  }
  CHECK(read_facts(fs, "run/none.json").error().code() == ErrorCode::kNotFound);
}

}  // namespace
}  // namespace ostro::page
