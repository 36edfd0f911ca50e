#include "ostro/chain/genesis.h"

#include <doctest/doctest.h>
#include <functional>

#include "ostro/chain/canonical.h"
#include "ostro/chain/example_chain_for_test.h"

namespace ostro::chain {
namespace {

TEST_CASE("a chain of format 1 is read as it was written then, and goes on in its format") {
  ExampleRun run;
  // As the program wrote it before there was format 2.
  const std::string first =
      R"({"config":{"optimizer":{"learning_rate":"0x1.0624dd2f1a9fcp-10"},"trainer":{"num_train_steps":2,"seed":0}},)"
      R"("data":"3a6eb0790f39ac87c94f3856b2dd2c5d110e6811602261a9a923d3bb23adc8b7","format":1,)"
      R"("h":"cd405b457dc3aed34e195a4212c80bf12878a343f43f0a553f72cf09ea7fe61a","kind":"genesis","numerics":"1",)"
      R"("program":"1310ca2c8932dbd118668bd97442558a3e1f546b5e15c69699dfbd6024f548d8",)"
      R"("tokenizer":"5f97e3774c51edd1d63706c2ec3826c564a067794770cdab0f8c4797971cacf9"})"
      "\n";
  const std::string head = "33a8886cbdaab918a2814134fa9805dda37351e4f3f480848a82b99782f4ba1a";
  run.set_text(first);
  auto writer = ChainWriter::resume(run.fs, kPath, 0);
  REQUIRE_MESSAGE(writer.ok(), writer.error().message());
  GenesisEntry expected = genesis_1();
  expected.config = writer->chain().genesis().config;  // in canonical form
  CHECK(writer->chain().genesis() == expected);
  check_ok(check_computable(expected, "run"));
  check_ok(writer->append(step(1)));
  check_ok(writer->append(step(2)));
  check_ok(writer->append(checkpoint(2)));
  CHECK(run.text().starts_with(first));
  CHECK(read_chain(run.fs, kPath)->head() == head);
  ExampleRun other;
  write_example(other.fs, genesis_1());
  CHECK(other.text() == run.text());
  // Without empty fields, and with those that it may have.
  GenesisEntry all = genesis_1();
  all.fork = Fork{sha256_hex(std::string_view("parent")), 7};
  all.initial = all.reference = sha256_hex(std::string_view("state"));
  all.origin = "{}";
  const std::string json = *entry_json(all);
  CHECK(json.find("null") == std::string::npos);
  run.set_text(forged({json}));
  CHECK(read_chain(run.fs, kPath)->genesis().fork == all.fork);
  // It has no room for what is new.
  for (const auto& change : std::vector<std::function<void(GenesisEntry&)>>{
           [](GenesisEntry& e) { e.data_roots = genesis().data_roots; },
           [](GenesisEntry& e) { e.numerics_options = R"({"block":256})"; },
           [](GenesisEntry& e) { e.maker = Maker{std::string(64, 'a'), std::string(64, 'b')}; }}) {
    GenesisEntry wrong = genesis_1();
    change(wrong);
    CHECK(entry_json(wrong).error().message().find("format 1 has no") != std::string::npos);
  }
}

TEST_CASE("every field of a genesis is written, read and in the hash; a missing or foreign one is refused") {
  ExampleRun run;
  const std::string empty = *entry_json(genesis());
  for (const char* part : {R"("data_roots":{"":")", R"("fork":null)", R"("initial":null)", R"("maker":null)",
                           R"("numerics_options":{})", R"("origin":null)", R"("reference":null)"})
    CHECK_MESSAGE(empty.find(part) != std::string::npos, part);
  GenesisEntry full = genesis();
  full.numerics_options = R"({"products":"int8","block":256})";
  full.data_roots = {{"code", std::string(64, '1')}, {"text", std::string(64, '2')}};
  full.fork = Fork{std::string(64, '3'), 7};
  full.maker = Maker{std::string(64, '4'), std::string(64, '5')};
  full.initial = std::string(64, '6');
  full.reference = std::string(64, '7');
  full.origin = R"({"files":{}})";
  const std::string json = *entry_json(full);
  run.set_text(forged({json}));
  const Result<Chain> chain = read_chain(run.fs, kPath);
  REQUIRE_MESSAGE(chain.ok(), chain.error().message());
  GenesisEntry back = chain->genesis();
  CHECK(back.numerics_options == R"({"block":256,"products":"int8"})");
  full.numerics_options = back.numerics_options;
  full.config = back.config;
  CHECK(back == full);
  const auto message = [&](const std::string& text) {
    run.set_text(forged({text}));
    const Result<Chain> read = read_chain(run.fs, kPath);
    return read.ok() ? "" : read.error().message();
  };
  const auto without = [&](const char* key) {
    std::string text = empty;
    const size_t at = text.find(fmt::format("\"{}\":", key)), end = text.find_first_of(",}", at);
    REQUIRE(at != std::string::npos);
    return text.erase(at, end + (text[end] == ',' ? 1 : 0) - at);
  };
  for (const char* key : {"fork", "initial", "maker", "origin", "reference"})
    CHECK_MESSAGE(message(without(key)).find(fmt::format("\"{}\" is missing", key)) != std::string::npos,
                  message(without(key)));
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = empty;
    REQUIRE(text.find(from) != std::string::npos);
    return message(text.replace(text.find(from), from.size(), to));
  };
  CHECK(with("\"maker\":null", "\"maker\":null").empty());
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"\"maker\":null", "\"maker\":{}"},
           {"\"maker\":null", "\"maker\":{\"head\":\"a\",\"state\":\"b\"}"},
           {"\"maker\":null", "\"maker\":null,\"mode\":1"},
           {"\"numerics_options\":{}", "\"numerics_options\":[]"},
           {"\"numerics_options\":{}", "\"numerics_options\":null"},
           {"\"numerics_options\":{}", "\"numerics_options\":{\"block\":{}}"},
           {"\"numerics_options\":{}", "\"numerics_options\":{\"block\":0.5}"},
           {"\"data_roots\":{\"\":\"", "\"data_roots\":{\"\":\"0"},
           {"\"format\":2", "\"format\":1"}})
    CHECK_MESSAGE(!with(from, to).empty(), to);
  // Readers open files of these names.
  const std::string root(64, '1');
  for (const char* name : {"web/en", "a.b-c_D/0"}) {
    full.data_roots = {{name, root}};
    CHECK_MESSAGE(message(*entry_json(full)).empty(), name);
  }
  full.data_roots = {{"code", root}};
  const std::string honest = *entry_json(full);
  for (const char* name : {"../../x", "/abs", "s3://b/k", "a\\u0000b", "a\\\\b", "a//b", "a/", "a/../b", ".",
                           "a\\nb", "a/.hidden", "\xc3\xa4"}) {
    std::string text = honest;
    const std::string said = message(text.replace(text.find("code"), 4, name));
    CHECK_MESSAGE(said.find("which no component of data has") != std::string::npos, name, ": ", said);
  }
  full.data_roots = {{"", root}, {"code", root}};
  CHECK_FALSE(entry_json(full).ok());
  full.data_roots = {{"../x", root}};
  CHECK_FALSE(entry_json(full).ok());
  // What this program cannot compute.
  check_ok(check_computable(genesis(), "runs/a"));
  const auto refused = [](const auto& change) {
    GenesisEntry entry = genesis();
    change(entry);
    const Status status = check_computable(entry, "runs/a");
    CHECK(status.error().code() == ErrorCode::kUnsupported);
    return status.error().message();
  };
  CHECK(refused([](GenesisEntry& e) { e.numerics_version = "9"; }) ==
        "runs/a: the run has numerics version 9; this program computes version 1");
  CHECK(refused([](GenesisEntry& e) { e.numerics_options = R"({"block":256})"; }) ==
        "runs/a: the run has the numerics options {\"block\":256}; this program computes {} or "
        "{\"block\":256,\"products\":\"int8\"} or {\"attention\":\"int8\"} or "
        "{\"attention\":\"int8\",\"block\":256,\"products\":\"int8\"} or {\"products\":\"bf16_tc16\"} or "
        "{\"attention\":\"int8\",\"products\":\"bf16_tc16\"}");
  for (const char* options : {"{}", kIntegerProducts, kIntegerAttention, kIntegersEverywhere, kTensorRule,
                              kTensorRuleAndIntegers}) {
    GenesisEntry entry = genesis();
    entry.numerics_options = options;
    check_ok(check_computable(entry, "runs/a"));
    CHECK(canonical_object(options).value() == options);
  }
}

