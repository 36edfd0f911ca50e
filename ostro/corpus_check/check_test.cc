#include "ostro/corpus_check/check.h"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <span>
#include <utility>

#include "ostro/base/sha256.h"
#include "ostro/corpus_check/minhash.h"
#include "ostro/corpus_check/spill_sort.h"
#include "ostro/corpus_check/words.h"
#include "ostro/data/rows/row_verdicts.h"
#include "ostro/io/files/forwarding_file_system.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/tokenizer/files/trainer.h"

namespace ostro::corpus_check {
namespace {

std::string random_words(std::mt19937& rng, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += fmt::format("{}w{}", i == 0 ? "" : " ", rng() % 5000);
  return out;
}

void write(io::FileSystem& fs, const std::string& path, const std::string& text) {
  auto file = fs.create(path);
  REQUIRE(file.ok());
  check_ok((*file)->append(text));
}

std::string line(const std::string& text) { return nlohmann::json{{"text", text}}.dump() + "\n"; }

// A corpus with things that a check should find, and others that it should not.
struct Corpus {
  io::MemoryFileSystem fs;
  data::DataOptions options;
  std::optional<tokenizer::Tokenizer> tok;
  CheckSettings settings;

  Corpus() {
    auto trained = tokenizer::train([](std::string&) -> Result<bool> { return false; }, {.vocab_size = 257});
    REQUIRE(trained.ok());
    tok.emplace(std::move(*trained));
    std::mt19937 rng(11);
    std::vector<std::string> docs;
    for (int i = 0; i < 300; ++i) docs.push_back(random_words(rng, 200));
    // Line 11: an exact copy of line 1; lines 12 to 14 near copies of line 2.
    docs[10] = docs[0];
    for (int i = 11; i < 14; ++i) docs[static_cast<size_t>(i)] = docs[1] + fmt::format(" extra{}", i);
    // Line 21 shares only half of its words with line 3, so it is no near copy.
    docs[20] = docs[2].substr(0, docs[2].size() / 2) + " " + random_words(rng, 100);
    const std::string question =
        "what is the tallest mountain on the planet that anyone has ever climbed twice";  // 14 words
    docs[30] += " WHAT is the tallest mountain, on the planet that anyone has ever climbed - twice?";
    docs[31] +=
        " what is the tallest mountain on the planet that anyone ever climbed twice";  // one word less
    docs[32] += " one two three four five six seven eight";
    std::string jsonl;
    for (const std::string& d : docs) jsonl += line(d);
    jsonl += line("");
    check_ok(fs.make_dirs("in"));
    write(fs, "in/a.jsonl", jsonl);
    write(fs, "in/eval.jsonl",
          nlohmann::json{{"question", question}, {"answer", "nobody knows"}}.dump() + "\n" +
              line("one two three four five six seven eight") + line("too short to tell") +
              line("eight words that are in no text whatsoever"));
    options.tokenizer = "unused";
    options.train_urls = {"in/a.jsonl"};
    settings.eval_files = {"in/eval.jsonl"};
    settings.folder = "out.tmp";
  }

  CheckReport run() {
    auto report = run_check(fs, options, *tok, settings);
    REQUIRE_MESSAGE(report.ok(), (report.ok() ? "" : report.error().message()));
    CHECK_FALSE(*fs.exists(settings.folder));
    return std::move(*report);
  }
};

std::string repeated(const std::string& word, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) out += (i > 0 ? " " : "") + word;
  return out;
}

Contamination found_in(const EvalIndex& index, const std::string& text) {
  return index.find(text, word_hashes(text));
}

// Refuses more than `limit` files open at once, as an operating system does.
class FewOpenFiles final : public io::ForwardingFileSystem {
 public:
  FewOpenFiles(io::FileSystem& base, int limit) : ForwardingFileSystem(base), limit_(limit) {}
  int most() const { return most_; }  // open at once so far

 private:
  // One open file.
  class Counted {
   public:
    explicit Counted(FewOpenFiles& fs) : fs_(fs) { fs_.most_ = std::max(fs_.most_, ++fs_.open_); }
    ~Counted() { --fs_.open_; }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;

