#include "ostro/chain/chain.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>

#include "ostro/base/sha256.h"
#include "ostro/chain/chain_writer.h"
#include "ostro/chain/leaves.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/faulty_file_system.h"
#include "ostro/io/files/local_file_system.h"
#include "ostro/io/files/memory_file_system.h"

namespace ostro::chain {
namespace {

const std::string kPath = "run/chain.jsonl";

GenesisEntry genesis() {
  GenesisEntry entry = {
      "1",
      sha256_hex(std::string_view("program")),
      R"({"trainer": {"seed": 0, "num_train_steps": 2}, "optimizer": {"learning_rate": 0.001}})",
      sha256_hex(std::string_view("data")),
      sha256_hex(std::string_view("tokenizer")),
      std::nullopt};
  entry.data_roots = {{"", sha256_hex(std::string_view("rows"))}};
  return entry;
}

// The same run as one of format 1 has it.
GenesisEntry genesis_1() {
  GenesisEntry entry = genesis();
  entry.format = 1;
  entry.data_roots = {};
  return entry;
}

std::string three_leaves() {
  std::vector<LeafRecord> leaves;
  for (int64_t i = 0; i < 3; ++i) leaves.push_back({i, std::ldexp(1.0, static_cast<int>(i)), {}});
  return leaves_root(leaves);
}

StepEntry step(int64_t n) {
  if (n == 1)
    return {1,
            static_cast<double>(8.324f),
            1024,
            "00112233445566778899aabbccddeeff",
            "ffeeddccbbaa99887766554433221100",
            three_leaves()};
  return {n,
          8.0 + 0.125 * static_cast<double>(n),
          1024,
          "0123456789abcdef0123456789abcdef",
          "fedcba9876543210fedcba9876543210",
          three_leaves()};
}

CheckpointEntry checkpoint(int64_t n) { return {n, sha256_hex(std::string_view("state"))}; }

// The jsonl block of docs/reference/formats/chain.md.
std::string documented_example() {
  std::ifstream file(OSTRO_SOURCE_DIR "/docs/reference/formats/chain.md");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const std::string open = "```jsonl\n", close = "```";
  const size_t begin = text.find(open);
  REQUIRE(begin != std::string::npos);
  return text.substr(begin + open.size(), text.find(close, begin + open.size()) - begin - open.size());
}

// genesis, steps 1 and 2 with 8.25, checkpoint of 2: the documented example.
void write_example(io::FileSystem& fs, const GenesisEntry& first = genesis()) {
  auto writer = ChainWriter::create(fs, kPath, first);
  REQUIRE_MESSAGE(writer.ok(), writer.error().message());
  check_ok(writer->append(step(1)));
  check_ok(writer->append(step(2)));
  check_ok(writer->append(checkpoint(2)));
}

struct Run {
  Run() { check_ok(fs.make_dirs("run")); }
  std::string text() { return *fs.read_file(kPath); }
  void set_text(const std::string& text) { check_ok(io::write_file_atomically(fs, kPath, text)); }
  io::MemoryFileSystem fs;
};

TEST_CASE("the writer gives the documented example, the reader reads it, Python gave its hashes") {
  Run run;
  write_example(run.fs);
  CHECK(run.text() == documented_example());
  const Result<Chain> chain = read_chain(run.fs, kPath);
  REQUIRE_MESSAGE(chain.ok(), chain.error().message());
  CHECK(chain->head() == "b919d9b3aacf374ecca042a477706b594ef86ec81e740527f9e702cd13909cf2");
  CHECK(chain->last_step() == 2);
  CHECK(chain->links.size() == 4);
  CHECK(chain->torn_bytes == 0);
  CHECK(chain->bytes == static_cast<int64_t>(run.text().size()));
  CHECK(std::get<StepEntry>(chain->find_step(1)->entry) == step(1));
  CHECK(std::get<StepEntry>(chain->find_step(2)->entry) == step(2));
  CHECK(chain->find_step(0) == nullptr);
  CHECK(chain->find_step(3) == nullptr);
  CHECK(*chain->find_checkpoint(2) == checkpoint(2).name);
  CHECK(chain->find_checkpoint(1) == nullptr);
  CHECK(chain->find_hash(chain->links[1].hash) == &chain->links[1]);
  CHECK(chain->find_hash("00") == nullptr);
  CHECK(
      chain->genesis().config ==
      R"({"optimizer":{"learning_rate":"0x1.0624dd2f1a9fcp-10"},"trainer":{"num_train_steps":2,"seed":0}})");
}

TEST_CASE("every flipped bit is found, and the error names the line") {
  Run run;
  write_example(run.fs);
  const std::string whole = run.text();
  int64_t torn = 0;
  for (size_t i = 0; i < whole.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      run.set_text(damaged);
      const Result<Chain> chain = read_chain(run.fs, kPath);
      if (chain.ok()) {
        // The last newline: the line counts as torn, and the head is another one.
        CHECK(i == whole.size() - 1);
        CHECK(chain->torn_bytes > 0);
        CHECK(chain->links.size() == 3);
        ++torn;
        continue;
      }
      const auto line = 1 + std::count(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(i), '\n');
      // A flip can make a newline, which ends the line early.
      CHECK(chain.error().message().find(fmt::format("chain.jsonl: line {}", line)) != std::string::npos);
      CHECK(chain.error().code() == ErrorCode::kCorrupt);
    }
  }
  CHECK(torn == 8);
}

TEST_CASE("a chain cut anywhere is a shorter chain with a torn line, or holds nothing") {
  Run run;
  write_example(run.fs);
  const std::string whole = run.text();
  for (size_t size = 0; size < whole.size(); ++size) {
    run.set_text(whole.substr(0, size));
    const Result<Chain> chain = read_chain(run.fs, kPath);
    const int64_t lines = std::count(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size), '\n');
    REQUIRE(chain.ok() == (lines > 0));
    if (!chain.ok()) continue;
    CHECK(static_cast<int64_t>(chain->links.size()) == lines);
    CHECK(chain->bytes + chain->torn_bytes == static_cast<int64_t>(size));
    // Going on from there gives the same file again.
    const int64_t last = chain->last_step();
    auto writer = ChainWriter::resume(run.fs, kPath, last);
    REQUIRE(writer.ok());
    for (int64_t n = last + 1; n <= 2; ++n) check_ok(writer->append(step(n)));
    if (writer->chain().find_checkpoint(2) == nullptr) check_ok(writer->append(checkpoint(2)));
    CHECK(run.text() == whole);
  }
}

