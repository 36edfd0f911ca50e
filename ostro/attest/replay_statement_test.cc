#include "ostro/attest/replay_statement.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "ostro/io/files/memory_file_system.h"

namespace ostro::attest {
namespace {

// A key for tests, made by openssl genpkey -algorithm ed25519.
constexpr const char* kKey =
    "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIMBnm0uvfD2k6rzMx/JTuhpCmw8aasx42DKw4HAdcedP\n"
    "-----END PRIVATE KEY-----\n";

audit::Audit whole_audit() {
  audit::Audit audit;
  audit.head = "aa";
  audit.steps = 30;
  audit.replay.emplace();
  audit.replay->equal = true;
  audit.replay->last_step = 30;
  return audit;
}

bundle::SigningKey test_key() {
  io::MemoryFileSystem fs;
  REQUIRE(fs.write_file("key.pem", kKey).ok());
  auto key = bundle::SigningKey::read(fs, "key.pem");
  REQUIRE_MESSAGE(key.ok(), key.error().message());
  return std::move(*key);
}

TEST_CASE("a statement says what was replayed, and by whom") {
  const auto whole = statement_of(whole_audit(), "Ann");
  REQUIRE_MESSAGE(whole.ok(), whole.error().message());
  CHECK(whole->is_whole());
  CHECK(whole->verified() == "all 30 steps replayed");
  CHECK(whole->who() == "Ann (not signed)");
  audit::Audit part = whole_audit();
  part.replay->start_step = 10;
  CHECK_FALSE(statement_of(part, "Ann")->is_whole());
  CHECK(statement_of(part, "Ann")->verified() == "steps 11 to 30 of 1 to 30 replayed");
  part.before = 10;  // a fork that begins there
  CHECK(statement_of(part, "Ann")->is_whole());
  audit::Audit drawn = whole_audit();
  drawn.replay.reset();
  drawn.sample.emplace();
  drawn.sample->challenge = "lottery";
  drawn.sample->plan.drawn = {3, 7};
  CHECK(statement_of(drawn, "Ann")->verified() == "2 of 30 steps replayed, drawn by \"lottery\": 3, 7");
  CHECK_FALSE(statement_of(drawn, "Ann")->is_whole());
  CHECK_FALSE(statement_of(whole_audit(), "").ok());
  audit::Audit none = whole_audit();
  none.replay.reset();
  CHECK_FALSE(statement_of(none, "Ann").ok());
}

TEST_CASE("a statement is read as it was written, and every changed byte of a signed one is found") {
  const bundle::SigningKey key = test_key();
  for (const bundle::SigningKey* with : {static_cast<const bundle::SigningKey*>(nullptr), &key}) {
    const std::string text = statement_text(*statement_of(whole_audit(), "Ann"), with);
    const auto read = read_statement(text, "s.json");
    REQUIRE_MESSAGE(read.ok(), read.error().message());
    CHECK(read->run_hash == "aa");
    CHECK(read->is_whole());
    CHECK(read->public_key.empty() == (with == nullptr));
  }
  const std::string text = statement_text(*statement_of(whole_audit(), "Ann"), &key);
  CHECK(read_statement(text, "s")->who().starts_with("Ann (key "));
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    std::string other = text;
    other[i] = other[i] == 'q' ? 'r' : 'q';
    INFO(i);
    CHECK_FALSE(read_statement(other, "s").ok());
  }
}

TEST_CASE("what is no statement is refused with its name") {
  auto json = nlohmann::json::parse(statement_text(*statement_of(whole_audit(), "Ann"), nullptr));
  const auto refused = [&](const char* key, const nlohmann::json& value) {
    auto other = json;
    other[key] = value;
    const auto read = read_statement(other.dump() + "\n", "s.json");
    return !read.ok() && read.error().message().starts_with("s.json: ");
  };
  CHECK(read_statement(json.dump() + "\n", "s.json").ok());
  CHECK(refused("to", 31));
  CHECK(refused("from", 0));
  CHECK(refused("first", "1"));
  CHECK(refused("steps", {1, 2}));
  CHECK(refused("by", ""));
  CHECK(refused("format", 2));
  CHECK(refused("kind", "claim"));
  CHECK(refused("more", 1));
  CHECK(refused("public_key", "x"));
  // The same values in another form would be another statement for those that compare texts.
  const std::string text = json.dump();
  for (const std::string& other : {text, text + "\n\n", " " + text + "\n", json.dump(1) + "\n",
                                   text.substr(0, 1) + "\"by\":\"x\"," + text.substr(1) + "\n"})
    CHECK_MESSAGE(!read_statement(other, "s.json").ok(), other);
  CHECK_FALSE(read_statement("", "s.json").ok());
  CHECK_FALSE(read_statement("[]", "s.json").ok());
}

TEST_CASE("a statement is about a chain only with its hash and its steps") {
  chain::Chain chain;
  chain.links.push_back({chain::GenesisEntry(), "g"});
  chain::StepEntry step;
  step.step = 30;
  chain.links.push_back({step, "aa"});
  REQUIRE(chain.last_step() == 30);
  const ReplayStatement whole = *statement_of(whole_audit(), "Ann");
  CHECK(check_is_of(whole, chain, "s").ok());
  ReplayStatement other = whole;
  other.run_hash = "bb";
  CHECK_FALSE(check_is_of(other, chain, "s").ok());
  other = whole;
  other.first = other.last = other.from = other.to = 1;  // "all steps"
  const Status refused = check_is_of(other, chain, "s.json");
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message() ==
        "s.json: speaks of a run of the steps 1 to 1, and the chain of aa has 1 to 30");
}

}  // namespace
}  // namespace ostro::attest
