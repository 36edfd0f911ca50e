#include <doctest/doctest.h>

#include <algorithm>

#include "ostro/base/log.h"
#include "ostro/base/log_capture_for_test.h"
#include "ostro/base/sha256.h"
#include "ostro/io/files/counting_file_system.h"
#include "ostro/prepare/store/documents.h"
#include "ostro/prepare/store/test_corpus.h"
#include "ostro/tokenizer/unicode/utf8.h"

using namespace ostro;
using namespace ostro::data;
using namespace ostro::prepare;

namespace {

// The stream of a split, made in the slowest way: every document of the corpus, in order, encoded and joined.
std::vector<int32_t> slow_stream(const std::vector<std::string>& documents, Split split, double fraction) {
  std::vector<int32_t> stream;
  for (const std::string& text : documents) {
    const std::string hex = sha256_hex(text).substr(0, 13);  // 52 bits: exact in a double
    const bool held_out = static_cast<double>(std::stoull(hex, nullptr, 16)) / 0x1p52 < fraction;
    if (held_out != (split == Split::kValidation)) continue;
    for (const uint32_t id : test_tokenizer().encode(text)) stream.push_back(static_cast<int32_t>(id));
    stream.push_back(static_cast<int32_t>(*test_tokenizer().eos_id()));
  }
  return stream;
}

std::vector<int32_t> whole_stream(const TokenStream& stream) {
  std::vector<int32_t> tokens(static_cast<size_t>(stream.tokens()));
  check_ok(stream.read(0, tokens));
  return tokens;
}

StoreLedger build(io::FileSystem& fs, const DataOptions& options, int threads = 3) {
  auto ledger = build_store(fs, options, test_tokenizer(), small_settings(threads));
  if (!ledger.ok()) FAIL(ledger.error().message());
  return *ledger;
}

}  // namespace

TEST_CASE("token store: holds the documents in order, split by their hash") {
  io::MemoryFileSystem fs;
  write_corpus(fs, "corpus");
  const DataOptions options = corpus_options("corpus");
  const StoreLedger ledger = build(fs, options);

  std::vector<std::string> documents;  // deep/ sorts before digits? no: "lines" < "text", "00" < "deep"
  for (int i = 0; i < 60; ++i) documents.push_back(words(100 + i, 20));
  for (const bool deep : {false, true})
    for (int i = 0; i < 24; ++i)
      if ((i % 3 == 0) == deep) documents.push_back(words(i, 5 + 7 * i));

  const auto store = open_store(fs, options);
  REQUIRE(store.ok());
  int64_t rows = 0;
  for (const Split split : kSplits) {
    const std::vector<int32_t> expected = slow_stream(documents, split, 0.2);
    REQUIRE(expected.size() > 100);
    CHECK(whole_stream((*store)->split(split)) == expected);
    rows += (*store)->split(split).rows();
  }
  CHECK(rows == 84);
  CHECK(ledger.hash() == (*store)->hash());
  CHECK(verify_store(fs, options.cache_dir).ok());
  CHECK_FALSE(*fs.exists("corpus-cache/journal.jsonl"));
}

TEST_CASE("token store: every token knows its file and document") {
  io::MemoryFileSystem fs;
  write_corpus(fs, "corpus");
  const DataOptions options = corpus_options("corpus");
  build(fs, options);
  const auto store = TokenStore::open(fs, options.cache_dir);
  REQUIRE(store.ok());
  for (const Split split : kSplits) {
    const TokenStream& stream = (*store)->split(split);
    const auto all = stream.rows_of(0, stream.tokens());
    REQUIRE(all.ok());
    REQUIRE(static_cast<int64_t>(all->size()) == stream.rows());
    int64_t end = 0;
    for (const RowSpan& row : *all) {
      CHECK(row.begin == end);
      end = row.end;
      const auto source = stream.source(row.row);
      REQUIRE(source.ok());
      std::string text;
      if (source->file == "corpus/lines.jsonl") {
        text = words(100 + source->document - 1, 20);
      } else {
        CHECK(source->document == 1);
        text = *fs.read_file(source->file);
      }
      CHECK(source->bytes == static_cast<int64_t>(text.size()));
      std::vector<int32_t> tokens(static_cast<size_t>(row.end - row.begin));
      check_ok(stream.read(row.begin, tokens));
      const std::vector<uint32_t> ids(tokens.begin(), tokens.end() - 1);
      CHECK(*test_tokenizer().decode(ids) == text);
    }
    CHECK(end == stream.tokens());
    for (int64_t first = 0; first + 30 <= stream.tokens(); first += 17) {
      const auto rows = stream.rows_of(first, 30);
      REQUIRE(rows.ok());
      std::vector<RowSpan> expected;
      for (const RowSpan& row : *all)
        if (row.begin < first + 30 && row.end > first) expected.push_back(row);
      REQUIRE(rows->size() == expected.size());
      for (size_t i = 0; i < expected.size(); ++i) {
        CHECK((*rows)[i].row == expected[i].row);
        CHECK((*rows)[i].begin == expected[i].begin);
        CHECK((*rows)[i].end == expected[i].end);
      }
    }
  }
}

