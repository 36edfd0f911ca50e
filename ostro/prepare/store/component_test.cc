// Stores of components: what they keep about rows, types of ids, extending by new files, joining parts.
#include <doctest/doctest.h>

#include "ostro/base/log.h"
#include "ostro/base/test_size.h"
#include "ostro/data/arrays/recorded_sums.h"
#include "ostro/io/files/faulty_file_system.h"
#include "ostro/prepare/store/consolidate.h"
#include "ostro/prepare/store/test_corpus.h"

using namespace ostro;
using namespace ostro::data;
using namespace ostro::prepare;

namespace {

// One component "web" of a corpus' files.
DataOptions web_options(const std::vector<std::string>& train,
                        const std::vector<std::string>& held_out = {}) {
  DataOptions options;
  options.cache_dir = "cache";
  options.components["web"] = {
      .train_urls = train, .validation_urls = held_out, .validation_fraction = 0.2, .format = TextFormat{}};
  return options;
}

Component web(const DataOptions& options) { return components_of(options).front(); }

Result<StoreLedger> try_build(io::FileSystem& fs, const DataOptions& options, bool append = false) {
  BuildSettings settings = small_settings();
  settings.append = append;
  return build_store(fs, options, web(options), test_tokenizer(), settings);
}

StoreLedger build(io::FileSystem& fs, const DataOptions& options, bool append = false) {
  auto ledger = try_build(fs, options, append);
  if (!ledger.ok()) FAIL(ledger.error().message());
  CHECK(verify_store(fs, web(options).cache_dir).ok());
  return *ledger;
}

std::vector<int32_t> stream_of(const TokenStore& store, Split split) {
  std::vector<int32_t> tokens(static_cast<size_t>(store.split(split).tokens()));
  check_ok(store.split(split).read(0, tokens));
  return tokens;
}

void write_parts(io::FileSystem& fs) {
  check_ok(fs.make_dirs("in"));
  for (int part = 0; part < 4; ++part) {
    std::string lines;
    for (int i = 0; i < 25; ++i)
      lines += fmt::format("{{\"text\": \"{}\"}}\n", words(1000 * part + i, 3 + (7 * i + part) % 40));
    write(fs, fmt::format("in/{}.jsonl", part), lines);
  }
}

}  // namespace

TEST_CASE("component: rows know their bytes in the file and their hash") {
  io::MemoryFileSystem fs;
  write_corpus(fs, "corpus");
  const DataOptions options = web_options({"corpus"});
  build(fs, options);
  const auto store = TokenStore::open(fs, options, web(options), test_tokenizer());
  REQUIRE(store.ok());
  int64_t lines = 0;
  for (const Split split : kSplits) {
    const TokenStream& stream = (*store)->split(split);
    for (int64_t row = 0; row < stream.rows(); ++row) {
      const auto source = stream.source(row);
      REQUIRE(source.ok());
      const std::string bytes =
          fs.read_file(source->file)
              ->substr(static_cast<size_t>(source->begin), static_cast<size_t>(source->end - source->begin));
      const auto ends = stream.row_ends(row, 1);
      REQUIRE(ends.ok());
      std::vector<int32_t> tokens(static_cast<size_t>((*ends)[1] - (*ends)[0]));
      check_ok(stream.read((*ends)[0], tokens));
      const std::vector<uint32_t> ids(tokens.begin(), tokens.end());
      const std::string text = *test_tokenizer().decode(std::span(ids).first(ids.size() - 1));
      const bool is_line = source->file == "corpus/lines.jsonl";
      lines += is_line;
      CHECK(bytes ==
            (is_line ? fmt::format("{{\"id\": {}, \"text\": \"{}\"}}", source->document - 1, text) : text));
      CHECK(*stream.row_hash(row) == sha256(std::as_bytes(std::span(ids))));
    }
  }
  CHECK(lines == 60);
}

TEST_CASE("component: the type of ids changes neither tokens nor hash; every type is read") {
  io::MemoryFileSystem fs;
  write_corpus(fs, "corpus");
  DataOptions options = web_options({"corpus"});
  const std::string hash = build(fs, options).hash();
  const auto first = *TokenStore::open(fs, "cache/web");
  const std::pair<IdType, const char*> kTypes[] = {{IdType::kLevanter, "int64"},
                                                   {IdType::kSmallest, "uint16"},
                                                   {IdType::kUint32, "uint32"},
                                                   {IdType::kInt32, "int32"}};
  for (const auto& [type, name] : kTypes) {
    CAPTURE(name);
    options.id_type = type;
    options.components["web"].cache_dir = fmt::format("cache-{}", name);
    CHECK(build(fs, options).hash() == hash);
    const auto store = *TokenStore::open(fs, *options.components["web"].cache_dir);
    CHECK(io::Zarr1dReader::open(fs, fmt::format("cache-{}/train/input_ids/data", name))->spec().dtype ==
          name);
    for (const Split split : kSplits) CHECK(stream_of(*store, split) == stream_of(*first, split));
  }
  // Byte ranges of rows, which only components keep.
  CHECK(build_store(fs, corpus_options("corpus"), test_tokenizer(), small_settings())->hash() != hash);
}

