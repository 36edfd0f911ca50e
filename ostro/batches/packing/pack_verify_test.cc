// Compares pack indices with the rows of their store: any changed byte is found.
#include "ostro/batches/packing/pack_verify.h"

#include <doctest/doctest.h>

#include <cstring>

#include "ostro/batches/packing/pack_index.h"
#include "ostro/batches/packing/pack_index_file.h"
#include "ostro/io/read/crc32c.h"
#include "ostro/prepare/store/test_corpus.h"

namespace ostro::batches {
namespace {

struct PackedStore {
  io::MemoryFileSystem fs;
  data::DataOptions options = prepare::corpus_options("corpus");
  std::shared_ptr<const data::TokenStore> store;

  explicit PackedStore(int64_t more_rows = 0) {
    prepare::write_corpus(fs, "corpus");
    std::string lines;
    for (int64_t i = 0; i < more_rows; ++i) lines += "{\"text\": \"the cat\"}\n";
    if (more_rows > 0) prepare::write(fs, "corpus/more.jsonl", lines);
    REQUIRE(prepare::build_store(fs, options, prepare::test_tokenizer(), prepare::small_settings()).ok());
    store = *data::TokenStore::open(fs, options.cache_dir);
  }

  std::string path(const PackRule& rule, data::Split split = data::Split::kTrain) const {
    return io::join_path(pack_folder(options.cache_dir, split), pack_index_name(rule));
  }
  // Makes the index of a split; gives its bytes.
  std::string make(const PackRule& rule, data::Split split = data::Split::kTrain) {
    REQUIRE(open(rule, split).ok());
    return *fs.read_file(path(rule, split));
  }
  Result<std::shared_ptr<const PackIndex>> open(const PackRule& rule,
                                                data::Split split = data::Split::kTrain) {
    return PackIndex::open(fs, pack_folder(options.cache_dir, split), store->split(split), store->hash(),
                           rule);
  }
  std::vector<PackIndexReport> verify() {
    auto reports = verify_packs(fs, options.cache_dir, {});
    REQUIRE_MESSAGE(reports.ok(), reports.error().message());
    return std::move(*reports);
  }
  // The message about the only index when it has these bytes; empty when it is good.
  std::string verify(const PackRule& rule, const std::string& bytes) {
    prepare::write(fs, path(rule), bytes);
    const auto reports = verify();
    REQUIRE(reports.size() == 1);
    if (reports[0].state == PackIndexState::kGood && reports[0].status.ok()) return "";
    REQUIRE(reports[0].state == PackIndexState::kDamaged);
    const Error& error = reports[0].status.error();
    CHECK(error.code() == ErrorCode::kCorrupt);
    CHECK_MESSAGE(error.message().starts_with(path(rule) + ": "), error.message());
    CHECK_MESSAGE(error.message().ends_with("; delete the file: it is made again when it is needed"),
                  error.message());
    return error.message();
  }
};

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_CASE("pack verify: indices of every length, rule and split are compared, other files are passed over") {
  PackedStore s;
  CHECK(s.verify().empty());
  std::vector<std::string> paths;
  for (const data::Split split : data::kSplits)
    for (const PackRule& rule : {PackRule{16, Keep::kLeft, true}, PackRule{32, Keep::kRight, true},
                                 PackRule{8, Keep::kLeft, false}, PackRule{8, Keep::kRight, false}}) {
      s.make(rule, split);
      paths.push_back(s.path(rule, split));
      CHECK(rule_of_pack_index(pack_index_name(rule)) == rule);
    }
  const std::string folder = pack_folder(s.options.cache_dir, data::Split::kTrain);
  for (const char* name :
       {"packed-016.idx", "packed-16.idx.tmp", "packed-.idx", "packed-0.idx", "packed--3.idx", "single-8",
        "other-8.idx", "packed-16-left.idx", "packed-99999999999999999999.idx"}) {
    prepare::write(s.fs, io::join_path(folder, name), "no index");
    CHECK_MESSAGE(!rule_of_pack_index(name), name);
  }
  const auto before = *s.fs.glob("**");
  int64_t calls = 0, done = 0, total = 0;
  const auto reports =
      verify_packs(s.fs, s.options.cache_dir, {.progress = [&](const data::BuildProgress& p) {
                     ++calls;
                     CHECK(p.bytes_done >= done);
                     done = p.bytes_done;
                     total = p.bytes_total;
                   }});
  REQUIRE(reports.ok());
  std::vector<std::string> seen;
  int64_t bytes = 0;
  for (const PackIndexReport& report : *reports) {
    CHECK_MESSAGE(report.state == PackIndexState::kGood, report.path);
    CHECK(report.sequences > 0);
    bytes += report.bytes;
    seen.push_back(report.path);
  }
  std::sort(seen.begin(), seen.end());
  std::sort(paths.begin(), paths.end());
  CHECK(seen == paths);
  CHECK(calls > 8);
  CHECK(done == bytes);
  CHECK(total == bytes);
  CHECK(*s.fs.glob("**") == before);
}

TEST_CASE("pack verify: any changed byte, any other length is damage, and what was there before is none") {
  PackedStore s;
  const PackRule rule{32, Keep::kLeft, true};
  const std::string good = s.make(rule);
  const size_t header = good.find('{');
  // A few, and each one of the page's checksum.
  for (size_t at = 0; at < good.size(); at += at + 7 >= header && at < header ? 1 : 7) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 4);
    const std::string says = s.verify(rule, bad);
    CHECK_MESSAGE(
        holds(says, at < header ? fmt::format(": byte {} is ", at) : "its header, at the end of its"), says);
  }
  for (size_t size = 0; size < good.size(); size += 11) CHECK(!s.verify(rule, good.substr(0, size)).empty());
  CHECK(!s.verify(rule, good + '\0').empty());
  CHECK(!s.verify(rule, good.substr(0, 8) + good).empty());
  CHECK(!s.verify(rule, good.substr(8)).empty());
  CHECK(holds(s.verify(rule, good + good),
              fmt::format("has {} bytes, and", 2 * good.size())));  // a reader takes it
  CHECK(s.verify(rule, good).empty());
}