TEST_CASE("token store: threads, place and times do not matter; content, tokenizer and options do") {
  io::MemoryFileSystem fs;
  write_corpus(fs, "corpus");
  write_corpus(fs, "else/where");
  DataOptions options = corpus_options("corpus");
  const std::string hash = build(fs, options).hash();
  for (const int threads : {1, 2, 7}) {
    options.cache_dir = fmt::format("cache{}", threads);
    CHECK(build(fs, options, threads).hash() == hash);
  }
  CHECK(build(fs, corpus_options("else/where")).hash() == hash);

  options.cache_dir = "other-fraction";
  options.validation_fraction = 0.3;
  CHECK(build(fs, options).hash() != hash);
  options = corpus_options("corpus");
  options.cache_dir = "no-eos";
  options.enforce_eos = false;
  CHECK(build(fs, options).hash() != hash);
  options = corpus_options("corpus");
  options.cache_dir = "changed";
  (*fs.content("corpus/text/01.txt"))[0] = 'T';
  CHECK(build(fs, options).hash() != hash);
}

TEST_CASE("token store: the beginning of texts is a part of the store, and one without it says so") {
  io::MemoryFileSystem fs;
  write_corpus(fs, "corpus");
  DataOptions options = corpus_options("corpus");
  const tokenizer::Tokenizer begins = test_tokenizer().with_beginning({7}).value();
  const auto made = [&](std::optional<bool> enforce, const char* folder) {
    options.enforce_bos = enforce;
    options.cache_dir = folder;
    return build_store(fs, options, begins, small_settings()).value();
  };
  const auto opened = [&](std::optional<bool> enforce, const char* folder) {
    options.enforce_bos = enforce;
    options.cache_dir = folder;
    return TokenStore::open(fs, options, components_of(options)[0], begins);
  };
  const StoreLedger with = made({}, "with"), without = made(false, "without");
  CHECK(with.preprocessing.before == std::vector<int64_t>{7});
  CHECK(without.preprocessing.before.empty());
  CHECK(with.split(Split::kTrain).tokens ==
        without.split(Split::kTrain).tokens + with.split(Split::kTrain).rows);
  CHECK(read_ledger(fs, "with")->hash() == with.hash());
  LogCapture log;
  CHECK(opened({}, "with").ok());
  CHECK(log.lines.empty());
  CHECK(opened({}, "without").ok());
  CHECK(log.lines.find("without: its texts have no beginning token") != std::string::npos);
  options.enforce_bos = {};
  CHECK(build_store(fs, options, begins, small_settings()).ok());
  CHECK(opened(false, "with").error().message().find("data.enforce_bos") != std::string::npos);
  write(fs, "corpus/text/zz.txt", "the cat");
  options.cache_dir = "without";
  options.enforce_bos = {};
  BuildSettings more = small_settings();
  more.append = true;
  CHECK(build_store(fs, options, begins, more).error().message().find("data.enforce_bos") !=
        std::string::npos);
}