TEST_CASE("component: malformed rows are skipped and counted when that is wanted") {
  io::MemoryFileSystem fs;
  check_ok(fs.make_dirs("in"));
  write(fs, "in/a.jsonl",
        "{\"text\": \"the cat\"}\n{\"text\": 7}\nno\n{\"text\": \"sat\"}\n{\"text\": \"\"}\n");
  DataOptions options = web_options({"in"});
  options.components["web"].validation_fraction = 0;
  const auto refused = try_build(fs, options);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message().find("in/a.jsonl:2: field \"text\" is not a string") != std::string::npos);
  options.on_bad_row = OnBadRow::kSkip;
  const StoreLedger ledger = build(fs, options);
  REQUIRE(ledger.files.size() == 1);
  CHECK(ledger.files[0].documents == 2);
  CHECK(ledger.files[0].skipped == 2);
  CHECK(ledger.files[0].empty == 1);
  CHECK(read_ledger(fs, "cache/web")->files == ledger.files);

  // A store without malformed rows is not what `error` would have built, no matter how it was made.
  options.on_bad_row = OnBadRow::kError;
  const auto error_of = [](const Result<StoreLedger>& result) {
    return result.ok() ? "" : result.error().message();
  };
  CHECK(error_of(try_build(fs, options)) ==
        "cache/web: the token store there lacks 2 malformed rows of 1 files (the first: in/a.jsonl), built "
        "with "
        "data.on_bad_row skip, and data.on_bad_row is error. Set it to skip, or mend the rows and build the "
        "store "
        "in another folder");
  DataOptions joined = options;
  joined.cache_dir = "joined";
  CHECK(error_of(consolidate_stores(fs, joined, web(joined), test_tokenizer(), {"cache/web"}, JoinRows::kCopy,
                                    small_settings()))
            .starts_with("cache/web: the token store there lacks 2 malformed rows"));
  // A store used in place cannot be built here.
  DataOptions in_place = web_options({});
  in_place.components["web"].cache_dir = "cache/web";
  std::string warning;
  const LogSink before = set_log_sink([&](LogLevel, std::string_view line) { warning = line; });
  CHECK(build(fs, in_place).hash() == ledger.hash());
  set_log_sink(before);
  CHECK(warning.find("lacks 2 malformed rows") != std::string::npos);
}

TEST_CASE("component: a store of our own is used in place, whatever rows it holds out") {
  io::MemoryFileSystem fs;
  write_parts(fs);
  DataOptions options = web_options({"in"});
  options.components["web"].format = TextFormat{.text_key = "text"};
  const StoreLedger ledger = build(fs, options);
  CHECK(ledger.split(Split::kValidation).rows > 0);
  DataOptions in_place = web_options({});
  in_place.components["web"].cache_dir = "cache/web";
  in_place.components["web"].validation_fraction = 0.01;
  in_place.components["web"].format = TextFormat{.text_key = "body"};
  CHECK(build(fs, in_place).hash() == ledger.hash());
  const auto store = TokenStore::open(fs, in_place, web(in_place), test_tokenizer());
  REQUIRE_MESSAGE(store.ok(), (store.ok() ? "" : store.error().message()));
  // Rows of another kind are another matter.
  in_place.components["web"].format = SupervisedFormat{};
  CHECK(try_build(fs, in_place).error().message().find("format of the rows") != std::string::npos);
  CHECK(TokenStore::open(fs, in_place, web(in_place), test_tokenizer())
            .error()
            .message()
            .find("format of the rows") != std::string::npos);
}

TEST_CASE("component: an unfinished store that has skipped rows is not gone on with when that is an error") {
  io::MemoryFileSystem fs;
  check_ok(fs.make_dirs("in"));
  write(fs, "in/a.jsonl", "no\n{\"text\": \"" + words(1, 200) + "\"}\n");
  write(fs, "in/b.jsonl.gz", "not packed");
  DataOptions options = web_options({"in"});
  options.on_bad_row = OnBadRow::kSkip;
  CHECK(try_build(fs, options).error().message().starts_with("in/b.jsonl.gz: "));
  options.on_bad_row = OnBadRow::kError;
  CHECK(
      try_build(fs, options)
          .error()
          .message()
          .starts_with(
              "cache/web: the token store there lacks 1 malformed rows of 1 files (the first: in/a.jsonl)"));
}