TEST_CASE("lines that are removed, doubled, swapped or foreign are found") {
  Run run;
  write_example(run.fs);
  std::vector<std::string> lines;
  std::string whole = run.text();
  for (size_t begin = 0; begin < whole.size();) {
    const size_t end = whole.find('\n', begin) + 1;
    lines.push_back(whole.substr(begin, end - begin));
    begin = end;
  }
  const auto refused = [&](const std::vector<std::string>& changed, const char* message) {
    std::string text;
    for (const std::string& line : changed) text += line;
    run.set_text(text);
    const Result<Chain> chain = read_chain(run.fs, kPath);
    REQUIRE(!chain.ok());
    CHECK_MESSAGE(chain.error().message().find(message) != std::string::npos, chain.error().message());
  };
  refused({lines[0], lines[2], lines[3]}, "line 2: its hash");
  refused({lines[1], lines[2], lines[3]}, "line 1: its hash");
  refused({lines[0], lines[1], lines[1]}, "line 3: its hash");
  refused({lines[0], lines[2], lines[1]}, "line 2: its hash");
  refused({lines[0], "\n"}, "line 2: not a JSON object");
  refused({lines[0], "[]\n"}, "line 2: not a JSON object");
  refused({lines[0], "{}\n"}, "line 2: \"h\" is missing");
  refused({lines[0], std::string(100000, '[') + "\n"}, "line 2: not a JSON object");
  refused({lines[0], "{\"a\":" + std::string(100000, '[') + std::string(100000, ']') + "}\n"},
          "line 2: not a JSON object");
  refused({" " + lines[0]}, "line 1: not in canonical form");
}

