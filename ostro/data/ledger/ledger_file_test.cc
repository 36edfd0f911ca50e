#include "ostro/data/ledger/ledger_file.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "ostro/prepare/store/test_corpus.h"

namespace ostro::data {
namespace {

// A store whose ledger is replaced.
struct LedgerOfCorpus {
  io::MemoryFileSystem fs;
  DataOptions options = prepare::corpus_options("corpus");
  std::string path = ledger_path(options.cache_dir), text;

  LedgerOfCorpus() {
    prepare::write_corpus(fs, "corpus");
    REQUIRE(prepare::build_store(fs, options, prepare::test_tokenizer(), prepare::small_settings()).ok());
    text = *fs.read_file(path);
  }
  bool opens(const std::string& content) {
    prepare::write(fs, path, content);
    return LedgerFile::open(fs, options.cache_dir).ok();
  }
  // The error for a text that is no valid ledger. It must name the file.
  Error refusal(const std::string& content) {
    prepare::write(fs, path, content);
    const auto file = LedgerFile::open(fs, options.cache_dir);
    REQUIRE_FALSE(file.ok());
    CHECK(file.error().message().find(path) != std::string::npos);
    return file.error();
  }
};

TEST_CASE("ledger file: the head, the files and the hash are those of the ledger that was written") {
  io::MemoryFileSystem fs;
  prepare::write_corpus(fs, "corpus");
  const DataOptions options = prepare::corpus_options("corpus");
  const auto built = prepare::build_store(fs, options, prepare::test_tokenizer(), prepare::small_settings());
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
  // A ledger that was reformatted and reordered gives the same values.
  prepare::write(fs, path, nlohmann::ordered_json::parse(text).dump(2) + "\n\n");
  check();
  nlohmann::ordered_json turned;
  const nlohmann::json json = nlohmann::json::parse(text);
  for (auto member = json.rbegin(); member != json.rend(); ++member) turned[member.key()] = *member;
  prepare::write(fs, path, turned.dump());
  check();
}

TEST_CASE("ledger file: one that is damaged, or made up, is refused by name") {
  LedgerOfCorpus ledger;
  const std::string& text = ledger.text;
  for (size_t at = 0; at + 1 < text.size(); at += 37) {
    std::string bad = text;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    CHECK(ledger.refusal(bad).code() != ErrorCode::kNotFound);
    CHECK(ledger.refusal(text.substr(0, at)).code() == ErrorCode::kCorrupt);
  }
  const auto refusal = [&](const nlohmann::json& json) {
    prepare::write(ledger.fs, ledger.path, prepare::with_checksum(json));
    const auto read = read_ledger(ledger.fs, ledger.options.cache_dir);
    REQUIRE_FALSE(read.ok());
    CHECK(read.error().message().find(ledger.path) != std::string::npos);
    return read.error().message();
  };
  nlohmann::json json = nlohmann::json::parse(text);
  json["content"]["files"][0]["rows"][0] = 1'000'000;
  CHECK(refusal(json).find("\"hash\" does not fit the content") != std::string::npos);
  json = nlohmann::json::parse(text);
  json["sources"][0]["format"] = "parquet";
  CHECK(refusal(json).find("\"hash\" does not fit \"files\"") != std::string::npos);
  json = nlohmann::json::parse(text);
  json["sources"].erase(0);
  CHECK(refusal(json).find("\"sources\"") != std::string::npos);
  json = nlohmann::json::parse(text);
  json["content"]["files"] = 7;
  CHECK(refusal(json).find("is not a list") != std::string::npos);
}

TEST_CASE("ledger file: of a format that is not known is said so, whatever is in it") {
  LedgerOfCorpus ledger;
  nlohmann::json json = nlohmann::json::parse(ledger.text);
  json["format"] = "ostro token store 9";
  const auto check = [&](const std::string& text) {
    const Error error = ledger.refusal(text);
    CHECK(error.code() == ErrorCode::kUnsupported);
    CHECK(error.message().find("\"format\" is \"ostro token store 9\"; this program reads") !=
          std::string::npos);
  };
  check(prepare::with_checksum(json));
  json.erase("content");
  check(prepare::with_checksum(json));
  check(json.dump(2));  // without a checksum of ours
}

TEST_CASE("ledger file: a store of an older format is refused with the command that builds it again") {
  LedgerOfCorpus ledger;
  nlohmann::json json = nlohmann::json::parse(ledger.text);
  for (const char* format : {"ostro token store 1", "ostro token store 2"}) {
    json["format"] = format;
    const Error error = ledger.refusal(prepare::with_checksum(json));
    CHECK(error.code() == ErrorCode::kUnsupported);
    CHECK_MESSAGE(
        error.message() ==
            fmt::format("corpus-cache/ledger.json: \"format\" is \"{}\"; this program reads \"ostro "
                        "token store 3\" and \"ostro token store 4\". To build the store again, remove "
                        "the folder corpus-cache and run: ostro data build --config ...",
                        format),
        error.message());
  }
  // A root belongs to format 4 and to no other.
  json["format"] = kLedgerFormat3;
  CHECK(ledger.opens(prepare::with_checksum(json)));
  CHECK((*LedgerFile::open(ledger.fs, ledger.options.cache_dir))->head().root.empty());
  json["format"] = kLedgerFormat;
  json.erase("root");
  CHECK(ledger.refusal(prepare::with_checksum(json)).message().find("\"root\" is missing") !=
        std::string::npos);
}

TEST_CASE("ledger file: values that its hash was not taken of are refused") {
  LedgerOfCorpus ledger;
  const nlohmann::json json = nlohmann::json::parse(ledger.text);
  const std::string content = json["content"].dump(), hash = json["hash"];
  nlohmann::json other = json["content"];
  other["splits"]["train"]["arrays"]["input_ids/data"]["sha256"] = std::string(64, '0');
  // The ledger's text with `from` replaced by `to`, and with the checksum of the new text.
  const auto forged = [&](const std::string& from, const std::string& to, nlohmann::json base) {
    base.erase("sha256");
    std::string text = base.dump();
    const size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    text.replace(at, from.size(), to);
    const size_t before = text.find(",\"sources\":");
    REQUIRE(before != std::string::npos);
    return text.insert(before, ",\"sha256\":\"" + sha256_hex(text) + "\"");
  };
  const auto says = [&](const std::string& text, const std::string& what) {
    CHECK(nlohmann::json::accept(text));
    const std::string message = ledger.refusal(text).message();
    CHECK_MESSAGE(message.find(what) != std::string::npos, message);
  };
  const std::string key = "\"content\":";
  CHECK(ledger.opens(forged(key + content, key + content, json)));  // as it was
  // The content twice: a hash of the first, the values of the last.
  says(forged(key + content, key + content + ',' + key + other.dump(), json),
       "has the key \"content\" twice");
  says(forged(key + content, key + content + ",\"\\u0063ontent\":" + other.dump(), json),
       "has the key \"content\" twice");
  says(forged(key + content, "\"\\u0063ontent\":" + other.dump(), json), "\"sha256\" is");
  // In the content, with a fitting hash: an unknown field, a key twice, and a key with escapes.
  const auto hashed = [&](const std::string& text) {
    nlohmann::json base = json;
    base["hash"] = sha256_hex(text);
    return forged(key + content, key + text, base);
  };
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = content;
    const size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    return hashed(text.replace(at, from.size(), to));
  };
  says(changed("{\"files\":", "{\"extra\":1,\"files\":"), "\"content\" has");
  says(changed("\"vocab_size\":", "\"tokens\":1,\"vocab_size\":"), "\"content\" has");
  says(changed("\"parsed\"", "\"escaped\""), "\"content\" has");
  says(changed("\"vocab_size\":", "\"vocab_size\":7,\"vocab_size\":"), "has the key \"vocab_size\" twice");
  says(changed("\"vocab_size\":", "\"vocab_siz\\u0065\":"), "\"content\" has");
  says(changed("\"splits\":", "\"splits\":{},\"splits\":"), "\"content\" is not a JSON object whose keys");
  says(changed("\"splits\":", "\"split\\u0073\":"), "\"content\" is not a JSON object whose keys");
  // The same in a file that was reformatted.
  nlohmann::json extra = json;
  extra["content"]["extra"] = 1;
  extra["hash"] = sha256_hex(extra["content"].dump());
  says(nlohmann::json::parse(prepare::with_checksum(extra)).dump(2), "\"content\" has");
}

}  // namespace
}  // namespace ostro::data
