// Stores joined without copying have the same content and hash, wherever the rows are.
#include "ostro/prepare/store/join_in_place.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>

#include "ostro/data/arrays/recorded_sums.h"
#include "ostro/data/ledger/store_parts.h"
#include "ostro/io/files/local_file_system.h"
#include "ostro/prepare/store/consolidate.h"
#include "ostro/prepare/store/test_corpus.h"

using namespace ostro;
using namespace ostro::data;
using namespace ostro::prepare;

namespace {

DataOptions part_options(const std::string& cache_dir, const std::vector<std::string>& train,
                         const std::vector<std::string>& held_out, const RowFormat& format) {
  DataOptions options;
  options.cache_dir = "cache";
  ComponentOptions& component = options.components["c"];
  component.cache_dir = cache_dir;
  component.train_urls = train;
  component.validation_urls = held_out;
  component.validation_fraction = held_out.empty() ? 0.3 : 0;
  component.format = format;
  return options;
}

Component only(const DataOptions& options) { return components_of(options).front(); }

StoreLedger build_part(io::FileSystem& fs, const DataOptions& options) {
  auto ledger = build_store(fs, options, only(options), test_tokenizer(), small_settings());
  if (!ledger.ok()) FAIL(ledger.error().message());
  return *ledger;
}

Result<StoreLedger> join(io::FileSystem& fs, const DataOptions& options, const std::vector<std::string>& from,
                         JoinRows rows = JoinRows::kInPlace) {
  return consolidate_stores(fs, options, only(options), test_tokenizer(), from, rows, small_settings());
}

std::string refusal(const Result<StoreLedger>& result) {
  REQUIRE_FALSE(result.ok());
  return result.error().message();
}

// Files of rows that fit every format below: text, pairs, and ids with weights.
void write_rows(io::FileSystem& fs, int files) {
  check_ok(fs.make_dirs("in"));
  for (int file = 0; file < files; ++file) {
    std::string lines;
    for (int i = 0; i < 17 + 30 * (file % 3); ++i) {
      std::string ids, weights;
      for (int t = 0; t < 2 + (5 * i + file) % 30; ++t) {
        ids += fmt::format("{}{}", t == 0 ? "" : ", ", (i * t + file) % test_tokenizer().vocab_size());
        weights += fmt::format("{}{}", t == 0 ? "" : ", ", 0.25 * (1 + t % 4));
      }
      lines += fmt::format(
          "{{\"text\": \"{}\", \"prompt\": \"{}\", \"response\": \"{}\", \"ids\": [{}], \"w\": [{}]}}\n",
          words(1000 * file + i, 2 + (7 * i + file) % 30), words(i, 3), words(file + i, 1 + i % 9), ids,
          weights);
    }
    write(fs, fmt::format("in/{}.jsonl", file), lines);
  }
}

// Everything that a reader can ask about the rows of a split.
std::string all_of(const TokenStore& store, Split split) {
  const TokenStream& stream = store.split(split);
  std::string out;
  for (int64_t row = 0; row < stream.rows(); ++row) {
    const auto ends = *stream.row_ends(row, 1);
    const RowSource source = *stream.source(row);
    std::vector<int32_t> ids(static_cast<size_t>(ends[1] - ends[0]));
    std::vector<float> weights(ids.size());
    check_ok(stream.read(ends[0], ids));
    check_ok(stream.read_weights(ends[0], weights));
    out += fmt::format("{} {} {} {} {} {} {} {}\n", ends[1], source.file, source.document, source.bytes,
                       source.begin, source.end, to_hex(*stream.row_hash(row)),
                       to_hex(sha256(std::as_bytes(std::span(weights)))));
    for (const int32_t id : ids) out += fmt::format("{} ", id);
    const std::vector<RowSpan> spans = *stream.rows_of(ends[0], 1);
    CHECK(spans.size() == 1);
    CHECK(spans[0].row == row);
  }
  return out;
}

}  // namespace