TEST_CASE("token store: a finished store is reused when it fits, and refused with what differs when not") {
  io::MemoryFileSystem fs;
  write_corpus(fs, "corpus");
  DataOptions options = corpus_options("corpus");
  const StoreLedger ledger = build(fs, options);
  io::CountingFileSystem counting(fs);
  CHECK(build(counting, options).hash() == ledger.hash());
  CHECK(counting.counts().opens == 1);  // the ledger

  const auto refused = [&](const std::string& part) {
    const auto result = build_store(fs, options, test_tokenizer(), small_settings());
    REQUIRE_FALSE(result.ok());
    CHECK(result.error().code() == ErrorCode::kInvalidArgument);
    INFO(result.error().message());
    CHECK(result.error().message().find(part) != std::string::npos);
    CHECK(result.error().message().find("data.cache_dir") != std::string::npos);
  };
  options.text_key = "body";
  refused("data.text_key: the store has text, the configuration body");
  options = corpus_options("corpus");
  options.enforce_eos = false;
  refused("data.enforce_eos");
  options = corpus_options("corpus");
  options.train_urls = {"corpus/text"};
  refused("corpus/lines.jsonl");

  options = corpus_options("corpus");
  const std::string text = *fs.read_file("corpus/text/05.txt");
  write(fs, "corpus/text/05.txt", text);  // touched, same content
  CHECK(build(fs, options).hash() == ledger.hash());
  counting.reset();
  CHECK(build(counting, options).hash() == ledger.hash());
  CHECK(counting.counts().opens == 2);  // the ledger and the hash: it is read once
  *fs.content("corpus-cache/source_hashes.json") = "{}";
  CHECK(build(fs, options).hash() == ledger.hash());
  write(fs, "corpus/text/05.txt", "T" + text.substr(1));
  refused("corpus/text/05.txt has other content now");
  write(fs, "corpus/text/05.txt", text);
  write(fs, "corpus/text/new.txt", text);
  refused("corpus/text/new.txt");

  // Not when only some are gone.
  options.train_urls = {"corpus/text", "corpus/*.jsonl"};
  check_ok(fs.remove("corpus/lines.jsonl"));
  const auto half = build_store(fs, options, test_tokenizer(), small_settings());
  REQUIRE_FALSE(half.ok());
  CHECK(half.error().message() ==
        "corpus-cache: the finished token store there cannot be compared with its texts: data.train_urls: "
        "corpus/*.jsonl: names no file, while other patterns name 25; check the path and quote the glob, "
        "bring its "
        "texts back, or take it out of the list");

  // Without the texts, the finished store is used as it is.
  check_ok(fs.remove_all("corpus"));
  std::string warning;
  const LogSink before = set_log_sink([&](LogLevel, std::string_view line) { warning = line; });
  CHECK(build(fs, options).hash() == ledger.hash());
  set_log_sink(before);
  CHECK(warning.find("without comparing") != std::string::npos);
}

TEST_CASE("token store: sources that cannot be read are named, with the line") {
  io::MemoryFileSystem fs;
  check_ok(fs.make_dirs("in"));
  DataOptions options = corpus_options("in");
  const auto fails = [&](const std::string& part) {
    const auto result = build_store(fs, options, test_tokenizer(), small_settings());
    REQUIRE_FALSE(result.ok());
    INFO(result.error().message());
    CHECK(result.error().message().find(part) != std::string::npos);
    check_ok(fs.remove_all(options.cache_dir));
  };
  fails("data.train_urls: in: names no file");
  write(fs, "in/a.jsonl", "{\"text\": \"a\"}\n\n{\"text\": \"b\"\n");
  fails("in/a.jsonl:3: not valid JSON");
  write(fs, "in/a.jsonl", "{\"text\": \"a\"}\n{\"body\": \"b\"}\n");
  fails("in/a.jsonl:2: has no field \"text\"; set data.text_key");
  write(fs, "in/a.jsonl", "{\"text\": 7}");
  fails("in/a.jsonl:1: field \"text\" is not a string");
  write(fs, "in/a.jsonl", "[1]\n");
  fails("in/a.jsonl:1: not a JSON object");
  check_ok(fs.remove("in/a.jsonl"));
  write(fs, "in/a.txt.gz", "x");
  fails("in/a.txt.gz: compressed files are read as .jsonl.gz");
  check_ok(fs.remove("in/a.txt.gz"));
  const auto refused_by_name = [&](const std::string& name, const std::string& part) {
    write(fs, "in/" + name, "x");
    fails("in/" + name + ": " + part);
    check_ok(fs.remove("in/" + name));
  };
  for (const char* name : {"a.jsonl.lz4", "a.TGZ", "a.jsonl.zstd"})
    refused_by_name(name, "compressed files are");
  for (const char* name : {"a.arrow", "a.npy", "a.SafeTensors", "a.bin"}) refused_by_name(name, "a .");
  write(fs, "in/a.json", "{\n\"text\": \"a\"}\n");
  fails("in/a.json:1: the file is one JSON document and not lines");
  check_ok(fs.remove("in/a.json"));
  write(fs, "in/a.png", std::string("\x89PNG\0", 5));
  fails("in/a.png: holds a NUL byte (at byte 4)");
  check_ok(fs.remove("in/a.png"));
  write(fs, "in/a.txt", "x");
  options.validation_urls = {"in/a.*"};
  fails("in/a.txt is in data.train_urls, too");
}

TEST_CASE("token store: rows in lines, by whatever name, and texts") {
  const std::string lines = "{\"text\": \"the cat\"}\n{\"text\": \"the mat\"}\n";
  const auto documents = [&](const char* name) {
    io::MemoryFileSystem fs;
    check_ok(fs.make_dirs("in"));
    write(fs, std::string("in/") + name, lines);
    return build(fs, corpus_options("in")).files.at(0).documents;
  };
  for (const char* name : {"a.jsonl", "a.JSONL", "a.ndjson", "a.Ndjson", "a.json"})
    CHECK_MESSAGE(documents(name) == 2, name);
  for (const char* name : {"a.csv", "a.html", "a.json.txt", "README"})
    CHECK_MESSAGE(documents(name) == 1, name);
}

