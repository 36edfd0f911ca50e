#include "ostro/data/levanter/levanter_cache.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "ostro/base/log.h"
#include "ostro/data/levanter/cache_for_test.h"
#include "ostro/io/files/counting_file_system.h"
#include "ostro/io/files/faulty_file_system.h"

using namespace ostro;
using namespace ostro::data;
using namespace ostro::data::levanter_for_test;

TEST_CASE("levanter cache: is read where it is, with check data of ours elsewhere") {
  Cache cache;
  for (int i = 0; i < 60; ++i) cache.add(i);
  io::MemoryFileSystem fs;
  cache.write_to(fs, "theirs");
  const auto files = *fs.glob("theirs/**");
  const auto ledger = check(fs);
  REQUIRE_MESSAGE(ledger.ok(), (ledger.ok() ? "" : ledger.error().message()));
  CHECK(*fs.glob("theirs/**") == files);
  CHECK(ledger->split(Split::kTrain).rows == 60);
  CHECK(ledger->split(Split::kValidation).rows == 0);

  io::CountingFileSystem counting(fs);
  CHECK(check(counting)->hash() == ledger->hash());  // made once
  CHECK(counting.counts().opens <= 3);
  const auto store = TokenStore::open(fs, "ours/chat");
  REQUIRE(store.ok());
  const TokenStream& stream = (*store)->split(Split::kTrain);
  std::vector<int32_t> ids(cache.ids.size());
  std::vector<float> weights(ids.size());
  check_ok(stream.read(0, ids));
  check_ok(stream.read_weights(0, weights));
  CHECK(std::vector<int64_t>(ids.begin(), ids.end()) == cache.ids);
  CHECK(std::vector<int64_t>(weights.begin(), weights.end()) == cache.masks);
  std::vector<int64_t> ends = cache.ends;
  ends[0] = 0;
  CHECK(*stream.row_ends(0, 60) == ends);
  CHECK(stream.source(7)->file == "theirs/train");
  CHECK(stream.source(7)->document == 8);
  std::string text;
  for (const int64_t id : cache.ids) {
    const auto one = static_cast<uint32_t>(id);
    text += *test_tokenizer().decode_bytes(std::span(&one, 1), true);
  }
  CHECK(ledger->split(Split::kTrain).bytes == static_cast<int64_t>(text.size()));
  CHECK(verify_store(fs, "ours/chat").ok());

  // Check data of format 3 say the same.
  make_format_3(fs, "ours/chat");
  const auto old = TokenStore::open(fs, "ours/chat");
  REQUIRE_MESSAGE(old.ok(), (old.ok() ? "" : old.error().message()));
  CHECK((*old)->hash() == ledger->hash());
  std::vector<int32_t> again(ids.size());
  check_ok((*old)->split(Split::kTrain).read(0, again));
  CHECK(again == ids);
  CHECK(verify_store(fs, "ours/chat").ok());

  // The same content in another place has the same identity, with any number of threads. Other content has
  // another identity.
  check_ok(fs.rename("theirs", "theirs2"));
  const auto moved = check_levanter_cache(fs, "theirs2", "ours/moved", wanted(), test_tokenizer(),
                                          "tokenizer.json", small_settings(1));
  REQUIRE(moved.ok());
  CHECK(moved->hash() == ledger->hash());
  cache.masks[0] ^= 1;
  cache.write_to(fs, "theirs3");
  CHECK(check_levanter_cache(fs, "theirs3", "ours/other", wanted(), test_tokenizer(), "tokenizer.json",
                             small_settings())
            ->hash() != ledger->hash());
}