   private:
    FewOpenFiles& fs_;
  };
  class ReadFile final : public io::RandomAccessFile {
   public:
    ReadFile(std::unique_ptr<io::RandomAccessFile> base, FewOpenFiles& fs)
        : base_(std::move(base)), counted_(fs) {}
    Status read(int64_t offset, std::span<std::byte> out) const override { return base_->read(offset, out); }
    int64_t size() const override { return base_->size(); }
    const std::string& path() const override { return base_->path(); }

   private:
    std::unique_ptr<io::RandomAccessFile> base_;
    Counted counted_;
  };
  class WriteFile final : public io::WritableFile {
   public:
    WriteFile(std::unique_ptr<io::WritableFile> base, FewOpenFiles& fs)
        : base_(std::move(base)), counted_(fs) {}
    Status append(std::span<const std::byte> bytes) override { return base_->append(bytes); }
    Status sync() override { return base_->sync(); }
    Status close() override { return base_->close(); }

   private:
    std::unique_ptr<io::WritableFile> base_;
    Counted counted_;
  };

  Status before(Operation operation, const std::string& path) override {
    if ((operation == Operation::kOpen || operation == Operation::kCreate) && open_ >= limit_)
      return io_error(path + ": Too many open files");
    return {};
  }
  std::unique_ptr<io::RandomAccessFile> reading(std::unique_ptr<io::RandomAccessFile> file) override {
    return std::make_unique<ReadFile>(std::move(file), *this);
  }
  std::unique_ptr<io::WritableFile> writing(std::unique_ptr<io::WritableFile> file,
                                            const std::string& /*path*/) override {
    return std::make_unique<WriteFile>(std::move(file), *this);
  }

  int limit_, open_ = 0, most_ = 0;
};

// Sorted by its key alone, so that the order of equal records is visible.
struct Tagged {
  uint32_t key, tag;
  auto operator<=>(const Tagged& other) const { return key <=> other.key; }
};

template <typename Record>
Result<std::vector<Record>> drained(SpillSorter<Record>& sorter) {
  std::vector<Record> out;
  RETURN_IF_ERROR(sorter.drain([&out](const Record& record) -> Status {
    out.push_back(record);
    return {};
  }));
  return out;
}

}  // namespace

TEST_CASE("check: finds what was planted and nothing else") {
  Corpus corpus;
  const CheckReport report = corpus.run();
  CHECK(report.duplicates.documents == 300);
  CHECK(report.components[0].empty == 1);
  CHECK(report.duplicates.exact_copies == 1);
  REQUIRE(report.duplicates.exact.size() == 1);
  CHECK(report.duplicates.exact[0].documents[0].number == 1);
  CHECK(report.duplicates.exact[0].documents[1].number == 11);
  CHECK(report.duplicates.near_copies == 3);
  REQUIRE(report.duplicates.near.size() == 1);
  CHECK(report.duplicates.near[0].size == 4);
  CHECK(report.duplicates.near[0].documents[0].number == 2);
  CHECK(report.duplicates.near[0].least_jaccard > 0.8);

  CHECK(report.index.documents().size() == 4);
  CHECK(report.index.too_short() == 1);
  CHECK(report.contaminated_documents == 2);
  REQUIRE(report.contaminated.size() == 2);
  CHECK(report.place_text(report.contaminated[0].place) == "in/a.jsonl:31");
  CHECK(report.contaminated[0].found.words_covered == 14);
  CHECK(report.contaminated[0].found.hits[0].windows == 2);
  CHECK(report.place_text(report.contaminated[1].place) == "in/a.jsonl:33");
  CHECK(report.contaminated[1].found.words_covered == 8);
  CHECK(report.evals[0].ngrams_found == 2);
  CHECK(report.evals[1].ngrams_found == 1);
  CHECK(report.evals[3].documents == 0);
}