TEST_CASE("join in place: rows, hash and checks are those of one store, and nothing is copied") {
  const std::pair<const char*, RowFormat> kFormats[] = {
      {"text", TextFormat{}},
      {"pairs", SupervisedFormat{.input_field = "prompt", .output_field = "response"}},
      {"ids", PrebuiltFormat{.input_ids_key = "ids", .loss_weights_key = "w"}}};
  for (const auto& [name, format] : kFormats)
    for (const bool held_out : {false, true}) {
      CAPTURE(name);
      CAPTURE(held_out);
      io::MemoryFileSystem fs;
      write_rows(fs, 5);
      const std::vector<std::string> held =
          held_out ? std::vector<std::string>{"in/3.jsonl", "in/4.jsonl"} : std::vector<std::string>{};
      const auto some = [&](const std::string& folder, std::vector<std::string> train,
                            std::vector<std::string> validation) {
        return part_options(folder, train, validation, format);
      };
      const DataOptions whole = some("whole", {"in/0.jsonl", "in/1.jsonl", "in/2.jsonl"}, held);
      const std::string hash = build_part(fs, whole).hash();
      build_part(fs, some("a", {"in/0.jsonl"}, held_out ? std::vector{held[0]} : held));
      build_part(fs, some("b/b", {"in/1.jsonl"}, held_out ? std::vector{held[1]} : held));
      // The earlier parts have files of both lists; the last one has only training files.
      if (held_out) {
        DataOptions last = some("c", {"in/2.jsonl"}, {});
        last.components["c"].validation_fraction = 0;
        build_part(fs, last);
      } else {
        build_part(fs, some("c", {"in/2.jsonl"}, {}));
      }
      const std::vector<std::string> parts = {"a", "b/b", "c"};
      DataOptions copied = whole, joined = whole;
      copied.components["c"].cache_dir = "copied";
      joined.components["c"].cache_dir = "d/joined";
      CHECK(join(fs, copied, parts, JoinRows::kCopy)->hash() == hash);
      const auto ledger = join(fs, joined, parts);
      REQUIRE_MESSAGE(ledger.ok(), (ledger.ok() ? "" : ledger.error().message()));
      CHECK(ledger->hash() == hash);
      CHECK(*fs.glob("d/joined/**") ==
            std::vector<std::string>{"d/joined/chunks.sha256", "d/joined/chunks.table",
                                     "d/joined/ledger.json", "d/joined/rows.tree"});
      CHECK(*fs.read_file(row_tree_path("d/joined")) == *fs.read_file(row_tree_path("whole")));
      // The digests and sums are the same as those of one store, too.
      CHECK(*fs.read_file(digests_path("d/joined")) == *fs.read_file(digests_path("whole")));
      CHECK(*fs.read_file(chunk_tables_path("d/joined")) == *fs.read_file(chunk_tables_path("whole")));
      check_ok(verify_store(fs, "d/joined"));
      CHECK(build_part(fs, joined).hash() == hash);  // what the configuration asks for
      const auto one = *TokenStore::open(fs, "whole"), many = *TokenStore::open(fs, "d/joined");
      for (const Split split : kSplits) {
        CHECK(one->split(split).rows() > 20);
        CHECK(all_of(*many, split) == all_of(*one, split));
      }
    }
}

TEST_CASE("join in place: what comes first is not read, and parts of parts are parts") {
  io::MemoryFileSystem memory;
  write_rows(memory, 4);
  const auto part = [&](const std::string& folder, const std::vector<std::string>& files) {
    return part_options(folder, files, {}, TextFormat{});
  };
  const DataOptions all = part("whole", {"in"}), both = part("both", {"in/0.jsonl", "in/1.jsonl"}),
                    joined = part("joined", {"in"});
  const std::string hash = build_part(memory, all).hash();
  for (int i = 0; i < 4; ++i)
    build_part(memory, part(fmt::format("p{}", i), {fmt::format("in/{}.jsonl", i)}));
  REQUIRE(join(memory, both, {"p0", "p1"}).ok());
  // When the sums of the first part are known, its rows are not read.
  const std::string data = "p0/train/input_ids/data/c/0";
  check_ok(memory.rename(data, "away"));
  const auto ledger = join(memory, joined, {"both", "p2", "p3"});
  REQUIRE_MESSAGE(ledger.ok(), (ledger.ok() ? "" : ledger.error().message()));
  CHECK(ledger->hash() == hash);
  REQUIRE(ledger->parts.size() == 4);
  CHECK(ledger->parts[1].folder == "../p1");
  check_ok(memory.remove_all("joined"));
  check_ok(memory.remove(digests_path("both")));  // as in stores made before they were kept
  CHECK(refusal(join(memory, joined, {"both", "p2", "p3"})).find("p0/train/input_ids/data") !=
        std::string::npos);
  check_ok(memory.rename("away", data));
  CHECK(join(memory, joined, {"both", "p2", "p3"})->hash() == hash);
  check_ok(verify_store(memory, "joined"));
  // The rows are in four stores. The store that joined two of them is not needed.
  check_ok(memory.remove_all("both"));
  check_ok(verify_store(memory, "joined"));
  // All of it can be moved together.
  check_ok(memory.make_dirs("away"));
  for (const char* folder : {"p0", "p1", "p2", "p3", "joined"})
    check_ok(memory.rename(folder, std::string("away/") + folder));
  check_ok(verify_store(memory, "away/joined"));
}

