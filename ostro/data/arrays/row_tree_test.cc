#include "ostro/data/arrays/row_tree.h"

#include <doctest/doctest.h>

#include "ostro/base/merkle.h"
#include "ostro/data/arrays/row_proof.h"
#include "ostro/prepare/store/consolidate.h"
#include "ostro/prepare/store/test_corpus.h"

namespace ostro::data {
namespace {

// `rows` short rows of a .jsonl, from number `first` on.
void write_short_rows(io::FileSystem& fs, const std::string& path, int64_t first, int64_t rows) {
  std::string lines;
  for (int64_t i = first; i < first + rows; ++i)
    lines += fmt::format("{{\"text\": \"{}\"}}\n", prepare::words(i, 1 + i % 3));
  prepare::write(fs, path, lines);
}

// Rows of several blocks in files 0, 1 and 2.
constexpr int64_t kTreeRows = 2 * RowTree::kBlockRows + 300;
DataOptions lines_options(io::FileSystem& fs, const std::string& cache_dir, const std::vector<int>& files) {
  check_ok(fs.make_dirs("in"));
  DataOptions options;
  options.tokenizer = "tokenizer.json";
  options.cache_dir = cache_dir;
  options.validation_fraction = 0.02;
  for (const int file : files) {
    options.train_urls.push_back(fmt::format("in/{}.jsonl", file));
    write_short_rows(fs, options.train_urls.back(), file * kTreeRows, kTreeRows);
  }
  return options;
}

struct StoredRow {
  std::vector<uint32_t> ids;
  std::vector<float> weights;
};

std::vector<StoredRow> stored_rows(const TokenStream& stream) {
  std::vector<StoredRow> rows;
  const std::vector<int64_t> ends = *stream.row_ends(0, stream.rows());
  for (size_t i = 0; i + 1 < ends.size(); ++i) {
    const auto count = static_cast<size_t>(ends[i + 1] - ends[i]);
    std::vector<int32_t> ids(count);
    StoredRow& row = rows.emplace_back();
    row.weights.resize(count);
    check_ok(stream.read(ends[i], ids));
    check_ok(stream.read_weights(ends[i], row.weights));
    row.ids.assign(ids.begin(), ids.end());
  }
  return rows;
}

// The root from all leaves, without blocks.
std::string whole_root(const TokenStore& store) {
  std::array<int64_t, 2> rows{};
  std::array<Sha256Digest, 2> splits{};
  for (const Split split : kSplits) {
    std::vector<Sha256Digest> leaves;
    for (const StoredRow& row : stored_rows(store.split(split)))
      leaves.push_back(row_leaf(hash_row(row.ids, row.weights), static_cast<int64_t>(row.ids.size())));
    rows[static_cast<size_t>(split)] = store.split(split).rows();
    splits[static_cast<size_t>(split)] = merkle_root(leaves);
  }
  return to_hex(store_root(rows, splits));
}

TEST_CASE("row tree: roots equal those computed in Python") {
  const std::vector<uint32_t> first = {1, 2, 3}, second = {4, 5};
  const std::vector<float> weights = {0.0f, 1.0f};
  RowTree tree{.rows = {2, 0}, .blocks = {}};
  const std::vector<Sha256Digest> leaves = {row_leaf(hash_row(first, {}), 3),
                                            row_leaf(hash_row(second, weights), 2)};
  tree.blocks[0] = {merkle_root(leaves)};
  CHECK(store_root(tree) == "6d7f794a05d84a8d8847d03c3efdce7e3f4c905fd07bafeb4fd7c2448c465668");
}

TEST_CASE("row tree: the root of a store is that of all its rows, however the store was made") {
  io::MemoryFileSystem fs;
  const DataOptions options = lines_options(fs, "all", {0, 1});
  const auto built = prepare::build_store(fs, options, prepare::test_tokenizer(), prepare::small_settings());
  REQUIRE_MESSAGE(built.ok(), (built.ok() ? "" : built.error().message()));
  const auto store = prepare::open_store(fs, options);
  REQUIRE(store.ok());
  REQUIRE((*store)->split(Split::kTrain).rows() > 3 * RowTree::kBlockRows);
  REQUIRE((*store)->split(Split::kValidation).rows() > 0);
  CHECK((*store)->ledger().root == whole_root(**store));
  check_ok(prepare::verify_store(fs, "all"));

  // Killed and resumed, with another number of threads and other chunks.
  BuildSettings settings = prepare::small_settings(1);
  DataOptions killed = options;
  killed.cache_dir = "killed";
  prepare::build_half(fs, killed, settings);
  CHECK(prepare::build_store(fs, killed, prepare::test_tokenizer(), settings)->root == built->root);
  // Extended: the blocks of the rows before stay as they are.
  DataOptions extended = lines_options(fs, "extended", {0});
  REQUIRE(prepare::build_store(fs, extended, prepare::test_tokenizer(), prepare::small_settings()).ok());
  const RowTree before = *kept_row_tree(fs, "extended");
  extended.train_urls = options.train_urls;
  settings = prepare::small_settings();
  settings.append = true;
  CHECK(prepare::build_store(fs, extended, prepare::test_tokenizer(), settings)->root == built->root);
  CHECK(kept_row_tree(fs, "extended")->blocks[0][0] == before.blocks[0][0]);
  // Joined, in place and by copying.
  for (const int file : {0, 1})
    REQUIRE(prepare::build_store(fs, lines_options(fs, fmt::format("part{}", file), {file}),
                                 prepare::test_tokenizer(), settings)
                .ok());
  for (const prepare::JoinRows how : {prepare::JoinRows::kInPlace, prepare::JoinRows::kCopy}) {
    DataOptions joined = options;
    joined.cache_dir = how == prepare::JoinRows::kCopy ? "copy" : "in-place";
    const auto ledger =
        prepare::consolidate_stores(fs, joined, components_of(joined)[0], prepare::test_tokenizer(),
                                    {"part0", "part1"}, how, prepare::small_settings());
    REQUIRE_MESSAGE(ledger.ok(), (ledger.ok() ? "" : ledger.error().message()));
    CHECK(ledger->root == built->root);
    check_ok(prepare::verify_store(fs, joined.cache_dir));
  }
}

TEST_CASE("row tree: blocks that are known are not read again, and only those") {
  io::MemoryFileSystem fs;
  const DataOptions options = lines_options(fs, "all", {0});
  const auto built = prepare::build_store(fs, options, prepare::test_tokenizer(), prepare::small_settings());
  REQUIRE(built.ok());
  const auto tables = ChunkTables::open(fs, "all", *built, built->hash());
  const RowTree tree = *kept_row_tree(fs, "all");
  RowTree other = tree;
  for (auto& blocks : other.blocks)
    for (Sha256Digest& block : blocks) block = {};
  const auto with = [&](std::array<int64_t, 2> same) {
    return *read_row_tree(fs, "all", *built, **tables, 2, other, same);
  };
  CHECK(with({RowTree::kBlockRows - 1, 0}) == tree);
  const RowTree mixed = with({2 * RowTree::kBlockRows - 1, RowTree::kBlockRows - 1});
  CHECK(mixed.blocks[0][0] == Sha256Digest{});
  CHECK(mixed.blocks[0][1] == tree.blocks[0][1]);
  CHECK(mixed.blocks[1] == tree.blocks[1]);
}

TEST_CASE("row proof: row, path and root are enough, and no other row, place or weight passes") {
  io::MemoryFileSystem fs;
  const DataOptions options = lines_options(fs, "all", {0});
  const auto built = prepare::build_store(fs, options, prepare::test_tokenizer(), prepare::small_settings());
  REQUIRE(built.ok());
  const auto store = *prepare::open_store(fs, options);
  for (const Split split : kSplits) {
    const std::vector<StoredRow> rows = stored_rows(store->split(split));
    const auto last = static_cast<int64_t>(rows.size()) - 1;
    for (const int64_t row : {int64_t{0}, RowTree::kBlockRows - 1, RowTree::kBlockRows, last}) {
      if (row > last) continue;
      const auto proof = prove_row(fs, "all", split, row);
      REQUIRE_MESSAGE(proof.ok(), (proof.ok() ? "" : proof.error().message()));
      StoredRow own = rows[static_cast<size_t>(row)];
      CHECK(proof->root(own.ids, {}) == built->root);
      CHECK(proof->root(own.ids, own.weights) == built->root);
      CHECK(proof->path.size() <= 13);
      // Other content.
      own.weights[0] = 0;
      CHECK(proof->root(own.ids, own.weights) != built->root);
      own.ids[0] ^= 1;
      CHECK(proof->root(own.ids, {}) != built->root);
      own.ids[0] ^= 1;
      // The same row said to be elsewhere.
      const auto elsewhere = [&](const auto& change) {
        RowProof other = *proof;
        change(other);
        CHECK(other.root(own.ids, {}) != built->root);
      };
      elsewhere([](RowProof& p) { p.row ^= 1; });
      elsewhere([](RowProof& p) { p.row = -1; });
      elsewhere([](RowProof& p) { ++p.rows[0]; });
      elsewhere([](RowProof& p) { ++p.rows[1]; });
      elsewhere([](RowProof& p) { p.split = p.split == Split::kTrain ? Split::kValidation : Split::kTrain; });
      elsewhere([](RowProof& p) { p.other_split[31] ^= 1; });
      elsewhere([](RowProof& p) { p.path[0][0] ^= 1; });
      elsewhere([](RowProof& p) { p.path.pop_back(); });
    }
  }
}

TEST_CASE("row tree: one that is damaged, gone or another's is found") {
  io::MemoryFileSystem fs;
  const DataOptions options = lines_options(fs, "all", {0});
  REQUIRE(prepare::build_store(fs, options, prepare::test_tokenizer(), prepare::small_settings()).ok());
  const std::string path = row_tree_path("all"), whole = *fs.read_file(path);
  const auto message = [&] {
    const Status status = prepare::verify_store(fs, "all");
    return status.ok() ? "" : status.error().message();
  };
  CHECK(message().empty());
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string bad = whole;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    prepare::write(fs, path, bad);
    CHECK(kept_row_tree(fs, "all").error().code() == ErrorCode::kCorrupt);
  }
  CHECK(message().find("all/rows.tree: is damaged") != std::string::npos);
  CHECK(prove_row(fs, "all", Split::kTrain, 0).error().code() == ErrorCode::kCorrupt);
  check_ok(fs.remove(path));
  CHECK(message().find("all/rows.tree: is gone") != std::string::npos);
  REQUIRE(prepare::build_store(fs, lines_options(fs, "other", {1}), prepare::test_tokenizer(),
                               prepare::small_settings())
              .ok());
  prepare::write(fs, path, *fs.read_file(row_tree_path("other")));
  CHECK(message().find("all/rows.tree: is not the tree of this store's rows") != std::string::npos);
  CHECK(prove_row(fs, "all", Split::kTrain, 0).error().message().find("has the root") != std::string::npos);
  prepare::write(fs, path, whole);
  CHECK(message().empty());
  // A root that is made up.
  nlohmann::json json = nlohmann::json::parse(*fs.read_file(ledger_path("all")));
  json["root"] = std::string(64, '0');
  prepare::write(fs, ledger_path("all"), prepare::with_checksum(json));
  CHECK(message().find("the ledger says 0000") != std::string::npos);
}

}  // namespace
}  // namespace ostro::data