TEST_CASE("levanter cache: shards side by side are the cache that holds all their rows") {
  io::MemoryFileSystem fs;
  Cache whole;
  std::vector<std::pair<std::string, int64_t>> shards;
  int64_t number = 0;
  // Shards: one without rows or arrays, one with a single row, and some in which chunks of 32 begin and end
  // anywhere.
  for (const int64_t rows : {20, 0, 1, 33, 6}) {
    Cache shard;
    for (int64_t i = 0; i < rows; ++i, ++number) {
      shard.add(number);
      whole.add(number);
    }
    shards.emplace_back(fmt::format("part={}/of-5", (3 * shards.size() + 2) % 5),
                        rows);  // in no order of names
    if (rows > 0) shard.write_arrays(fs, "theirs/train/" + shards.back().first);
  }
  write(fs, "theirs/train/shard_ledger.json", sharded_ledger(shards));
  whole.write_to(fs, "one");
  const auto one = check_levanter_cache(fs, "one", "ours/one", wanted(), test_tokenizer(), "tokenizer.json",
                                        small_settings());
  const auto many = check(fs);
  REQUIRE_MESSAGE(many.ok(), (many.ok() ? "" : many.error().message()));
  CHECK(many->hash() == one->hash());
  CHECK(many->parts.size() == 5);
  check_ok(verify_store(fs, "ours/chat"));
  CHECK(check(fs)->hash() == one->hash());  // known now
  const auto store = *TokenStore::open(fs, "ours/chat"), single = *TokenStore::open(fs, "ours/one");
  const TokenStream &stream = store->split(Split::kTrain), &other = single->split(Split::kTrain);
  for (int64_t row = 60; row-- > 0;) {  // any row first
    const auto ends = *stream.row_ends(row, 1);
    CHECK(ends == *other.row_ends(row, 1));
    CHECK(*stream.row_hash(row) == *other.row_hash(row));
    CHECK((*stream.rows_of(ends[0], 1))[0].row == row);
  }
  CHECK(stream.source(19)->file == "theirs/train/part=2/of-5");
  CHECK(stream.source(20)->file == "theirs/train/part=3/of-5");
  CHECK(stream.source(20)->document == 1);
  CHECK(stream.source(59)->document == 6);
  CHECK(other.source(59)->file == "one/train");

  // A sparse mask, a damaged shard, a missing shard, and a ledger that names other shards.
  const std::string last = "theirs/train/" + shards[4].first, third = "theirs/train/" + shards[3].first;
  write(fs, third + "/input_ids/data/c/0", *fs.read_file(last + "/input_ids/data/c/0"));
  CHECK(verify_store(fs, "ours/chat").error().message().find(third + "/input_ids/data") != std::string::npos);
  check_ok(fs.remove_all(third));
  const std::string gone = verify_store(fs, "ours/chat").error().message();
  CHECK_MESSAGE(gone.find(third + "/input_ids/data/zarr.json") != std::string::npos, gone);
  std::swap(shards[0], shards[3]);
  write(fs, "theirs/train/shard_ledger.json", sharded_ledger(shards));
  CHECK(refusal(fs).find("theirs: shard 0 is train/part=1/of-5 now, and was train/part=2/of-5") !=
        std::string::npos);
  shards[0].second += 1;
  write(fs, "theirs/train/shard_ledger.json", sharded_ledger(shards));
  CHECK(refusal(fs).find("has 61 rows now, and had 60") != std::string::npos);
  check_ok(fs.remove_all("ours"));
  CHECK(refusal(fs).find("the cache has no such field") != std::string::npos);
  for (const auto& [change, reason] : std::vector<std::pair<nlohmann::json, const char*>>{
           {{{"total_num_rows", 60}}, "are more than the 60"},
           {{{"total_num_rows", 62}}, "add up to 61"},
           {{{"finished_shards", {"a", "a"}}, {"shard_rows", {{"a", 1}}}}, "has train/a twice"},
           {{{"finished_shards", {"a", "a/."}}, {"shard_rows", {{"a", 1}, {"a/.", 1}}}}, "has train/a twice"},
           {{{"finished_shards", {"/a"}}}, "\"/a\" is not a path below the cache"},
           {{{"finished_shards", {"../../a"}}, {"shard_rows", {{"../../a", 61}}}},
            "\"../../a\" is not a path"},
           {{{"finished_shards", {"a/.."}}, {"shard_rows", {{"a/..", 61}}}}, "\"a/..\" is not a path"},
           {{{"finished_shards", {"."}}, {"shard_rows", {{".", 61}}}}, "\".\" is not a path"},
           {{{"finished_shards", {"a"}}}, "\"a\" is missing"},
           {{{"layout", "columns"}}, "\"layout\" is \"columns\" where"}}) {
    nlohmann::json json = nlohmann::json::parse(sharded_ledger(shards));
    json.update(change);
    write(fs, "theirs/train/shard_ledger.json", json.dump());
    CHECK_MESSAGE(refusal(fs).find(reason) != std::string::npos, refusal(fs));
  }
}

TEST_CASE("levanter cache: ends of rows that leave 64 bits behind other shards are refused") {
  io::MemoryFileSystem fs;
  Cache first, second;
  for (int i = 0; i < 5; ++i) first.add(i), second.add(i);
  second.ends[2] = INT64_MAX - 1;
  first.write_arrays(fs, "theirs/train/a");
  second.write_arrays(fs, "theirs/train/b");
  write(fs, "theirs/train/shard_ledger.json", sharded_ledger({{"a", 5}, {"b", 5}}));
  const std::string found = refusal(fs);
  CHECK_MESSAGE(found.find("(in theirs/train/b/input_ids/offsets): element 2 is 9223372036854775806, behind "
                           "25 elements") != std::string::npos,
                found);
}