// A chain with right hashes and wrong content.
std::string forged(const std::vector<std::string>& entries) {
  std::string hash, text;
  for (const std::string& json : entries) {
    hash = entry_hash(hash, json);
    text += chain_line(json, hash) + "\n";
  }
  return text;
}

TEST_CASE("right hashes do not excuse wrong content") {
  Run run;
  const std::string first = *entry_json(genesis()), one = *entry_json(step(1)), two = *entry_json(step(2)),
                    name = *entry_json(checkpoint(1));
  const auto message = [&](const std::vector<std::string>& entries) {
    run.set_text(forged(entries));
    const Result<Chain> chain = read_chain(run.fs, kPath);
    return chain.ok() ? "" : chain.error().message();
  };
  CHECK(message({first, one, name, two}).empty());
  CHECK(message({first, two}) ==
        kPath +
            ": line 2: the first step is 2, but the genesis says that 0 were done before: a run that goes on "
            "with the state of another has \"fork\" in its genesis, with that run's head");
  CHECK(message({first, one, one}) == kPath + ": line 3: step 1 follows step 1");
  CHECK(message({first, first}) == kPath + ": line 2: a second genesis");
  CHECK(message({one}) == kPath + ": line 1: the first entry is not a genesis");
  CHECK(message({first, name}).find("of step 1 follows step 0") != std::string::npos);
  CHECK(message({first, one, two, name}).find("of step 1 follows step 2") != std::string::npos);
  CHECK(message({first, one, name, name}).find("a second checkpoint entry of step 1") != std::string::npos);
  CHECK(message({first, R"({"kind":"note"})"}).find("\"kind\" is \"note\"") != std::string::npos);
  CHECK(message({first, R"({"kind":"step"})"}).find("\"step\" is missing") != std::string::npos);
  std::string extra = one, loss = one, later = first;
  extra.insert(1, "\"a\":1,");
  CHECK(message({first, extra}).find("line 2: has fields") != std::string::npos);
  loss.replace(loss.find("0x1.0a5e36p+3"), 13, "nan");
  CHECK(message({first, loss}).find("line 2: \"loss\"") != std::string::npos);
  later.replace(later.find("\"format\":2"), 10, "\"format\":3");
  CHECK(message({later}).find("format 3 is later than 2") != std::string::npos);
}

TEST_CASE("a chain of format 1 is read as it was written then, and goes on in its format") {
  Run run;
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
  Run other;
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
  Run run;
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
        "runs/a: the run has the numerics options {\"block\":256}; this program computes {} and "
        "{\"block\":256,\"products\":\"int8\"}");
}

