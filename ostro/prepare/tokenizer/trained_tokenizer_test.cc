// The tokenizer that is trained where a configuration names none.
#include "ostro/prepare/tokenizer/trained_tokenizer.h"

#include <doctest/doctest.h>

#include "ostro/base/log.h"
#include "ostro/io/files/faulty_file_system.h"
#include "ostro/prepare/store/documents.h"
#include "ostro/prepare/store/test_corpus.h"
#include "ostro/prepare/tokenizer/tokenizer_record.h"
#include "ostro/tokenizer/files/files.h"

using namespace ostro;
using namespace ostro::data;
using namespace ostro::prepare;

namespace {

DataOptions untrained_options() {
  DataOptions options = corpus_options("corpus");
  options.tokenizer = std::nullopt;
  options.vocab_size = 280;
  return options;
}

const std::string kPath = "corpus-cache/tokenizer.json", kRecord = "corpus-cache/tokenizer_training.json";

std::string hash_of(io::FileSystem& fs, const DataOptions& options, int threads = 2) {
  const auto made = make_tokenizer(fs, options, small_settings(threads));
  REQUIRE_MESSAGE(made.ok(), made.error().message());
  return made->hash();
}

std::string error_of(io::FileSystem& fs, const DataOptions& options) {
  const auto made = make_tokenizer(fs, options, small_settings());
  return made.ok() ? "" : made.error().message();
}

// What training on exactly these documents gives.
std::string hash_from(std::vector<std::string> documents, uint32_t vocab_size) {
  size_t next = 0;
  const auto trained = tokenizer::train(
      [&](std::string& document) -> Result<bool> {
        if (next == documents.size()) return false;
        document = documents[next++];
        return true;
      },
      {.vocab_size = vocab_size});
  REQUIRE(trained.ok());
  return trained->hash();
}

std::vector<std::string> log_of(const std::function<void()>& work) {
  std::vector<std::string> lines;
  const LogSink before = set_log_sink([&](LogLevel, std::string_view line) { lines.emplace_back(line); });
  work();
  set_log_sink(before);
  return lines;
}

}  // namespace

TEST_CASE("a tokenizer that is not named is trained from the documents that are not held out, and said so") {
  io::MemoryFileSystem fs;
  write_corpus(fs, "corpus");
  const DataOptions options = untrained_options();
  CHECK(open_tokenizer(fs, options).error().message().find(kPath + " has not been trained yet") !=
        std::string::npos);
  std::string hash;
  const auto lines = log_of([&] { hash = hash_of(fs, options); });
  REQUIRE(lines.size() == 2);
  CHECK(lines[0] == "no tokenizer is named: training one of 280 tokens from 25 files");
  CHECK(lines[1].find(kPath + ": 280 tokens, trained from ") == 0);

  std::vector<std::string> all, kept;
  for (int i = 0; i < 24; ++i) all.push_back(words(i, 5 + 7 * i));
  for (int i = 0; i < 60; ++i) all.push_back(words(100 + i, 20));
  for (const std::string& text : all)
    if (!is_held_out(text, options.validation_fraction)) kept.push_back(text);
  REQUIRE(kept.size() < all.size());
  CHECK(hash == hash_from(kept, 280));
  CHECK(hash != hash_from(all, 280));  // held-out text would show
  CHECK(open_tokenizer(fs, options)->hash() == hash);
  CHECK(tokenizer::load_tokenizer(fs, kPath)->hash() == hash);
  // A second start says nothing and trains nothing.
  CHECK(log_of([&] { CHECK(hash_of(fs, options, 1) == hash); }).empty());
  // One that is named is not trained.
  DataOptions named = options;
  named.tokenizer = kPath;
  named.vocab_size = std::nullopt;
  CHECK(hash_of(fs, named) == hash);
}

TEST_CASE("where the texts run out of pairs, the tokenizer is smaller than was asked, and that is said") {
  io::MemoryFileSystem fs;
  write_corpus(fs, "corpus");
  DataOptions options = untrained_options();
  options.vocab_size = 5000;
  const auto lines = log_of([&] { hash_of(fs, options); });
  REQUIRE(lines.size() == 2);
  CHECK(lines[1].find(" tokens (the texts have no more pairs), trained from ") != std::string::npos);
  CHECK(open_tokenizer(fs, options)->vocab_size() < 5000);
  CHECK(error_of(fs, options) == "");
}