TEST_CASE("a genesis names the files that an imported model is from") {
  ExampleRun run;
  GenesisEntry entry = genesis();
  entry.initial = sha256_hex(std::string_view("state"));
  entry.origin = R"({"format":"hf", "files":{"config.json":"00"}})";
  REQUIRE(ChainWriter::create(run.fs, kPath, entry).ok());
  const Result<Chain> chain = read_chain(run.fs, kPath);
  REQUIRE(chain.ok());
  CHECK(chain->genesis().origin == R"({"files":{"config.json":"00"},"format":"hf"})");
  entry.origin = "[]";
  CHECK(entry_json(entry).error().code() == ErrorCode::kInvalidArgument);
}

TEST_CASE("a fork goes on with its parent's step numbers") {
  ExampleRun run;
  GenesisEntry child = genesis();
  child.fork = Fork{sha256_hex(std::string_view("parent")), 7};
  auto writer = ChainWriter::create(run.fs, kPath, child);
  REQUIRE(writer.ok());
  CHECK(!writer->append(step(1)).ok());
  CHECK(writer->append(checkpoint(7)).error().message() ==
        kPath + ": a checkpoint entry after step 7, before any step of this run");
  check_ok(writer->append(step(8)));
  const Result<Chain> chain = read_chain(run.fs, kPath);
  REQUIRE(chain.ok());
  CHECK(chain->genesis().fork == child.fork);
  CHECK(chain->find_step(7) == nullptr);
  CHECK(chain->find_step(8) != nullptr);
  CHECK(truncate_to_step(run.fs, kPath, 7)->links.size() == 1);
  CHECK(!read_chain_to(run.fs, kPath, 6).ok());
}

}  // namespace
}  // namespace ostro::chain