TEST_CASE("a step in another text than the one it has is refused, though its hash fits that text") {
  Run run;
  write_example(run.fs);
  const std::string whole = run.text();
  const size_t begin = whole.find('\n') + 1, end = whole.find('\n', begin);
  const std::string first = whole.substr(0, begin), line = whole.substr(begin, end - begin);
  const std::string head = read_chain_to(run.fs, kPath, 0)->head();
  // The second line with `from` made `to` and its hash over the text that it then has.
  const auto read = [&](const std::string& from, const std::string& to) {
    std::string text = line;
    REQUIRE(text.find(from) != std::string::npos);
    text.replace(text.find(from), from.size(), to);
    const size_t at = text.find("\"h\":\"");
    std::string without = text;
    without.erase(at, std::string("\"h\":\"\",").size() + 64);
    text.replace(at + 5, 64, entry_hash(head, without));
    run.set_text(first + text + "\n");
    return read_chain(run.fs, kPath).ok();
  };
  CHECK(read("\"step\":1", "\"step\":1"));
  for (const char* step : {"01", "+1", "1.0", "1e0", "-1", "0", "\"1\"", "", "99999999999999999999"})
    CHECK_MESSAGE(!read("\"step\":1", std::string("\"step\":") + step), step);
  for (const char* tokens : {"01024", "-1024", "-0", "1024.0", " 1024"})
    CHECK_MESSAGE(!read("\"tokens\":1024", std::string("\"tokens\":") + tokens), tokens);
  for (const char* loss :
       {"0x1.0a5e360p+3", "0X1.0a5e36p+3", "0x1.0A5E36p+3", "8.25", "inf", "nan", "", "0x1p+1024"})
    CHECK_MESSAGE(!read("0x1.0a5e36p+3", loss), loss);
  CHECK(!read("\"batch\":\"00112233445566778899aabb", "\"batch\":\"00112233445566778899AABB"));
  CHECK(!read("\"leaves\":\"c2", "\"leaves\":\""));
  CHECK(!read("\"kind\":\"step\"", "\"kind\":\"stop\""));
  CHECK(!read("\"kind\":\"step\",", "\"kind\":\"step\",\"kinds\":1,"));
  CHECK(!read("\"tokens\":1024}", "\"tokens\":1024,\"zone\":1}"));
  CHECK(!read("\"tokens\":1024}", "\"tokens\":1024} "));
}

TEST_CASE("entries that make no sense are refused before anything is written") {
  Run run;
  auto writer = ChainWriter::create(run.fs, kPath, genesis());
  REQUIRE(writer.ok());
  StepEntry bad = step(1);
  bad.loss = std::nan("");
  CHECK(writer->append(bad).error().message().find("the loss of step 1 is nan") != std::string::npos);
  bad = step(1);
  bad.batch = "XY";
  CHECK(!writer->append(bad).ok());
  bad = step(1);
  bad.leaves = "ab";
  CHECK(!writer->append(bad).ok());
  CHECK(!writer->append(step(2)).ok());
  CHECK(!writer->append(checkpoint(1)).ok());
  CHECK(!writer->append(AmendEntry{0, "[]"}).ok());
  CHECK(writer->chain().links.size() == 1);
  const char* difference = R"({"trainer.seed": {"from": 0, "to": 1}})";
  CHECK(!writer->append(AmendEntry{0, difference}).ok());
  check_ok(writer->append(step(1)));
  check_ok(writer->append(AmendEntry{1, difference}));
  CHECK(writer->append(checkpoint(1)).error().message().find("step 1 behind an amend of it") !=
        std::string::npos);
  CHECK(read_chain(run.fs, kPath)->links.size() == 3);
  CHECK(ChainWriter::create(run.fs, kPath, genesis()).error().code() == ErrorCode::kBusy);
}

TEST_CASE("a genesis names the files that an imported model is from") {
  Run run;
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
  Run run;
  GenesisEntry child = genesis();
  child.fork = Fork{sha256_hex(std::string_view("parent")), 7};
  auto writer = ChainWriter::create(run.fs, kPath, child);
  REQUIRE(writer.ok());
  CHECK(!writer->append(step(1)).ok());
  check_ok(writer->append(step(8)));
  const Result<Chain> chain = read_chain(run.fs, kPath);
  REQUIRE(chain.ok());
  CHECK(chain->genesis().fork == child.fork);
  CHECK(chain->find_step(7) == nullptr);
  CHECK(chain->find_step(8) != nullptr);
  CHECK(truncate_to_step(run.fs, kPath, 7)->links.size() == 1);
  CHECK(!read_chain_to(run.fs, kPath, 6).ok());
}

