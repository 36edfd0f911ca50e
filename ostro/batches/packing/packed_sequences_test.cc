// Compares packed sequences with a slow definition: every row once, whole, in order, alone in its segment.
#include "ostro/batches/packing/packed_sequences.h"

#include <doctest/doctest.h>

#include "ostro/prepare/store/test_corpus.h"

namespace ostro::batches {
namespace {

struct PackingFixture {
  io::MemoryFileSystem fs;
  data::DataOptions options = prepare::corpus_options("corpus");
  std::shared_ptr<const data::TokenStore> store;

  PackingFixture() {
    prepare::write_corpus(fs, "corpus");
    // One-word documents have no targets when nothing ends them.
    for (int i = 0; i < 3; ++i) prepare::write(fs, fmt::format("corpus/text/short{}.txt", i), "a");
    options.enforce_eos = false;
    options.validation_fraction = 0;
    REQUIRE(prepare::build_store(fs, options, prepare::test_tokenizer(), prepare::small_settings()).ok());
    store = *data::TokenStore::open(fs, options.cache_dir);
  }

  const data::TokenStream& stream() const { return store->split(data::Split::kTrain); }
  PackedSequences sequences(const PackRule& rule) {
    auto index = PackIndex::open(fs, "packs", stream(), store->hash(), rule);
    REQUIRE_MESSAGE(index.ok(), index.error().message());
    return {store, data::Split::kTrain, *index};
  }
  std::vector<std::vector<int32_t>> rows() const {
    const auto ends = *stream().row_ends(0, stream().rows());
    std::vector<std::vector<int32_t>> all;
    for (size_t i = 0; i + 1 < ends.size(); ++i) {
      std::vector<int32_t> row(static_cast<size_t>(ends[i + 1] - ends[i]));
      check_ok(stream().read(ends[i], row));
      all.push_back(std::move(row));
    }
    return all;
  }
};

// Packing as docs/spec/batches.md says it, over rows in memory.
std::vector<std::vector<std::vector<int32_t>>> pack(const std::vector<std::vector<int32_t>>& rows,
                                                    const PackRule& rule) {
  std::vector<std::vector<std::vector<int32_t>>> out;
  size_t left = 0;
  for (std::vector<int32_t> row : rows) {
    const auto limit = static_cast<size_t>(rule.seq_len) + 1;
    if (row.size() < 2) continue;
    if (row.size() > limit)
      row = rule.keep == Keep::kLeft
                ? std::vector<int32_t>(row.begin(), row.begin() + static_cast<int64_t>(limit))
                : std::vector<int32_t>(row.end() - static_cast<int64_t>(limit), row.end());
    if (out.empty() || !rule.pack || row.size() - 1 > left) {
      out.emplace_back();
      left = limit - 1;
    }
    left -= row.size() - 1;
    out.back().push_back(std::move(row));
  }
  return out;
}

TEST_CASE("packing: what the slow definition says, for both ends kept, packed and single") {
  PackingFixture f;
  const auto rows = f.rows();
  for (const PackRule rule : {PackRule{16, Keep::kLeft, true}, PackRule{16, Keep::kRight, true},
                              PackRule{100, Keep::kLeft, true}, PackRule{100, Keep::kRight, false}}) {
    CAPTURE(rule.seq_len);
    const PackedSequences packed = f.sequences(rule);
    const auto expected = pack(rows, rule);
    REQUIRE(packed.sequences(true) == static_cast<int64_t>(expected.size()));
    for (size_t i = 0; i < expected.size(); ++i) {
      Batch batch = make_batch(0, 2, {.seq_len = rule.seq_len, .segments = true});
      check_ok(packed.read(static_cast<int64_t>(i), batch, 1));
      auto at = static_cast<size_t>(rule.seq_len);
      int32_t segment = 0;
      for (const auto& row : expected[i]) {
        for (size_t t = 0; t + 1 < row.size(); ++t, ++at) {
          REQUIRE(batch.tokens[at] == row[t]);
          REQUIRE(batch.targets[at] == row[t + 1]);
          REQUIRE(batch.loss_mask[at] == 1);
          REQUIRE(batch.segment_ids[at] == segment);
        }
        ++segment;
      }
      for (; at < batch.tokens.size(); ++at) {
        REQUIRE(batch.loss_mask[at] == 0);
        REQUIRE(batch.segment_ids[at] == segment);
      }
      const auto spans = packed.documents(static_cast<int64_t>(i));
      REQUIRE(spans.ok());
      REQUIRE(spans->size() == expected[i].size());
      for (size_t d = 0; d < spans->size(); ++d) {
        const DocumentSpan& span = (*spans)[d];
        const auto& row = rows[static_cast<size_t>(span.row)];
        for (int64_t t = span.begin; t < span.end; ++t)
          REQUIRE(batch.tokens[static_cast<size_t>(rule.seq_len + t)] ==
                  row[static_cast<size_t>(span.first_token + t - span.begin)]);
      }
    }
  }
}

TEST_CASE("packing: counts of what was cut and left out") {
  PackingFixture f;
  const PackCounts counts = f.sequences({16, Keep::kLeft, true}).index().counts();
  PackCounts expected;
  expected.sequences = counts.sequences;
  for (const auto& row : f.rows()) {
    if (row.size() < 2) ++expected.empty_rows;
    if (row.size() > 17) ++expected.cut_rows, expected.cut_tokens += static_cast<int64_t>(row.size()) - 17;
  }
  CHECK(counts == expected);
  CHECK(counts.empty_rows >= 1);
  CHECK(counts.cut_rows > 5);
  CHECK(*count_packs(f.stream(), {16, Keep::kLeft, true}) == counts);
  CHECK(left_out_text({.sequences = 3}).empty());
  CHECK(left_out_text({3, 2, 7, 0}) == "rows longer than a sequence: 2, which lose 7 tokens");
  CHECK(left_out_text({3, 0, 0, 1}) == "rows without a target: 1");
}

TEST_CASE("packing: the index is made once, again for another store, and damage is found") {
  PackingFixture f;
  const PackRule rule{32, Keep::kLeft, true};
  const std::string path = "packs/packed-32.idx";
  const int64_t sequences = f.sequences(rule).sequences(true);
  const std::string text = *f.fs.read_file(path);
  CHECK(f.sequences(rule).sequences(true) == sequences);
  CHECK(*f.fs.read_file(path) == text);
  REQUIRE(PackIndex::open(f.fs, "packs", f.stream(), std::string(64, 'f'), rule).ok());
  CHECK(*f.fs.read_file(path) != text);
  for (size_t at = 0; at < text.size(); at += 7) {
    std::string damaged = text;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    prepare::write(f.fs, path, damaged);
    auto index = PackIndex::open(f.fs, "packs", f.stream(), f.store->hash(), rule);
    REQUIRE(index.ok());  // a damaged header is no index: it is made anew
    const auto rows = (*index)->rows(sequences - 1);
    if (rows.ok())
      CHECK(*f.fs.read_file(path) == text);
    else
      CHECK(rows.error().code() == ErrorCode::kCorrupt);
  }
}

}  // namespace
}  // namespace ostro::batches
