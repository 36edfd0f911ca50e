#include "ostro/data/ledger_file.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "ostro/data/test_corpus.h"

namespace ostro::data {
namespace {

TEST_CASE("ledger file: the head, the files and the hash are those of the ledger that was written") {
  io::MemoryFileSystem fs;
  write_corpus(fs, "corpus");
  const DataOptions options = corpus_options("corpus");
  const auto built = build_store(fs, options, test_tokenizer(), small_settings());
  REQUIRE(built.ok());
  const std::string path = ledger_path(options.cache_dir), text = *fs.read_file(path);
  const auto check = [&] {
    const auto file = LedgerFile::open(fs, options.cache_dir);
    REQUIRE_MESSAGE(file.ok(), (file.ok() ? "" : file.error().message()));
    CHECK((*file)->hash() == built->hash());
    CHECK((*file)->head().files.empty());
    CHECK((*file)->head().preprocessing == built->preprocessing);
    const auto files = (*file)->files();
    REQUIRE(files.ok());
    CHECK((*files)->list == built->files);
    CHECK((*files)->row_ends[0].back() == built->split(Split::kTrain).rows);
    CHECK((*files)->row_ends[1].back() == built->split(Split::kValidation).rows);
    CHECK(*(*file)->files() == *files);  // made once
  };
  check();
  // One that somebody formatted, and in another order, says the same.
  write(fs, path, nlohmann::ordered_json::parse(text).dump(2) + "\n\n");
  check();
  nlohmann::ordered_json turned;
  const nlohmann::json json = nlohmann::json::parse(text);
  for (auto member = json.rbegin(); member != json.rend(); ++member) turned[member.key()] = *member;
  write(fs, path, turned.dump());
  check();
}

TEST_CASE("ledger file: one that is damaged, or made up, is refused by name") {
  io::MemoryFileSystem fs;
  write_corpus(fs, "corpus");
  const DataOptions options = corpus_options("corpus");
  REQUIRE(build_store(fs, options, test_tokenizer(), small_settings()).ok());
  const std::string path = ledger_path(options.cache_dir), text = *fs.read_file(path);
  const auto refusal = [&](const std::string& content) {
    write(fs, path, content);
    const auto ledger = read_ledger(fs, options.cache_dir);
    REQUIRE_FALSE(ledger.ok());
    CHECK(ledger.error().message().find(path) != std::string::npos);
    return ledger.error().message();
  };
  for (size_t at = 0; at + 1 < text.size(); at += 37) {
    std::string bad = text;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    refusal(bad);
    refusal(text.substr(0, at));
  }
  // With a checksum that fits.
  const auto signed_text = [](nlohmann::json json) {
    json.erase("sha256");
    json["sha256"] = sha256_hex(json.dump());
    return json.dump() + "\n";
  };
  nlohmann::json json = nlohmann::json::parse(text);
  json["content"]["files"][0]["rows"][0] = 1'000'000;
  CHECK(refusal(signed_text(json)).find("\"hash\" does not fit the content") != std::string::npos);
  json = nlohmann::json::parse(text);
  json["sources"][0]["format"] = "parquet";
  CHECK(refusal(signed_text(json)).find("\"hash\" does not fit \"files\"") != std::string::npos);
  json = nlohmann::json::parse(text);
  json["sources"].erase(0);
  CHECK(refusal(signed_text(json)).find("\"sources\"") != std::string::npos);
  json = nlohmann::json::parse(text);
  json["content"]["files"] = 7;
  CHECK(refusal(signed_text(json)).find("is not a list") != std::string::npos);
  json["format"] = "ostro token store 9";
  refusal(signed_text(json));
}

}  // namespace
}  // namespace ostro::data