TEST_CASE("levanter cache: chunks that were never written are zeros, as their writers leave zeros out") {
  Cache cache;
  for (int i = 0; i < 200; ++i) cache.add(5 * i);  // all masks 0
  io::MemoryFileSystem fs;
  cache.write_to(fs, "theirs");
  check_ok(fs.remove("theirs/train/assistant_masks/data/c/1"));
  const auto ledger = check(fs);
  REQUIRE_MESSAGE(ledger.ok(), (ledger.ok() ? "" : ledger.error().message()));
  const auto store = *TokenStore::open(fs, "ours/chat");
  std::vector<float> weights(cache.masks.size(), 1);
  check_ok(store->split(Split::kTrain).read_weights(0, weights));
  CHECK(weights == std::vector<float>(weights.size()));
}

TEST_CASE("levanter cache: damage, other contents and wrong options are refused by name") {
  Cache cache;
  for (int i = 0; i < 60; ++i) cache.add(i);
  io::MemoryFileSystem fs;
  cache.write_to(fs, "theirs");
  const std::string ledger = *fs.read_file("theirs/train/shard_ledger.json");
  std::string unfinished = ledger;
  unfinished.replace(unfinished.find("true"), 4, "false");
  write(fs, "theirs/train/shard_ledger.json", unfinished);
  CHECK(refusal(fs).find("\"is_finished\" is false") != std::string::npos);
  std::string more = ledger;
  more.replace(more.find("60"), 2, "61");
  write(fs, "theirs/train/shard_ledger.json", more);
  CHECK(refusal(fs).find("the number of rows, is 60; shard_ledger.json says 61") != std::string::npos);
  write(fs, "theirs/train/shard_ledger.json", ledger);

  Cache large = cache;
  large.ids[50] = test_tokenizer().vocab_size();
  large.write_to(fs, "theirs");
  CHECK(refusal(fs).find("token 50 is 270, but data.tokenizer has 270 tokens") != std::string::npos);
  Cache falling = cache;
  std::swap(falling.ends[40], falling.ends[41]);
  falling.write_to(fs, "theirs");
  CHECK(refusal(fs).find("ends fall from") != std::string::npos);
  Cache negative = cache;
  negative.ends[1] = -3;
  negative.write_to(fs, "theirs");
  CHECK(refusal(fs).find("ends fall from 0 to -3 at element 1") != std::string::npos);
  cache.write_to(fs, "theirs");
  check_ok(fs.rename("theirs/train/assistant_masks", "theirs/train/masks"));
  CHECK(refusal(fs).find("theirs/train/assistant_masks/data: the cache has no such field") !=
        std::string::npos);
  check_ok(fs.rename("theirs/train/masks", "theirs/train/assistant_masks"));

  REQUIRE(check(fs).ok());
  Cache changed = cache;
  changed.ids[33] ^= 1;
  changed.write_to(fs, "theirs");
  const auto store = *TokenStore::open(fs, "ours/chat");
  std::vector<int32_t> ids(cache.ids.size());
  const Status read = store->split(Split::kTrain).read(0, ids);
  REQUIRE_FALSE(read.ok());
  CHECK(read.error().message().find("theirs/train/input_ids/data: chunk 1 has CRC-32C") != std::string::npos);
  CHECK(read.error().message().find("damaged Levanter cache: theirs/") == 0);
  CHECK(read.error().message().find("write it anew, and delete ours/chat, which") != std::string::npos);
  io::FaultyFileSystem faulty(fs);
  const auto other = *TokenStore::open(faulty, "ours/chat");
  faulty.inject_read_error(0);
  const std::string kept_back = other->split(Split::kTrain).read(0, ids).error().message();
  CHECK_MESSAGE(kept_back.find("reading theirs/train/input_ids/data of the Levanter cache in theirs: ") == 0,
                kept_back);
  CHECK(kept_back.find("delete") == std::string::npos);
  std::string checked = *fs.read_file("ours/chat/ledger.json");
  checked[checked.size() / 2] ^= 1;
  write(fs, "ours/chat/ledger.json", checked);
  CHECK(refusal(fs).find("damaged check data of the Levanter cache in theirs: ours/chat/ledger.json") == 0);
  check_ok(fs.remove_all("ours"));
  cache.write_to(fs, "theirs");
  REQUIRE(check(fs).ok());
  changed.add(9);
  changed.write_to(fs, "theirs");
  CHECK(refusal(fs).find("has 61 rows now, and had 60") != std::string::npos);
}