TEST_CASE("threads and places do not show in a trained tokenizer") {
  io::MemoryFileSystem fs;
  write_corpus(fs, "corpus");
  write_corpus(fs, "elsewhere/deep");
  DataOptions other = untrained_options();
  other.train_urls = {"elsewhere/deep"};
  other.cache_dir = "other-cache";
  CHECK(hash_of(fs, untrained_options(), 1) == hash_of(fs, other, 5));
  // The same texts at other times: the record is compared by content.
  write_corpus(fs, "corpus");
  CHECK(error_of(fs, untrained_options()) == "");
}

TEST_CASE("other texts or options than a tokenizer was trained from are an error that names them") {
  io::MemoryFileSystem fs;
  write_corpus(fs, "corpus");
  const DataOptions options = untrained_options();
  hash_of(fs, options);
  DataOptions other = options;
  other.vocab_size = 270;
  CHECK(error_of(fs, other).find(
            "was trained with data.vocab_size 280, and 270 is wanted; give data.cache_dir") !=
        std::string::npos);
  CHECK(open_tokenizer(fs, other).error().message().find("data.vocab_size 280") != std::string::npos);
  other = options;
  other.validation_fraction = 0.5;
  CHECK(error_of(fs, other).find("a validation_fraction of 0.2, not 0.5") != std::string::npos);
  other = options;
  other.on_bad_row = OnBadRow::kSkip;
  CHECK(error_of(fs, other).find("data.on_bad_row error, not skip") != std::string::npos);
  write(fs, "corpus/text/01.txt", "something else");
  CHECK(error_of(fs, options).find("other content of corpus/text/01.txt") != std::string::npos);
  write_corpus(fs, "corpus");
  CHECK(error_of(fs, options) == "");
  write(fs, "corpus/text/more.txt", "more");
  CHECK(error_of(fs, options).find("25 files, not 26") != std::string::npos);
  check_ok(fs.remove("corpus/text/more.txt"));
  // Another tokenizer in its place.
  check_ok(tokenizer::save_tokenizer(fs, test_tokenizer(), kPath));
  CHECK(error_of(fs, options).find("is not the tokenizer that was trained there") != std::string::npos);
  check_ok(fs.remove(kRecord));
  CHECK(error_of(fs, options).find("is not the tokenizer that these texts and options give") !=
        std::string::npos);
}

TEST_CASE("a tokenizer cannot be trained from rows that are no texts, nor from a store that is there") {
  io::MemoryFileSystem fs;
  write_corpus(fs, "corpus");
  DataOptions options;
  options.components["web"].train_urls = {"corpus"};
  options.components["chat"].train_urls = {"corpus/lines.jsonl"};
  options.components["chat"].format = ChatFormat{};
  CHECK(error_of(fs, options)
            .find("data.tokenizer: is null, and data.components.chat has rows that are not texts") == 0);
  options.components["chat"] = {};
  CHECK(error_of(fs, options).find("data.components.chat has a store that exists already") !=
        std::string::npos);
  // Of texts in several components, with a field each.
  write(fs, "code.jsonl", "{\"body\": \"int main() { return 0; }\"}\nno row\n");
  options.components["chat"].train_urls = {"code.jsonl"};
  options.components["chat"].validation_fraction = 0;
  options.components["chat"].format = TextFormat{"body"};
  CHECK(error_of(fs, options).find("code.jsonl:2: not valid JSON") != std::string::npos);
  options.on_bad_row = OnBadRow::kSkip;
  CHECK(error_of(fs, options) == "");
  const auto record = read_tokenizer_record(fs, "cache");
  REQUIRE(record);
  CHECK(record->vocab_size == kDefaultVocabSize);
  CHECK(record->components[0].text_key == "body");
}