TEST_CASE("check: rows that verdicts leave out are not looked at") {
  Corpus corpus;
  data::FileVerdicts file{
      .file = "in/a.jsonl", .sha256 = sha256_hex(*corpus.fs.read_file("in/a.jsonl")), .rows = 301};
  file.said.push_back({.row = 11, .drop = "exact_duplicate"});
  file.said.push_back({.row = 12, .value = 0.5});
  check_ok(data::write_row_verdicts(corpus.fs, "in/verdicts", {{file}}));
  const CheckReport all = corpus.run();
  corpus.options.rows = "in/verdicts";
  const CheckReport some = corpus.run();
  CHECK(some.components[0].left_out == 1);
  CHECK(some.components[0].rows == all.components[0].rows - 1);
  CHECK(all.duplicates.exact_copies == 1);
  CHECK(some.duplicates.exact_copies == 0);
  CHECK(some.duplicates.near_copies == all.duplicates.near_copies);
  CHECK(check_json(some).find("\"left_out\": 1") != std::string::npos);
  file.sha256 = sha256_hex("");
  check_ok(data::write_row_verdicts(corpus.fs, "in/verdicts", {{file}}));
  const auto other = run_check(corpus.fs, corpus.options, *corpus.tok, corpus.settings);
  REQUIRE_FALSE(other.ok());
  CHECK(other.error().message().find("make the verdicts from these texts") != std::string::npos);
}

TEST_CASE("check: the report does not depend on threads or on the memory for sorting") {
  Corpus corpus;
  const CheckReport first = corpus.run();
  corpus.settings.threads = 3;
  corpus.settings.memory = 1 << 20;
  const CheckReport second = corpus.run();
  CHECK(check_json(first) == check_json(second));
  CHECK(check_html(first) == check_html(second));
  corpus.settings.seed = 1;
  CHECK(check_json(corpus.run()) != check_json(first));
  const auto parsed = nlohmann::json::parse(check_json(first));
  CHECK(parsed["contamination"]["worst"][0]["share"].get<double>() == doctest::Approx(14.0 / 214));
  CHECK(check_html(first).find("<script") == std::string::npos);
  CHECK(check_html(first).find("http") == std::string::npos);
}