TEST_CASE("pack verify: an index that was written wrong is found, though its checksums fit") {
  PackedStore s(36000);  // more than what is read ahead
  const PackRule rule{8, Keep::kLeft, false};
  const std::string good = s.make(rule);
  const int64_t page = 8, entry = page * kPackPageEntries + 7;  // in the last page
  const auto sequences = s.verify()[0].sequences;
  REQUIRE(sequences > entry + 1);
  const auto begin = static_cast<size_t>(page * pack_page_bytes(kPackPageEntries));
  const auto entries = static_cast<size_t>(sequences + 1 - page * kPackPageEntries);
  int64_t row = 0;
  std::string bad = good;
  std::memcpy(&row, bad.data() + begin + 7 * 8, 8);
  const int64_t other = row + 1;
  std::memcpy(bad.data() + begin + 7 * 8, &other, 8);
  const uint32_t crc = io::crc32c(std::as_bytes(std::span(bad).subspan(begin, entries * 8)));
  std::memcpy(bad.data() + begin + entries * 8, &crc, 4);
  const std::string says = s.verify(rule, bad);
  CHECK_MESSAGE(holds(says, fmt::format(": sequence {} begins with row {} there, and should with row {};",
                                        entry, other, row)),
                says);
  // A reader accepts it, since its checksums are right.
  const auto index = s.open(rule);
  REQUIRE(index.ok());
  CHECK((*(*index)->rows(entry)).first == other);
  CHECK(s.verify(rule, good).empty());
}

TEST_CASE("pack verify: an index of the store as it was is stale, and no damage") {
  PackedStore s;
  const PackRule old{32, Keep::kLeft, true}, now{16, Keep::kLeft, true};
  REQUIRE(PackIndex::open(s.fs, pack_folder(s.options.cache_dir, data::Split::kTrain),
                          s.store->split(data::Split::kTrain), std::string(64, 'f'), old)
              .ok());
  s.make(now);
  const auto reports = s.verify();
  REQUIRE(reports.size() == 2);
  for (const PackIndexReport& report : reports) {
    CHECK(report.state == (report.path == s.path(old) ? PackIndexState::kStale : PackIndexState::kGood));
    CHECK(report.status.ok());
  }
  s.make(old);  // made anew
  for (const PackIndexReport& report : s.verify()) CHECK(report.state == PackIndexState::kGood);
}

TEST_CASE("pack verify: without the ends of its rows an index is neither good nor damaged") {
  PackedStore s;
  const PackRule rule{32, Keep::kLeft, true};
  s.make(rule);
  s.make(rule, data::Split::kValidation);
  const std::string offsets = s.options.cache_dir + "/train/input_ids/offsets/c/0";
  std::string bytes = *s.fs.read_file(offsets);
  bytes[bytes.size() / 2] ^= 4;
  prepare::write(s.fs, offsets, bytes);
  for (const PackIndexReport& report : s.verify()) {
    const bool damaged = report.path == s.path(rule);
    CHECK(report.state == (damaged ? PackIndexState::kUnread : PackIndexState::kGood));
    if (damaged)
      CHECK_MESSAGE(holds(report.status.error().message(), "offsets"), report.status.error().message());
  }
  check_ok(s.fs.remove(s.options.cache_dir + "/ledger.json"));
  for (const PackIndexReport& report : s.verify()) CHECK(report.state == PackIndexState::kUnread);
}

}  // namespace
}  // namespace ostro::batches