TEST_CASE("truncating keeps the entries of the step and ignores what follows, damaged or not") {
  Run run;
  {
    auto writer = ChainWriter::create(run.fs, kPath, genesis());
    REQUIRE(writer.ok());
    for (int64_t n = 1; n <= 5; ++n) {
      check_ok(writer->append(step(n)));
      if (n == 2) check_ok(writer->append(checkpoint(2)));
      if (n == 2) check_ok(writer->append(AmendEntry{2, "{\"a\":1}"}));
    }
  }
  const std::string whole = run.text();
  for (int64_t n = 0; n <= 5; ++n) {
    run.set_text(whole);
    const Result<Chain> chain = truncate_to_step(run.fs, kPath, n);
    REQUIRE(chain.ok());
    CHECK(chain->last_step() == n);
    CHECK(chain->links.size() == static_cast<size_t>(n <= 1 ? n + 1 : n + 3));
    CHECK(whole.starts_with(run.text()));
    CHECK(read_chain(run.fs, kPath)->head() == chain->head());
    CHECK(static_cast<int64_t>(run.text().size()) == chain->bytes);
  }
  const int64_t kept = read_chain_to(run.fs, kPath, 2)->bytes;
  run.set_text(whole.substr(0, static_cast<size_t>(kept)) + std::string(500, '\0') + "\nx\n");
  CHECK(!read_chain(run.fs, kPath).ok());
  CHECK(truncate_to_step(run.fs, kPath, 2)->bytes == kept);
  CHECK(run.text() == whole.substr(0, static_cast<size_t>(kept)));
  CHECK(truncate_to_step(run.fs, kPath, 3).error().message().find("ends at step 2, but step 3") !=
        std::string::npos);
}

TEST_CASE("entries wait for the name of a checkpoint, so that the order never depends on time") {
  Run run, slow;
  {
    auto writer = ChainWriter::create(run.fs, kPath, genesis());
    check_ok(writer->append(step(1)));
    check_ok(writer->append(checkpoint(1)));
    check_ok(writer->append(step(2)));
    check_ok(writer->append(step(3)));
  }
  auto writer = ChainWriter::create(slow.fs, kPath, genesis());
  check_ok(writer->append(step(1)));
  const std::string before = slow.text();
  writer->expect_checkpoint();
  check_ok(writer->append(step(2)));
  check_ok(writer->append(step(3)));
  CHECK(slow.text() == before);
  CHECK(writer->expects_checkpoint());
  check_ok(writer->append(checkpoint(1)));
  CHECK(!writer->expects_checkpoint());
  CHECK(slow.text() == run.text());
}

TEST_CASE("whatever goes wrong while writing, what was synced is there and the rest can be written again") {
  std::string whole;
  int64_t operations = 0;
  {
    Run run;
    io::FaultyFileSystem faulty(run.fs);
    write_example(faulty);
    whole = run.text();
    operations = faulty.writes();
  }
  REQUIRE(operations > 8);
  for (const io::Fault fault : {io::Fault::kIoError, io::Fault::kShortWrite, io::Fault::kDiskFull,
                                io::Fault::kSyncError, io::Fault::kCrash}) {
    for (int64_t at = 0; at < operations; ++at) {
      Run run;
      io::FaultyFileSystem faulty(run.fs);
      faulty.inject(fault, at);
      Status status;
      int64_t synced = -1;  // the step up to which the chain is durable
      if (auto writer = ChainWriter::create(faulty, kPath, genesis()); writer.ok()) {
        synced = 0;
        status = writer->append(step(1));
        if (status.ok()) status = writer->append(step(2));
        if (status.ok()) status = writer->append(checkpoint(2));
        if (status.ok()) synced = 2;
        if (!status.ok()) CHECK(!writer->append(step(3)).ok());
      }
      if (fault == io::Fault::kCrash) run.fs.crash(static_cast<uint64_t>(at));
      CHECK_MESSAGE((synced == 2 || faulty.triggered()), at);
      if (!*run.fs.exists(kPath)) {
        CHECK(synced == -1);
        continue;
      }
      const Result<Chain> chain = read_chain_to(run.fs, kPath, std::max<int64_t>(synced, 0));
      REQUIRE_MESSAGE(chain.ok(), chain.error().message());
      auto writer = ChainWriter::resume(run.fs, kPath, std::max<int64_t>(synced, 0));
      REQUIRE(writer.ok());
      for (int64_t n = writer->chain().last_step() + 1; n <= 2; ++n) check_ok(writer->append(step(n)));
      if (writer->chain().find_checkpoint(2) == nullptr) check_ok(writer->append(checkpoint(2)));
      CHECK(run.text() == whole);
    }
  }
}