TEST_CASE("check: eval rows of many levels are refused, not followed until the stack ends") {
  Corpus corpus;
  const auto nested = [](size_t levels) {
    return std::string(levels, '[') + "\"eight words that are in no text whatsoever\"" +
           std::string(levels, ']');
  };
  const auto error = [&](const std::string& lines, const std::string& field) {
    write(corpus.fs, "in/eval.jsonl", line("fine") + lines);
    corpus.settings.eval_field = field;
    const auto report = run_check(corpus.fs, corpus.options, *corpus.tok, corpus.settings);
    return report.ok() ? "" : report.error().message();
  };
  CHECK(error(nested(200), "") == "");
  CHECK(error(nested(201), "") == "in/eval.jsonl:2: more than 200 levels of objects and arrays");
  CHECK(error(nested(200'000), "") == "in/eval.jsonl:2: more than 200 levels of objects and arrays");
  CHECK(error("{\"text\": " + nested(200'000) + "}", "text").find("more than 200 levels") !=
        std::string::npos);
  CHECK(error(std::string(200'000, '['), "") == "in/eval.jsonl:2: not valid JSON");
  // Rows of the corpus itself.
  for (const std::string& row : {std::string(200'000, '['), nested(200'000)}) {
    write(corpus.fs, "in/a.jsonl", row);
    CHECK(error("", "") == "in/a.jsonl:1: more than 200 levels of objects and arrays");
  }
}

TEST_CASE("check: bad rows are errors or counted") {
  Corpus corpus;
  write(corpus.fs, "in/bad.jsonl", line("fine") + "{\"body\": 1}\n");
  corpus.options.train_urls = {"in/bad.jsonl"};
  const auto report = run_check(corpus.fs, corpus.options, *corpus.tok, corpus.settings);
  REQUIRE_FALSE(report.ok());
  CHECK(report.error().message().find("in/bad.jsonl:2: has no field \"text\"") == 0);
  CHECK_FALSE(*corpus.fs.exists(corpus.settings.folder));
  corpus.options.on_bad_row = data::OnBadRow::kSkip;
  const CheckReport counted = corpus.run();
  CHECK(counted.components[0].bad == 1);
  CHECK(counted.components[0].first_bad.find("in/bad.jsonl:2") == 0);
  corpus.settings.ngram = 0;
  CHECK(run_check(corpus.fs, corpus.options, *corpus.tok, corpus.settings).error().message() ==
        "--ngram 0: use 1 or more");
}

TEST_CASE("check: rows of ids are looked at as what they decode to, a store without texts too") {
  Corpus corpus;
  const std::string planted =
      "Ahem. What is the tallest mountain on the planet that anyone has ever climbed twice?";
  std::string ids_rows, text_rows;
  for (int i = 0; i < 5; ++i) {
    const std::string text = fmt::format("document {} ", i) + (i == 3 ? planted : "says nothing of it");
    ids_rows += nlohmann::json{{"input_ids", corpus.tok->encode(text)}}.dump() + "\n";
    text_rows += line("stored " + text);
  }
  ids_rows +=
      nlohmann::json{{"input_ids", corpus.tok->encode("document 0 says nothing of it")}}.dump() + "\n";
  write(corpus.fs, "in/ids.jsonl", ids_rows);
  write(corpus.fs, "in/stored.jsonl", text_rows);
  data::DataOptions& options = corpus.options;
  options.train_urls.clear();
  options.cache_dir = "caches";
  options.enforce_eos = false;
  options.components["ids"].train_urls = {"in/ids.jsonl"};
  options.components["ids"].format = data::PrebuiltFormat{};
  options.components["stored"].cache_dir = "elsewhere/stored";
  data::DataOptions built = options;
  built.components.erase("ids");
  built.components["stored"].train_urls = {"in/stored.jsonl"};
  built.components["stored"].validation_fraction = 0;

  const CheckReport without = corpus.run();
  REQUIRE(without.left_out.size() == 1);
  CHECK(without.left_out[0].name == "stored");
  CHECK(
      without.left_out[0].reason ==
      "names no texts, and has no store to read: elsewhere/stored: no finished token store; run: ostro data "
      "build --config ...");
  CHECK(check_html(without).find("Not looked at: <code>stored</code>: names no texts") != std::string::npos);
  CHECK(nlohmann::json::parse(check_json(without))["left_out"][0]["name"] == "stored");
  CHECK(without.contaminated_documents == 1);
  CHECK(without.place_text(without.contaminated[0].place) == "in/ids.jsonl:4");
  CHECK(without.duplicates.exact_copies == 1);

  check_ok([&]() -> Status {
    ASSIGN_OR_RETURN(const data::StoreLedger ledger,
                     prepare::build_store(corpus.fs, built, data::components_of(built).front(), *corpus.tok));
    CHECK(ledger.split(data::Split::kTrain).rows + ledger.split(data::Split::kValidation).rows == 5);
    return {};
  }());
  const CheckReport report = corpus.run();
  CHECK(report.left_out.empty());
  CHECK(report.duplicates.documents == 11);
  CHECK(report.components[1].decoded);
  CHECK(report.components[1].rows == 5);
  CHECK(report.contaminated_documents == 2);
  CHECK(report.place_text(report.contaminated[1].place).find("elsewhere/stored/") == 0);
  corpus.settings.threads = 3;
  CHECK(check_json(corpus.run()) == check_json(report));
  options.components.erase("ids");
  check_ok(corpus.fs.remove_all("elsewhere"));
  CHECK(run_check(corpus.fs, options, *corpus.tok, corpus.settings)
            .error()
            .message()
            .find("nothing to check; stored: names no texts") != std::string::npos);
}

TEST_CASE("check: words are small letters without punctuation, single characters where nothing parts words") {
  CHECK(normalized_words("Hello, WÖRLD's 3rd x_y!") ==
        std::vector<std::string>{"hello", "wörld", "s", "3rd", "x_y"});
  CHECK(normalized_words("日本go") == std::vector<std::string>{"日", "本", "go"});
  CHECK(word_hashes("A b") == word_hashes("a, B"));
  const auto words = word_hashes("a b c a b c d");
  const StretchHashes s(words);
  CHECK(s.of(0, 3) == s.of(3, 3));
  CHECK(s.of(0, 3) != s.of(1, 3));
  CHECK(s.of(0, 2) != s.of(0, 3));
}

TEST_CASE("check: estimated Jaccard indices are near the true ones") {
  const MinHasher hasher(1, 7);
  for (const int shared : {0, 50, 150, 200}) {
    std::vector<uint64_t> a, b;
    for (int i = 0; i < 200; ++i) {
      a.push_back(mix64(static_cast<uint64_t>(i)));
      b.push_back(mix64(static_cast<uint64_t>(i < shared ? i : i + 1000)));
    }
    Signature x, y;
    REQUIRE(hasher.sign(a, x));
    REQUIRE(hasher.sign(b, y));
    const double truth = shared / (400.0 - shared);
    CHECK(std::abs(estimated_jaccard(x, y) - truth) < 0.13);  // three standard deviations
  }
  Signature none;
  CHECK_FALSE(hasher.sign({}, none));
}

TEST_CASE("check: documents that were not compared with all others of a band are counted") {
  // 40 documents share the first band and nothing else, so no two are alike. Of two more, one differs from
  // the other only in its last number, and is found.
  std::mt19937 rng(5);
  const Bands bands = Bands::for_threshold(0.8);
  for (const int sharing : {32, 33, 40}) {
    io::MemoryFileSystem fs;
    check_ok(fs.make_dirs("f"));
    DuplicateFinder finder(fs, "f", 0.8, 1 << 20);
    Signature signature;
    for (int i = 0; i < sharing + 2; ++i) {
      if (i <= sharing)
        for (size_t k = 0; k < signature.size(); ++k)
          signature[k] = k < bands.rows && i < sharing ? 7 : static_cast<uint32_t>(rng());
      else
        signature.back() ^= 1;
      check_ok(finder.add({0, i}, 10, sha256(fmt::format("{}", i)), &signature));
    }
    const auto report = finder.finish(10);
    REQUIRE(report.ok());
    CHECK(report->near_copies == 1);
    CHECK(report->crowded_bands == (sharing > 32 ? 1 : 0));
    CHECK(report->not_compared == sharing - 32);
  }
}

TEST_CASE("check: records are sorted through files as in memory") {
  std::mt19937_64 rng(3);
  std::vector<uint64_t> all(50000);
  for (uint64_t& v : all) v = rng() % 20000;
  io::MemoryFileSystem fs;
  SpillSorter<uint64_t> small(fs, "run", 1);  // 1024 records a run
  for (const uint64_t v : all) check_ok(small.add(v));
  std::vector<uint64_t> got;
  check_ok(small.drain([&got](const uint64_t& v) -> Status {
    got.push_back(v);
    return {};
  }));
  std::sort(all.begin(), all.end());
  CHECK(got == all);
}

TEST_CASE("check: more sorted runs than may be open at once are merged in passes") {
  io::MemoryFileSystem fs;
  check_ok(fs.make_dirs("f"));
  std::mt19937_64 rng(4);
  {
    FewOpenFiles few(fs, 257);
    std::vector<uint64_t> all(300 * 1024);
    SpillSorter<uint64_t> sorter(few, "f/run", 1);  // 1024 records a run
    for (uint64_t& v : all) {
      v = rng() % 100'000;
      check_ok(sorter.add(v));
    }
    const auto got = drained(sorter);
    REQUIRE_MESSAGE(got.ok(), (got.ok() ? "" : got.error().message()));
    std::sort(all.begin(), all.end());
    CHECK(*got == all);
    CHECK(few.most() <= 257);
    CHECK(fs.list("f")->empty());
  }
  // Merging 40 runs, at most four at once, takes three passes. Equal records have the same order as after one
  // merge of all runs.
  FewOpenFiles few(fs, 5);
  SpillSorter<Tagged> in_passes(few, "f/four", 1, 4), at_once(fs, "f/all", 1);
  for (uint32_t tag = 0; tag < 40 * 1024 - 5; ++tag) {
    const Tagged record{static_cast<uint32_t>(rng() % 50), tag};
    check_ok(in_passes.add(record));
    check_ok(at_once.add(record));
  }
  const auto expected = drained(at_once), got = drained(in_passes);
  REQUIRE_MESSAGE(got.ok(), (got.ok() ? "" : got.error().message()));
  REQUIRE(expected.ok());
  CHECK(few.most() == 5);
  REQUIRE(got->size() == 40 * 1024 - 5);
  const bool same =
      std::equal(got->begin(), got->end(), expected->begin(), expected->end(),
                 [](const Tagged& a, const Tagged& b) { return a.key == b.key && a.tag == b.tag; });
  CHECK(same);
  CHECK(fs.list("f")->empty());
}

TEST_CASE("check: n-grams that repeat are counted, in an evaluation document and in a text") {
  EvalIndex index(3, 2);
  index.add("a", "a b c d A, b C");  // a b c is its first n-gram and its last
  index.add("b", "q a b c");
  index.add("c", "x x x x x");
  index.add("d", "x x");
  index.finish();
  CHECK(index.documents()[0].ngrams == 5);
  CHECK(index.documents()[2].ngrams == 3);

  Contamination found = found_in(index, "z a b c z z a b c z");
  REQUIRE(found.hits.size() == 2);
  CHECK(found.words_covered == 6);
  CHECK(found.hits[0].eval == 0);
  CHECK(found.hits[0].windows == 2);
  CHECK(found.hits[0].ngrams == std::vector<size_t>{0, 4});
  CHECK(found.hits[1].eval == 1);
  CHECK(found.hits[1].windows == 2);
  CHECK(found.hits[1].ngrams == std::vector<size_t>{1});

  found = found_in(index, "x x x x z x x");
  REQUIRE(found.hits.size() == 2);
  CHECK(found.words_covered == 6);
  CHECK(found.hits[0].eval == 2);
  CHECK(found.hits[0].windows == 2);
  CHECK(found.hits[0].ngrams == std::vector<size_t>{0, 1, 2});
  CHECK(found.hits[1].eval == 3);
  CHECK(found.hits[1].windows == 4);
  CHECK(found.hits[1].ngrams == std::vector<size_t>{0});
}

TEST_CASE("check: a word over and over in evaluation documents and in a text") {
  EvalIndex index(13, 8);
  for (int i = 0; i < 10; ++i) index.add(fmt::format("{}", i), repeated("na", 200));
  index.add("long", repeated("na", 1000));
  index.finish();
  // There are 3 * 10^7 pairs of a position and an n-gram. Not all of them may be looked at.
  const Contamination found = found_in(index, repeated("na", 10'000));
  CHECK(found.words_covered == 10'000);
  REQUIRE(found.hits.size() == 11);
  CHECK(found.hits[7].windows == 10'000 - 12);
  CHECK(found.hits[7].ngrams.size() == 200 - 12);
  CHECK(found.hits[10].windows == 10'000 - 12);
  CHECK(found.hits[10].ngrams.size() == 1000 - 12);
}

TEST_CASE("check: figures of quality") {
  const auto stats = document_stats("ab 12 #\nab 12 #\n\n\xC3\xA9...");
  REQUIRE(stats.ok());
  const DocumentStats& s = stats.value();
  CHECK(s.characters == 21);
  CHECK(s.words == 7);
  CHECK(s.letters == 5.0 / 21);
  CHECK(s.digits == 4.0 / 21);
  CHECK(s.symbols == 5.0 / 21);
  CHECK(s.non_ascii == 1.0 / 21);
  CHECK(s.symbol_ratio == 3.0 / 7);
  CHECK(s.repeated_lines == 7.0 / 19);
  Histogram h = Histogram::sizes();
  for (int i = 0; i <= 1000; ++i) h.add(i);
  CHECK(h.mean() == 500);
  CHECK(h.quantile(0.5) == 512);
  CHECK(h.quantile(1) == 1000);
  for (size_t bin = 0; bin + 1 < h.bins().size(); ++bin)
    CHECK(h.bins()[bin] == static_cast<int64_t>(h.lower_edge(bin + 1) - h.lower_edge(bin)));
}

}  // namespace ostro::corpus_check