TEST_CASE("append: files at the end of their lists extend a store to what a build of all gives") {
  for (const bool held_out : {false, true}) {
    CAPTURE(held_out);
    io::MemoryFileSystem fs;
    write_parts(fs);
    const std::vector<std::string> held =
        held_out ? std::vector<std::string>{"in/3.jsonl"} : std::vector<std::string>{};
    DataOptions all = web_options({"in/0.jsonl", "in/1.jsonl", "in/2.jsonl"}, held);
    all.cache_dir = "whole";
    const std::string hash = build(fs, all).hash();

    DataOptions grows = web_options({"in/0.jsonl"}, held);
    const std::string before = build(fs, grows).hash();
    CHECK(before != hash);
    grows.components["web"].train_urls.push_back("in/1.jsonl");
    const auto refused = try_build(fs, grows);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().message().find("--append") != std::string::npos);
    build(fs, grows, true);
    check_ok(fs.remove(digests_path("cache/web")));  // as in stores made before they were kept
    grows.components["web"].train_urls.push_back("in/2.jsonl");
    CHECK(build(fs, grows, true).hash() == hash);
    CHECK(build(fs, grows, true).hash() == hash);  // nothing to add
    const auto whole = *TokenStore::open(fs, "whole/web"), grown = *TokenStore::open(fs, "cache/web");
    for (const Split split : kSplits) CHECK(stream_of(*grown, split) == stream_of(*whole, split));
    // Neither fewer nor other files.
    grows.components["web"].train_urls = {"in/0.jsonl", "in/2.jsonl", "in/1.jsonl"};
    CHECK_FALSE(try_build(fs, grows, true).ok());
    grows.components["web"].train_urls = {"in/0.jsonl"};
    CHECK_FALSE(try_build(fs, grows, true).ok());
  }
}

TEST_CASE("append: a power cut at any operation costs nothing but time, and files may change in between") {
  io::MemoryFileSystem whole;
  write_parts(whole);
  const DataOptions two = web_options({"in/0.jsonl", "in/1.jsonl"}),
                    other = web_options({"in/0.jsonl", "in/2.jsonl"});
  const std::string hash = build(whole, two).hash();
  check_ok(whole.remove_all("cache"));
  const std::string other_hash = build(whole, other).hash();
  int64_t crashes = 0;
  for (int64_t at = 0;; at += kFaultStep) {
    CAPTURE(at);
    io::MemoryFileSystem memory;
    write_parts(memory);
    build(memory, web_options({"in/0.jsonl"}));
    io::FaultyFileSystem fs(memory);
    fs.inject(io::Fault::kCrash, at);
    if (try_build(fs, two, true).ok()) break;
    ++crashes;
    memory.crash(static_cast<uint64_t>(at));
    // Every third time the list of files changes before the build continues, unless the cut came after the
    // last row.
    const bool changes = at % 3 == 2;
    const auto again = try_build(memory, changes ? other : two, true);
    if (changes && !again.ok()) {
      CHECK(again.error().message().find("in/1.jsonl") != std::string::npos);
      CHECK(build(memory, two, true).hash() == hash);
    } else {
      REQUIRE_MESSAGE(again.ok(), (again.ok() ? "" : again.error().message()));
      CHECK(again->hash() == (changes ? other_hash : hash));
      CHECK(verify_store(memory, "cache/web").ok());
    }
  }
  CHECK(crashes * kFaultStep > 30);
}

TEST_CASE("consolidate: stores of parts become the store of all, also after power cuts") {
  io::MemoryFileSystem memory;
  write_parts(memory);
  const std::string hash = build(memory, web_options({"in"})).hash();
  const auto part = [&](int number) {
    DataOptions options =
        web_options({fmt::format("in/{}.jsonl", 2 * number), fmt::format("in/{}.jsonl", 2 * number + 1)});
    options.cache_dir = fmt::format("part{}", number);
    build(memory, options);
    return options.cache_dir + "/web";
  };
  const std::vector<std::string> parts = {part(0), part(1)};
  DataOptions options = web_options({"in"});
  options.components["web"].cache_dir = "joined";
  const auto join = [&](io::FileSystem& fs, const std::vector<std::string>& from) {
    return consolidate_stores(fs, options, web(options), test_tokenizer(), from, JoinRows::kCopy,
                              small_settings());
  };
  const auto message = [&](const std::vector<std::string>& from) {
    const auto result = join(memory, from);
    REQUIRE_FALSE(result.ok());
    return result.error().message();
  };
  CHECK(message({parts[0]}).find("the parts lack 2 files that the configuration names") != std::string::npos);
  CHECK(message({parts[1], parts[0]}).find("another order") != std::string::npos);
  int64_t crashes = 0;
  for (int64_t at = 3;; at += 5, ++crashes) {
    CAPTURE(at);
    check_ok(memory.remove_all("joined"));
    io::FaultyFileSystem fs(memory);
    fs.inject(io::Fault::kCrash, at);
    const auto joined = join(fs, parts);
    if (joined.ok()) break;
    memory.crash(static_cast<uint64_t>(at));
    const auto again = join(memory, parts);
    REQUIRE_MESSAGE(again.ok(), (again.ok() ? "" : again.error().message()));
    CHECK(again->hash() == hash);
    CHECK(verify_store(memory, "joined").ok());
  }
  CHECK(crashes > 10);
  CHECK(join(memory, parts)->hash() == hash);
  // The joined store is accepted as the component's store, also later.
  CHECK(build(memory, options).hash() == hash);
}
