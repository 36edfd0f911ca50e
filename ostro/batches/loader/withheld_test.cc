// Documents that data.without leaves out: exactly their targets, and with `blank` their tokens, change.
#include "ostro/batches/loader/withheld.h"

#include <doctest/doctest.h>

#include <random>
#include <set>

#include "ostro/base/test_size.h"
#include "ostro/batches/loader/documents.h"
#include "ostro/batches/loader/order_cases_for_test.h"

using namespace ostro;
using namespace ostro::batches;
using namespace ostro::data;
using namespace ostro::prepare;

namespace {

// What the batch of a step becomes without these rows of stores, from the definition.
void leave_out(const DataSet& stores, const Loader& loader, const std::set<std::pair<size_t, int64_t>>& rows,
               bool blank, Batch& batch) {
  for (int64_t row = 0; row < batch.batch_size; ++row) {
    const size_t c = batch.components[static_cast<size_t>(row)];
    const int64_t sequence = batch.sequences[static_cast<size_t>(row)];
    for (const auto& [number, part] : parts_by_definition(stores, loader, c, sequence)) {
      if (!rows.contains({c, number})) continue;
      for (int64_t position = 0; position < batch.seq_len; ++position) {
        const auto at = static_cast<size_t>(row * batch.seq_len + position);
        const bool target = position >= part.target_begin && position < part.target_end;
        if (target) batch.loss_mask[at] = 0;
        if (target && blank) batch.targets[at] = 0;
        if (blank && position >= part.begin && position < part.end) batch.tokens[at] = 0;
      }
    }
  }
}

}  // namespace

TEST_CASE("withheld: batches without documents are those with them, less their targets and tokens") {
  std::mt19937_64 random(test_seed());
  io::MemoryFileSystem fs;
  write_sources(fs);
  const std::vector<OrderCase> all = order_cases();
  int64_t changed = 0, kept = 0, blank_differs = 0;
  for (size_t number = 0; number < all.size(); ++number) {
    DataOptions options = all[number].options;
    options.cache_dir = fmt::format("cache-{}", number);
    CAPTURE(all[number].name);
    const auto stores = build_data_set(fs, options, test_tokenizer(), small_settings());
    REQUIRE_MESSAGE(stores.ok(), (stores.ok() ? "" : stores.error().message()));
    const auto make = [&] {
      auto made = Loader::create(*stores, options, kLength, all[number].sizes, 3);
      REQUIRE_MESSAGE(made.ok(), (made.ok() ? "" : made.error().message()));
      return std::move(*made);
    };
    const Loader whole = make();
    std::set<std::pair<size_t, int64_t>> rows;
    for (int64_t i = 0; i < 4; ++i) {
      const size_t c = random() % (*stores)->parts().size();
      const TokenStream& stream = (*stores)->parts()[c].store->split(Split::kTrain);
      const RowSource source =
          *stream.source(static_cast<int64_t>(random() % static_cast<uint64_t>(stream.rows())));
      const DocumentName name{source.file, source.document};
      if (std::find(options.without.begin(), options.without.end(), name.text()) != options.without.end())
        continue;
      options.without.push_back(name.text());
      const auto left_out = training_rows(**stores, name);
      REQUIRE_MESSAGE(left_out.ok(), left_out.error().message());
      for (const ComponentRow& row : *left_out) rows.insert({row.component, row.found.row});
    }
    options.without_as = WithoutAs::kMask;
    const Loader masked = make();
    options.without_as = WithoutAs::kBlank;
    const Loader blanked = make();
    for (int64_t step = 0; step < kSteps; ++step) {
      CAPTURE(step);
      const Batch base = *whole.batch(step);
      for (const bool blank : {false, true}) {
        Batch expected = base;
        leave_out(**stores, whole, rows, blank, expected);
        const Batch got = *(blank ? blanked : masked).batch(step, 2);
        CHECK(got.tokens == expected.tokens);
        CHECK(got.targets == expected.targets);
        CHECK(got.loss_mask == expected.loss_mask);
        CHECK(got.segment_ids == expected.segment_ids);
        CHECK(batch_fingerprint(got) == batch_fingerprint(expected));
        changed += got.loss_mask != base.loss_mask;
        kept += got.loss_mask == base.loss_mask;
        blank_differs += blank && got.tokens != base.tokens;
      }
    }
  }
  // The control: some batches have the documents and change, and the others are as they were.
  CHECK(changed > 20);
  CHECK(kept > 20);
  CHECK(blank_differs > 10);
}

TEST_CASE("withheld: names that no document has, that are held out, or that stand twice") {
  io::MemoryFileSystem fs;
  write_corpus(fs, "corpus");
  DataOptions options = corpus_options("corpus");
  const auto stores = build_data_set(fs, options, test_tokenizer(), small_settings());
  REQUIRE(stores.ok());
  const auto says = [&](const std::string& document, const char* words) {
    options.without = {document};
    const auto made = Loader::create(*stores, options, kLength, 4, 0);
    REQUIRE_FALSE(made.ok());
    CHECK_MESSAGE(made.error().message().find(words) != std::string::npos, made.error().message());
    CHECK(made.error().message().find("data.without") != std::string::npos);
  };
  says("lines.jsonl:61", "its document 61 is not in");
  says("none.jsonl:1", "none of the");
  for (int64_t number = 1; number <= 60; ++number)
    if (row_of_document((*stores)->parts()[0], "lines.jsonl", number)->split == Split::kValidation)
      says(fmt::format("lines.jsonl:{}", number), "held out");
  options.without = {"a.jsonl:1", "a.jsonl:1"};
  CHECK(options.validate().error().message().find("name it once") != std::string::npos);
  options.without = {"a.jsonl"};
  CHECK(options.validate().error().message().find("names no document") != std::string::npos);
  options.without = {};
  options.without_as = WithoutAs::kBlank;
  CHECK(options.validate().error().message().find("names no document") != std::string::npos);
}