TEST_CASE("a chain whose file was removed, moved or replaced is not called written") {
  const auto error_after = [](const std::function<void(io::MemoryFileSystem&)>& accident) {
    io::MemoryFileSystem fs;
    check_ok(fs.make_dirs("run"));
    auto writer = ChainWriter::create(fs, kPath, genesis());
    REQUIRE(writer.ok());
    check_ok(writer->append(step(1)));
    check_ok(writer->sync());
    accident(fs);
    check_ok(writer->append(step(2)));
    const Status status = writer->sync();
    if (status.ok()) return std::string();
    CHECK(status.error().code() == ErrorCode::kIo);
    CHECK(!writer->append(step(3)).ok());  // nothing goes on behind what is lost
    return status.error().message();
  };
  CHECK(error_after([](io::MemoryFileSystem&) {}) == "");
  const auto copied = [](io::MemoryFileSystem& fs) {
    const std::string text = *fs.content(kPath);
    check_ok(fs.remove(kPath));
    check_ok(io::write_file_atomically(fs, kPath, text));
  };
  const auto longer = [&](io::MemoryFileSystem& fs) {
    copied(fs);
    check_ok((*fs.open_append(kPath))->append(std::string(2000, ' ')));
  };
  for (const auto& [accident, word] :
       std::vector<std::pair<std::function<void(io::MemoryFileSystem&)>, const char*>>{
           {[](io::MemoryFileSystem& fs) { check_ok(fs.remove(kPath)); }, "is gone"},
           {[](io::MemoryFileSystem& fs) { check_ok(fs.rename("run", "elsewhere")); }, "is gone"},
           {copied, "bytes, but"},
           {longer, "bytes, but"}}) {
    const std::string error = error_after(accident);
    CHECK_MESSAGE(error.starts_with(kPath + ": "), error);
    CHECK_MESSAGE(error.find(word) != std::string::npos, error);
    CHECK_MESSAGE(error.find("was removed, moved or replaced while") != std::string::npos, error);
  }
}

// Run by the next case in a process of its own, with a failpoint set.
TEST_CASE("child: three steps into $OSTRO_CHAIN_TEST" * doctest::skip()) {
  const char* path = std::getenv("OSTRO_CHAIN_TEST");
  REQUIRE(path != nullptr);
  auto writer = ChainWriter::create(io::local_file_system(), path, genesis());
  REQUIRE(writer.ok());
  for (int64_t n = 1; n <= 3; ++n) check_ok(writer->append(step(n)));
}

TEST_CASE("a process killed in the middle of a line leaves a torn line") {
  const std::string folder = "/tmp/ostro_chain_test_" + std::to_string(getpid()),
                    path = folder + "/chain.jsonl";
  io::FileSystem& fs = io::local_file_system();
  check_ok(fs.make_dirs(folder));
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    setenv("OSTRO_FAILPOINT", "chain_append:2", 1);
    setenv("OSTRO_CHAIN_TEST", path.c_str(), 1);
    execl("/proc/self/exe", "train_test", "--no-skip", "--test-case=child: three steps*", nullptr);
    _exit(127);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  const Result<Chain> chain = read_chain(fs, path);
  REQUIRE_MESSAGE(chain.ok(), chain.error().message());
  CHECK(chain->last_step() == 1);
  CHECK(chain->torn_bytes > 0);
  auto writer = ChainWriter::resume(fs, path, 1);
  REQUIRE(writer.ok());
  check_ok(writer->append(step(2)));
  CHECK(read_chain(fs, path)->last_step() == 2);
  check_ok(fs.remove_all(folder));
}

}  // namespace
}  // namespace ostro::chain
