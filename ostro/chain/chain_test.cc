#include "ostro/chain/chain.h"

#include <doctest/doctest.h>
#include <algorithm>

#include "ostro/chain/example_chain_for_test.h"

namespace ostro::chain {
namespace {

TEST_CASE("the writer gives the documented example, the reader reads it, Python gave its hashes") {
  ExampleRun run;
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
  ExampleRun run;
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
  ExampleRun run;
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
  ExampleRun run;
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

TEST_CASE("right hashes do not excuse wrong content") {
  ExampleRun run;
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
  // The beginning is drawn, or the genesis names it.
  CHECK(message({first, *entry_json(checkpoint(0)), one}) ==
        kPath + ": line 2: a checkpoint entry after step 0, before any step of this run");
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

TEST_CASE("a step in another text than the one it has is refused, though its hash fits that text") {
  ExampleRun run;
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

}  // namespace
}  // namespace ostro::chain
