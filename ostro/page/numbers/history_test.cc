#include "ostro/page/numbers/history.h"

#include <doctest/doctest.h>

#include "ostro/base/sha256.h"
#include "ostro/io/files/memory_file_system.h"

namespace ostro::page {
namespace {

chain::Chain chain_of(int64_t steps) {
  const std::string hash = sha256_hex(std::string_view("x"));
  chain::Chain chain;
  chain.links.push_back({chain::GenesisEntry{"1", hash, "{}", hash, hash, {}}, hash});
  for (int64_t step = 1; step <= steps; ++step)
    chain.links.push_back({chain::StepEntry{step, 0.5 * static_cast<double>(step), 64, "", "", ""}, hash});
  return chain;
}

void write_history(io::MemoryFileSystem& fs, const std::string& path, const std::string& text) {
  auto file = fs.open_append(path);
  REQUIRE(file.ok());
  check_ok((*file)->append(text));
  check_ok((*file)->close());
}

TEST_CASE("losses are the chain's, everything else is metrics.jsonl's") {
  io::MemoryFileSystem fs;
  check_ok(fs.make_dirs("run"));
  write_history(fs, "run/metrics.jsonl",
                R"({"step":1,"time":1.5,"train/loss":99.0,"train/grad_norm":2}
{"step":2,"time":2.5,"train/loss":99.0,"train/grad_norm":null,"note":"x"}
{"eval/loss":3.25,"step":2}
{"eval/loss":7,"step":3}
{"eval/loss":7,"step":-9223372036854775808}
[1]
{"step":1,"tr)");
  const Result<History> read = read_history(fs, "run", chain_of(2), 100);
  REQUIRE_MESSAGE(read.ok(), read.error().message());
  const History& history = *read;
  CHECK(history.first_step == 1);
  CHECK(history.last_step == 2);
  CHECK(history.tokens == 128);
  CHECK(history.metrics.size() == 3);
  CHECK(history.metrics.at("train/loss").last().value == 1.0);
  CHECK(history.metrics.at("train/grad_norm").values() == 1);
  CHECK(history.metrics.at("train/grad_norm").not_finite() == 1);
  CHECK(history.metrics.at("eval/loss").values() == 1);  // the other steps are not in the chain
  CHECK(history.unreadable == 2);

  const auto names = [&](const char* wanted) { return *find_metrics(history, wanted); };
  CHECK(names("loss") == std::vector<std::string>{"train/loss", "eval/loss"});
  CHECK(names("train/loss") == std::vector<std::string>{"train/loss"});
  CHECK(names("grad_norm") == std::vector<std::string>{"train/grad_norm"});
  const auto none = find_metrics(history, "los");
  REQUIRE(!none.ok());
  CHECK(none.error().code() == ErrorCode::kInvalidArgument);
  CHECK(none.error().message().find("eval/loss, train/grad_norm, train/loss") != std::string::npos);
}

TEST_CASE("a name that is too long for a page is left out") {
  io::MemoryFileSystem fs;
  check_ok(fs.make_dirs("run"));
  const std::string longest(200, 'n');
  write_history(fs, "run/metrics.jsonl",
                R"({"step":1,")" + longest + R"(":1,")" + longest + R"(n":1})" + "\n");
  const Result<History> read = read_history(fs, "run", chain_of(1), 100);
  REQUIRE(read.ok());
  CHECK(read->metrics.contains(longest));
  CHECK(read->metrics.size() == 2);  // and the loss
}

TEST_CASE("a run without metrics.jsonl, and one without steps") {
  io::MemoryFileSystem fs;
  check_ok(fs.make_dirs("run"));
  CHECK(!read_history(fs, "run", chain_of(1), 100)->has_metrics);
  CHECK(read_history(fs, "run", chain_of(1), 100)->metrics.size() == 1);
  CHECK(read_history(fs, "run", chain_of(0), 100)->metrics.empty());
}

}  // namespace
}  // namespace ostro::page