TEST_CASE("join in place: parts that are gone, others, damaged or of another kind are named") {
  io::MemoryFileSystem fs;
  write_rows(fs, 3);
  const auto part = [&](const std::string& folder, const std::vector<std::string>& files) {
    return part_options(folder, files, {}, TextFormat{});
  };
  const DataOptions a = part("a", {"in/0.jsonl"}), b = part("b", {"in/1.jsonl"}),
                    both = part("joined", {"in/0.jsonl", "in/1.jsonl"});
  build_part(fs, a);
  build_part(fs, b);
  CHECK(refusal(join(fs, both, {"a"})).find("the parts lack 1 files") != std::string::npos);
  CHECK(refusal(join(fs, both, {"b", "a"})).find("another order") != std::string::npos);
  CHECK(refusal(join(fs, both, {"a", "joined"})).find("one of them") != std::string::npos);
  DataOptions narrow = part("narrow", {"in/1.jsonl"});
  narrow.id_type = IdType::kSmallest;
  build_part(fs, narrow);
  CHECK(refusal(join(fs, both, {"a", "narrow"})).find("input_ids/data are uint16 there and int64 in a") !=
        std::string::npos);
  const std::string hash = join(fs, both, {"a", "b"})->hash();

  const auto opened = [&] {
    const auto store = TokenStore::open(fs, "joined");
    return store.ok() ? "" : store.error().message();
  };
  CHECK(opened().empty());
  // Moved: joined anew from where it is.
  check_ok(fs.rename("b", "c"));
  CHECK(opened().starts_with("b: is a part of the token store in joined and cannot be read (b/ledger.json"));
  CHECK(verify_store(fs, "joined").error().message() == opened());
  CHECK(join(fs, both, {"a", "c"})->hash() == hash);
  CHECK(opened().empty());
  // A damaged chunk of a part, in a chunk of the whole that has rows of both.
  const int64_t chunks = read_ledger(fs, "a")->split(Split::kTrain).array(ArrayId::kData).chunks();
  const std::string data = "c/train/input_ids/data/c/0", good = *fs.read_file(data);
  std::string bad = good;
  bad[40] = static_cast<char>(bad[40] ^ 1);
  write(fs, data, bad);
  const std::string found = verify_store(fs, "joined").error().message();
  CHECK_MESSAGE(found.find("c/train/input_ids/data") != std::string::npos, found);
  write(fs, data, good);
  check_ok(fs.rename("c/train/input_ids/data/c/0", "c/gone"));
  const auto store = *TokenStore::open(fs, "joined");
  std::vector<int32_t> ids(64);
  const Status read = store->split(Split::kTrain).read((chunks - 1) * 64, ids);
  REQUIRE_FALSE(read.ok());
  CHECK_MESSAGE(read.error().message().find("c/train/input_ids/data") != std::string::npos,
                read.error().message());
  check_ok(fs.rename("c/gone", "c/train/input_ids/data/c/0"));
  check_ok(verify_store(fs, "joined"));
  // A part is replaced by another store with the same number of rows.
  check_ok(fs.remove_all("c"));
  std::string lines = *fs.read_file("in/1.jsonl");
  lines[lines.find("the")] = 'T';
  write(fs, "in/9.jsonl", lines);
  build_part(fs, part("c", {"in/9.jsonl"}));
  CHECK_MESSAGE(opened().find("c: has ledger hash ") == 0, opened());
  CHECK(opened().find("when it became a part of the token store in joined") != std::string::npos);
  // Rows cannot be added to it.
  build_part(fs, b);
  REQUIRE(join(fs, both, {"a", "b"}).ok());
  BuildSettings append = small_settings();
  append.append = true;
  const DataOptions more = part("joined", {"in/0.jsonl", "in/1.jsonl", "in/2.jsonl"});
  CHECK(refusal(build_store(fs, more, only(more), test_tokenizer(), append))
            .find("its rows are in the stores that it was joined of") != std::string::npos);
}