TEST_CASE("a training that is cut off anywhere is done again, to the same tokenizer") {
  io::MemoryFileSystem clean;
  write_corpus(clean, "corpus");
  const DataOptions options = untrained_options();
  const std::string hash = hash_of(clean, options);
  io::FaultyFileSystem counting(clean);
  check_ok(clean.remove(kPath));
  check_ok(clean.remove(kRecord));
  REQUIRE(hash_of(counting, options) == hash);
  const int64_t writes = counting.writes();
  CHECK(writes >= 10);  // lock, and for two files create, append, sync, rename, sync of the folder
  const LogSink before = set_log_sink([](LogLevel, std::string_view) {});
  for (int64_t at = 0; at < writes; ++at)
    for (const uint64_t seed : {0, 1, 2}) {
      CAPTURE(at);
      CAPTURE(seed);
      io::MemoryFileSystem memory;
      write_corpus(memory, "corpus");
      {
        io::FaultyFileSystem faulty(memory);
        faulty.inject(io::Fault::kCrash, at);
        (void)make_tokenizer(faulty, options, small_settings(1));
        CHECK(faulty.triggered());
      }
      memory.crash(seed);
      CHECK(hash_of(memory, options) == hash);
      CHECK(open_tokenizer(memory, options)->hash() == hash);
      CHECK(read_tokenizer_record(memory, "corpus-cache"));
    }
  set_log_sink(before);
}

TEST_CASE("a training in place of a deleted tokenizer may be cut off anywhere, with other texts, too") {
  const DataOptions options = untrained_options();
  const auto prepare = [&](io::FileSystem& fs) {
    write_corpus(fs, "corpus");
    hash_of(fs, options);
    check_ok(fs.remove(kPath));
    check_ok(fs.sync_dir("corpus-cache"));
    write(fs, "corpus/text/01.txt", words(700, 400));  // not the text that the record has
  };
  const LogSink before = set_log_sink([](LogLevel, std::string_view) {});
  io::MemoryFileSystem clean;
  prepare(clean);
  const std::string old_hash = read_tokenizer_record(clean, "corpus-cache")->tokenizer;
  io::FaultyFileSystem counting(clean);
  const std::string hash = hash_of(counting, options);
  CHECK(hash != old_hash);
  for (int64_t at = 0; at < counting.writes(); ++at)
    for (const uint64_t seed : {0, 1, 2}) {
      CAPTURE(at);
      CAPTURE(seed);
      io::MemoryFileSystem memory;
      prepare(memory);
      {
        io::FaultyFileSystem faulty(memory);
        faulty.inject(io::Fault::kCrash, at);
        (void)make_tokenizer(faulty, options, small_settings(1));
        CHECK(faulty.triggered());
      }
      memory.crash(seed);
      CHECK(hash_of(memory, options) == hash);
      CHECK(read_tokenizer_record(memory, "corpus-cache")->tokenizer == hash);
    }
  set_log_sink(before);
}

TEST_CASE("a store that was extended keeps the tokenizer that it was begun with") {
  io::MemoryFileSystem fs;
  write_corpus(fs, "corpus");
  const DataOptions options = untrained_options();
  const std::string hash = hash_of(fs, options);
  REQUIRE(build_store(fs, options, *make_tokenizer(fs, options, small_settings()), small_settings()).ok());
  write(fs, "corpus/text/zzz.txt", words(500, 40));
  BuildSettings settings = small_settings();
  settings.append = true;
  CHECK(hash_of(fs, options) == hash);
  const auto extended = build_store(fs, options, *make_tokenizer(fs, options, settings), settings);
  REQUIRE_MESSAGE(extended.ok(), extended.error().message());
  CHECK(hash_of(fs, options) == hash);
  // Without its stores it is one for other texts.
  check_ok(fs.remove(ledger_path("corpus-cache")));
  CHECK(error_of(fs, options).find("was trained from 25 files, not 26") != std::string::npos);
}

TEST_CASE("one process at a time trains a tokenizer") {
  io::MemoryFileSystem fs;
  write_corpus(fs, "corpus");
  check_ok(fs.make_dirs("corpus-cache"));
  const auto lock = fs.lock("corpus-cache/tokenizer.lock", "another one");
  REQUIRE(lock.ok());
  const auto made = make_tokenizer(fs, untrained_options(), small_settings());
  REQUIRE_FALSE(made.ok());
  CHECK(made.error().code() == ErrorCode::kBusy);
  CHECK(made.error().message().find("locked by another one") != std::string::npos);
}