TEST_CASE("levanter cache: the tokenizer that its ledger names must be that of the configuration") {
  Cache cache;
  for (int i = 0; i < 60; ++i) cache.add(i);
  io::MemoryFileSystem fs;
  cache.write_to(fs, "theirs");
  const std::string path = "theirs/train/shard_ledger.json";
  std::vector<std::string> warnings;
  const struct Collect {
    explicit Collect(std::vector<std::string>& lines)
        : before(set_log_sink([&lines](LogLevel, std::string_view line) { lines.emplace_back(line); })) {}
    ~Collect() { set_log_sink(before); }
    LogSink before;
  } collect(warnings);
  // The error when the ledger has these metadata; "" when the cache is accepted.
  const auto outcome = [&](const nlohmann::json& told, const std::string& type = "text") {
    nlohmann::json ledger = nlohmann::json::parse(*fs.read_file(path));
    ledger["metadata"] = told;
    write(fs, path, ledger.dump());
    REQUIRE(fs.remove_all("ours").ok());
    warnings.clear();
    Preprocessing p = wanted();
    p.format = nlohmann::json{{"type", type}}.dump();
    p.eos_id = type == "text" ? 1 : -1;
    const auto result = check_levanter_cache(fs, "theirs", "ours/x", p, test_tokenizer(), "t/tokenizer.json",
                                             small_settings());
    return result.ok() ? std::string() : result.error().message();
  };
  const auto sized = [](int64_t size, const char* name = "org/name") {
    return nlohmann::json{{"preprocessor_metadata", {{"tokenizer", name}, {"vocab_size", size}}}};
  };
  const int64_t all = test_tokenizer().vocab_size();
  const auto added = static_cast<int64_t>(test_tokenizer().spec().added_tokens.size());
  REQUIRE(added > 0);
  check_ok(fs.make_dirs("t"));
  write(fs, "t/tokenizer.json", "{}");

  // Accepted: metadata that say nothing, and every size that some program reports for this tokenizer.
  for (const nlohmann::json& told :
       {nlohmann::json(), nlohmann::json::object(), nlohmann::json{{"preprocessor_metadata", nullptr}},
        sized(all), sized(all - added), sized(7, "passthrough")})
    CHECK_MESSAGE(outcome(told) == "", told.dump());
  CHECK(warnings.empty());
  CHECK((*TokenStore::open(fs, "ours/x"))->ledger().levanter_tokenizer == "passthrough");

  for (const int64_t size : {all + 2, all - added - 1, int64_t{50257}, int64_t{-1}}) {
    const std::string found = outcome(sized(size));
    CHECK_MESSAGE(found.find(fmt::format("{}: \"vocab_size\" is {}, of org/name; data.tokenizer "
                                         "(t/tokenizer.json) has {} tokens, {} without added ones; name the",
                                         path, size, all, all - added)) == 0,
                  found);
    CHECK_FALSE(*fs.exists("ours/x"));
  }
  // The writer of the cache counts tokens that files beside the tokenizer add.
  write(fs, "t/tokenizer_config.json",
        R"({"pad_token": "<pad>", "added_tokens_decoder": {"270": {"content": "<pad>"}}, "n": 1})");
  write(fs, "t/added_tokens.json", R"({"<image>": 271})");
  CHECK(outcome(sized(all + 2)) == "");
  CHECK(outcome(sized(all + 3)).find("\"vocab_size\" is 273") != std::string::npos);

  const std::string other(64, 'a');
  const auto hashed = [](const std::string& sha) {
    return nlohmann::json{{"preprocessor_metadata", {{"tokenizer", sha}, {"vocab_size", 7}}}};
  };
  CHECK(outcome(hashed(wanted().tokenizer)) == "");
  const std::string found = outcome(hashed(other));
  CHECK_MESSAGE(found.find(fmt::format("the cache's tokenizer has SHA-256 {}, data.tokenizer "
                                       "(t/tokenizer.json) has {}; name",
                                       other, wanted().tokenizer)) != std::string::npos,
                found);

  // Ids that are taken as they are.
  CHECK(outcome(sized(50257), "prebuilt") == "");
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("\"vocab_size\" is 50257") != std::string::npos);

  const auto ends = [&](bool bos, bool eos) {
    nlohmann::json told = sized(all);
    told["preprocessor_metadata"].update({{"append_bos", bos}, {"append_eos", eos}});
    return told;
  };
  CHECK(outcome(ends(false, true)) == "");
  CHECK(warnings.empty());
  CHECK(outcome(ends(true, true), "prebuilt") == "");
  CHECK(warnings.empty());
  CHECK(outcome(ends(true, false)) == "");
  REQUIRE(warnings.size() == 2);
  CHECK(warnings[0].find("\"append_eos\" is false, and data.enforce_eos is true") != std::string::npos);
  CHECK(warnings[1].find("\"append_bos\" is true") != std::string::npos);

  // A cache that was checked with other metadata is compared again.
  nlohmann::json ledger = nlohmann::json::parse(*fs.read_file(path));
  ledger["metadata"] = sized(50257);
  write(fs, path, ledger.dump());
  const auto anew = check_levanter_cache(fs, "theirs", "ours/x", wanted(), test_tokenizer(),
                                         "t/tokenizer.json", small_settings());
  REQUIRE_FALSE(anew.ok());
  CHECK(anew.error().message().find("\"vocab_size\" is 50257") != std::string::npos);
}