TEST_CASE("join in place: where a part is follows from both paths, wherever they climb to") {
  const auto absolute = [](const std::string& path) {
    return std::filesystem::absolute(path).lexically_normal().generic_string();
  };
  for (const std::string whole :
       {"whole", "./b/../whole/", "../caches/whole", "../../whole", "/caches/whole"})
    for (const std::string part : {"a", "parts//a/", "../a", "../caches/a", "../../../a"}) {
      CAPTURE(whole);
      CAPTURE(part);
      const std::string folder = folder_of_part(part, whole);
      CHECK_FALSE(folder.starts_with('/'));
      CHECK(absolute(part_folder(whole, {}, {.folder = folder, .hash = {}})) ==
            absolute(io::clean_path(part)));
    }
  CHECK(folder_of_part("/parts/a/", "../whole") == "/parts/a");
  CHECK(folder_of_part("s3://b/a", "../whole") == "s3://b/a");
  CHECK(folder_of_part("a", "s3://b/whole") == absolute("a"));
}

TEST_CASE("join in place: a path that symbolic links make another one gives no store without rows") {
  const std::filesystem::path root =
      std::filesystem::temp_directory_path() / fmt::format("ostro_join_{}", getpid());
  std::filesystem::remove_all(root);
  std::filesystem::create_directories(root / "real/deep");
  std::filesystem::create_directory_symlink(root / "real/deep", root / "link");
  io::FileSystem& fs = io::local_file_system();
  write(fs, root / "0.txt", words(0, 40));
  write(fs, root / "1.txt", words(1, 40));
  const auto part = [&](const std::string& folder, const std::vector<std::string>& files) {
    DataOptions options = part_options(root / folder, {}, {}, TextFormat{});
    for (const std::string& file : files) options.components["c"].train_urls.push_back(root / file);
    return options;
  };
  build_part(fs, part("real/a", {"0.txt"}));
  build_part(fs, part("real/b", {"1.txt"}));
  const DataOptions both = part("whole", {"0.txt", "1.txt"});
  const std::string behind_link = root / "link/../b";  // the system's real/b, by its name b
  const auto refused = [&] {
    return refusal(join(fs, both, {root / "real/a", behind_link})).find(root / "b: is a part of") == 0;
  };
  CHECK(refused());
  CHECK_FALSE(*fs.exists(ledger_path(root / "whole")));
  auto ledger = join(fs, both, {root / "real/a", root / "real/b"});
  REQUIRE_MESSAGE(ledger.ok(), (ledger.ok() ? "" : ledger.error().message()));
  ledger->parts[1].folder = behind_link;
  check_ok(write_ledger(fs, root / "whole", *ledger));
  CHECK(refused());
  std::filesystem::remove_all(root);
}

TEST_CASE("join in place: a copy does not take it for one") {
  io::MemoryFileSystem fs;
  write_rows(fs, 2);
  build_part(fs, part_options("a", {"in/0.jsonl"}, {}, TextFormat{}));
  build_part(fs, part_options("b", {"in/1.jsonl"}, {}, TextFormat{}));
  const DataOptions both = part_options("whole", {"in/0.jsonl", "in/1.jsonl"}, {}, TextFormat{});
  const std::string hash = join(fs, both, {"a", "b"})->hash();
  CHECK(refusal(join(fs, both, {"a", "b"}, JoinRows::kCopy))
            .starts_with(
                "whole: holds a finished store whose rows are in others (the first: a); name another"));
  check_ok(fs.remove_all("whole"));
  CHECK(join(fs, both, {"a", "b"}, JoinRows::kCopy)->hash() == hash);
  CHECK(join(fs, both, {"a", "b"}, JoinRows::kInPlace)->parts.empty());  // has its rows
  check_ok(fs.remove_all("a"));
  check_ok(fs.remove_all("b"));
  check_ok(verify_store(fs, "whole"));
}
