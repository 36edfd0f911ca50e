// Cache: a cache of chat rows as Levanter writes it, for tests; sharded_ledger, wanted, check and refusal,
// what tests of such caches share.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ostro/data/levanter/levanter_cache.h"
#include "ostro/data/store/store_plan.h"
#include "ostro/prepare/store/test_corpus.h"

namespace ostro::data::levanter_for_test {

using namespace ostro::prepare;

// With small chunks: int32 ids and masks.
struct Cache {
  std::vector<int64_t> ids, masks, ends{0};

  void add(int64_t number) {
    for (int64_t i = 0; i < 3 + number % 9; ++i) {
      ids.push_back((7 * number + i) % test_tokenizer().vocab_size());
      masks.push_back(number % 5 == 0 ? 0 : i > 1);
    }
    ends.push_back(static_cast<int64_t>(ids.size()));
    ends[0] += 1;
  }

  void write_array(io::FileSystem& fs, const std::string& path, const std::vector<int64_t>& values,
                   ElementType type) const {
    auto writer = ArrayWriter::create(fs, path, {.chunk = 32, .shard = 128}, type);
    REQUIRE(writer.ok());
    check_ok(writer->append(std::span(values)));
    REQUIRE(writer->commit().ok());
  }

  // `folder`: of a split or a shard.
  void write_arrays(io::FileSystem& fs, const std::string& folder) const {
    write_array(fs, folder + "/input_ids/data", ids, ElementType::kInt32);
    write_array(fs, folder + "/input_ids/offsets", ends, ElementType::kInt64);
    write_array(fs, folder + "/assistant_masks/data", masks, ElementType::kInt32);
    write_array(fs, folder + "/assistant_masks/offsets", ends, ElementType::kInt64);
  }

  void write_to(io::FileSystem& fs, const std::string& folder) const {
    write_arrays(fs, folder + "/train");
    write(fs, folder + "/train/shard_ledger.json",
          fmt::format("{{\"total_num_rows\": {0}, \"shard_rows\": {{\"s\": {0}}}, \"is_finished\": true, "
                      "\"finished_shards\": [\"s\"], \"field_counts\": {{}}, \"metadata\": {{}}}}",
                      ends[0]));
  }
};

// The ledger of a split whose shards have these numbers of rows.
inline std::string sharded_ledger(const std::vector<std::pair<std::string, int64_t>>& shards) {
  nlohmann::json json = {{"total_num_rows", 0}, {"is_finished", true}, {"layout", "sharded"}};
  int64_t total = 0;
  for (const auto& [name, rows] : shards) {
    json["finished_shards"].push_back(name);
    json["shard_rows"][name] = rows;
    total += rows;
  }
  json["total_num_rows"] = total;
  return json.dump();
}

inline Preprocessing wanted() {
  Preprocessing p;
  p.tokenizer = test_tokenizer().hash();
  p.vocab_size = test_tokenizer().vocab_size();
  p.format = R"({"type":"chat"})";
  p.fields = store_fields(WeightKind::kAssistantMasks);
  return p;
}

inline Result<StoreLedger> check(io::FileSystem& fs, int threads = 2) {
  return check_levanter_cache(fs, "theirs", "ours/chat", wanted(), test_tokenizer(), "tokenizer.json",
                              small_settings(threads));
}

inline std::string refusal(io::FileSystem& fs) {
  const auto result = check(fs);
  REQUIRE_FALSE(result.ok());
  return result.error().message();
}

}  // namespace ostro::data::levanter_for_test