TEST_CASE("token store: a tokenizer that texts lose bytes to is told of, once, with the bytes") {
  const auto warning = [](const std::vector<std::string>& without) {
    nlohmann::json json = nlohmann::json::parse(test_tokenizer().to_json());
    nlohmann::json& vocab = json["model"]["vocab"];
    for (const std::string& token : without) {
      vocab["no text has " + token] = vocab.at(token);
      vocab.erase(token);
    }
    io::MemoryFileSystem fs;
    check_ok(fs.make_dirs("in"));
    write(fs, "in/a.txt", "xx y");
    std::string lines;
    const auto tokenizer = tokenizer::Tokenizer::from_json(json.dump(), "t.json");
    REQUIRE_MESSAGE(tokenizer.ok(), tokenizer.error().message());
    const LogSink before = set_log_sink([&](LogLevel, std::string_view line) { lines += line; });
    const auto built = build_store(fs, corpus_options("in"), *tokenizer, small_settings());
    set_log_sink(before);
    REQUIRE(built.ok());
    return lines;
  };
  CHECK(warning({}) == "");
  CHECK(warning({"\u00c0", "\u00ff"}) == "");  // bytes that are in no UTF-8
  CHECK(warning({"X", "\u00f0", "\u0100"})
            .find("data.tokenizer: tokenizer.json has no token for 3 of the bytes that texts are made of "
                  "(0x00, X, "
                  "0xf0), nor one for unknown text") == 0);
  CHECK(warning({"X", "Y", "Z", "Q", "J", "K", "!"})
            .find("7 of the bytes that texts are made of (!, J, K, Q, X, Y, ...)") != std::string::npos);
}

TEST_CASE("token store: empty documents are skipped, malformed bytes replaced, both counted") {
  io::MemoryFileSystem fs;
  check_ok(fs.make_dirs("in"));
  write(fs, "in/a.txt", "");
  write(fs, "in/b.txt", "good");
  write(fs, "in/c.txt",
        "b\xff"
        "ad \xe2\x82");
  write(fs, "in/d.jsonl", "{\"text\": \"\"}\n\n{\"text\": \"\xc3(\"}\n{\"text\": \"fine\"}");
  DataOptions options = corpus_options("in");
  options.validation_fraction = 0;
  const StoreLedger ledger = build(fs, options);
  REQUIRE(ledger.files.size() == 4);
  CHECK(ledger.files[0].empty == 1);
  CHECK(ledger.files[0].documents == 0);
  CHECK(ledger.files[2].repaired == 1);
  CHECK(ledger.files[3].empty == 1);
  CHECK(ledger.files[3].repaired == 1);
  CHECK(ledger.files[3].documents == 2);
  CHECK(ledger.split(Split::kTrain).rows == 4);
  CHECK(ledger.split(Split::kValidation).rows == 0);
  const auto store = TokenStore::open(fs, options.cache_dir);
  REQUIRE(store.ok());
  const TokenStream& stream = (*store)->split(Split::kTrain);
  std::vector<uint32_t> ids;
  for (const int32_t id : whole_stream(stream)) ids.push_back(static_cast<uint32_t>(id));
  CHECK(*test_tokenizer().decode(ids, true) ==
        "goodb\xef\xbf\xbd"
        "ad \xef\xbf\xbd\xef\xbf\xbd(fine");
  CHECK(stream.source(2)->document == 3);  // lines are counted, not documents
  CHECK(stream.source(3)->document == 4);
}

TEST_CASE("token store: two builders at once: the second is refused") {
  io::MemoryFileSystem fs;
  write_corpus(fs, "corpus");
  DataOptions options = corpus_options("corpus");
  check_ok(fs.make_dirs(options.cache_dir));
  const auto lock = fs.lock("corpus-cache/build.lock", "another");
  REQUIRE(lock.ok());
  const auto result = build_store(fs, options, test_tokenizer(), small_settings());
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().code() == ErrorCode::kBusy);
}

TEST_CASE("token store: a folder that holds another program's store is left alone") {
  io::MemoryFileSystem fs;
  write_corpus(fs, "corpus");
  check_ok(fs.make_dirs("corpus-cache/train/input_ids"));
  write(fs, "corpus-cache/train/shard_ledger.json", "{}");
  const auto result = build_store(fs, corpus_options("corpus"), test_tokenizer(), small_settings());
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().message().find("another program's") != std::string::npos);
}
