// The uses of documents that are found by inverting order and mixture are those of a scan of all batches.
#include "ostro/batches/loader/document_uses.h"

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <tuple>

#include "ostro/base/test_size.h"
#include "ostro/batches/loader/order_cases_for_test.h"

using namespace ostro;
using namespace ostro::batches;
using namespace ostro::data;
using namespace ostro::prepare;

namespace {

using Place = std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t>;
using Places = std::map<std::pair<size_t, int64_t>, std::vector<Place>>;  // by component and row

Place place_of(int64_t step, int64_t row, const RowPart& part) {
  return {step, row, part.sequence, part.begin, part.end, part.target_begin, part.target_end};
}

// What every batch says of its documents, by step and row.
Places scan(const DataSet& stores, const Loader& loader) {
  Places places;
  for (int64_t step = 0; step < kSteps; ++step) {
    const auto batch = loader.batch(step);
    REQUIRE(batch.ok());
    for (int64_t row = 0; row < batch->batch_size; ++row) {
      const size_t c = batch->components[static_cast<size_t>(row)];
      const int64_t sequence = batch->sequences[static_cast<size_t>(row)];
      const auto parts = parts_by_definition(stores, loader, c, sequence);
      for (const auto& [number, part] : parts) places[{c, number}].push_back(place_of(step, row, part));
    }
  }
  return places;
}

std::vector<Place> found(const Loader& loader, size_t c, int64_t row, int64_t first, int64_t end) {
  const auto used = row_uses(loader, c, row, first, end);
  REQUIRE_MESSAGE(used.ok(), used.error().message());
  std::vector<Place> places;
  for (const DocumentUse& use : used->uses) places.push_back(place_of(use.step, use.row, use.part));
  return places;
}

}  // namespace

TEST_CASE("document uses: inverting order and mixture finds what a scan of all batches finds") {
  std::mt19937_64 random(test_seed());
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  io::MemoryFileSystem fs;
  write_sources(fs);
  const std::vector<OrderCase> all = order_cases();
  const int64_t documents = sized<int64_t>(5, 112, 1000);  // of each case: 45, 1,008, all
  int64_t compared = 0, used = 0, wrong_key_differs = 0, target_only = 0, later_epochs = 0;
  for (size_t number = 0; number < all.size(); ++number) {
    DataOptions options = all[number].options;
    options.cache_dir = fmt::format("cache-{}", number);
    CAPTURE(all[number].name);
    const auto stores = build_data_set(fs, options, test_tokenizer(), small_settings());
    REQUIRE_MESSAGE(stores.ok(), (stores.ok() ? "" : stores.error().message()));
    const auto make = [&](uint64_t seed) {
      auto made = Loader::create(*stores, options, kLength, all[number].sizes, seed);
      REQUIRE_MESSAGE(made.ok(), (made.ok() ? "" : made.error().message()));
      return std::move(*made);
    };
    const Loader loader = make(3), other = make(4);
    Places places = scan(**stores, loader);
    for (int64_t i = 0; i < documents; ++i) {
      const size_t c = static_cast<size_t>(below(static_cast<int64_t>((*stores)->parts().size())));
      const int64_t row = below((*stores)->parts()[c].store->split(Split::kTrain).rows());
      CAPTURE(c);
      CAPTURE(row);
      const std::vector<Place> expected = places[{c, row}];
      CHECK(found(loader, c, row, 0, kSteps) == expected);
      const int64_t first = below(kSteps), end = first + below(kSteps - first + 1);
      std::vector<Place> some;
      for (const Place& place : expected)
        if (std::get<0>(place) >= first && std::get<0>(place) < end) some.push_back(place);
      CHECK(found(loader, c, row, first, end) == some);
      for (const Place& place : expected) target_only += std::get<3>(place) == std::get<4>(place);
      later_epochs += expected.size() > 4;
      wrong_key_differs += found(other, c, row, 0, kSteps) != expected;
      used += !expected.empty();
      ++compared;
    }
  }
  INFO("compared ", compared, ", used ", used, ", target only ", target_only);
  CHECK(used > compared / 2);
  CHECK(later_epochs > 0);
  // The control: the same documents in another order are elsewhere, so the comparison can fail.
  CHECK(wrong_key_differs > compared / 3);
}

TEST_CASE("document uses: documents that are not there, held out, or of two components") {
  io::MemoryFileSystem fs;
  write_sources(fs);
  DataOptions options;
  options.tokenizer = "tokenizer.json";
  options.components = {{"a", component("corpus")}, {"b", component("corpus/lines.jsonl")}};
  options.train_weights = Weights{{"a", 1}, {"b", 0}};
  const auto stores = build_data_set(fs, options, test_tokenizer(), small_settings());
  REQUIRE(stores.ok());
  const auto loader = Loader::create(*stores, options, kLength, 4, 0);
  REQUIRE(loader.ok());
  const auto uses = [&](const char* file, int64_t number, const char* component) {
    return document_uses(**stores, *loader, {file, number}, component, 0, kSteps);
  };
  const auto refused = [&](const char* file, int64_t number, const char* component) {
    const auto found = uses(file, number, component);
    REQUIRE_FALSE(found.ok());
    CHECK(found.error().code() == ErrorCode::kInvalidArgument);
    return found.error().message();
  };
  int64_t held_out = 0;
  for (int64_t number = 1; number <= 60; ++number) {
    const auto row = row_of_document((*stores)->parts()[0], "lines.jsonl", number);
    REQUIRE(row.ok());
    if (row->split == Split::kValidation) {
      held_out = number;
      continue;
    }
    const auto both = uses("lines.jsonl", number, "");
    REQUIRE(both.ok());
    REQUIRE(both->size() == 2);
    CHECK((*both)[0].trained);
    CHECK_FALSE((*both)[0].uses.empty());
    CHECK_FALSE((*both)[1].trained);
    CHECK((*both)[1].uses.empty());
    REQUIRE(uses("lines.jsonl", number, "b").ok());
    CHECK(uses("lines.jsonl", number, "b")->size() == 1);
  }
  REQUIRE(held_out > 0);
  CHECK(refused("lines.jsonl", held_out, "").find("held out") != std::string::npos);
  CHECK(refused("lines.jsonl", 61, "").find("its document 61 is not in") != std::string::npos);
  CHECK(refused("none.jsonl", 1, "").find("none.jsonl: none of the") != std::string::npos);
  CHECK(refused("lines.jsonl", 1, "c").find("c") != std::string::npos);
}

TEST_CASE("document names: a file, a colon and a number from 1") {
  const auto name = parse_document_name("s3://b/a:b.jsonl:7");
  REQUIRE(name.ok());
  CHECK(*name == DocumentName{"s3://b/a:b.jsonl", 7});
  CHECK(name->text() == "s3://b/a:b.jsonl:7");
  for (const char* bad :
       {"", "a.jsonl", "a.jsonl:", ":3", "a.jsonl:0", "a.jsonl:-1", "a.jsonl:3x", "a.jsonl: 3"})
    CHECK_FALSE(parse_document_name(bad).ok());
}
