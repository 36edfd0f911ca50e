#include "ostro/chain/config_file.h"

#include <doctest/doctest.h>

#include "ostro/chain/chain_writer.h"
#include "ostro/chain/example_chain_for_test.h"
#include "ostro/io/files/memory_file_system.h"

namespace ostro::chain {
namespace {

TEST_CASE("the configuration of an amend is in force from the amend's entry on, and only for its entry") {
  io::MemoryFileSystem fs;
  check_ok(fs.make_dirs("run"));
  auto chain = ChainWriter::create(fs, "run/chain.jsonl", genesis());
  REQUIRE_MESSAGE(chain.ok(), chain.error().message());
  check_ok(chain->append(step(1)));
  check_ok(chain->sync());
  const AmendEntry amend{1, R"({"optimizer.learning_rate":{"from":1,"to":2}})"};
  check_ok(fs.write_file("run/config.yaml", "old: 1\n"));
  CHECK(config_file(fs, "run") == "run/config.yaml");
  const std::string text = amended_config_text(amend, "new: 2\n");
  CHECK(text.ends_with("new: 2\n"));
  check_ok(fs.write_file("run/config.amended.yaml", text));
  CHECK(config_file(fs, "run") == "run/config.yaml");  // the chain was not amended
  check_ok(settle_config(fs, "run"));
  CHECK(fs.read_file("run/config.yaml").value() == "old: 1\n");
  check_ok(chain->append(amend));
  check_ok(chain->sync());
  CHECK(config_file(fs, "run") == "run/config.amended.yaml");
  CHECK(config_in_force(fs, "run/config.yaml") == "run/config.amended.yaml");
  CHECK(config_in_force(fs, "run/other.yaml") == "run/other.yaml");
  CHECK(config_in_force(fs, "none/config.yaml") == "none/config.yaml");
  CHECK(config_in_force(fs, "") == "");

  // Before its place is needed again, config.yaml gets its content.
  check_ok(settle_config(fs, "run"));
  CHECK(fs.read_file("run/config.yaml").value() == "new: 2\n");
  check_ok(fs.write_file("run/config.yaml", "old: 1\n"));

  // What another amend wrote, also one with the same difference at another step.
  check_ok(fs.write_file("run/config.amended.yaml", amended_config_text({2, amend.difference}, "new: 2\n")));
  CHECK(config_file(fs, "run") == "run/config.yaml");
  check_ok(fs.write_file("run/config.amended.yaml", amended_config_text({1, "{}"}, "new: 2\n")));
  CHECK(config_file(fs, "run") == "run/config.yaml");
  check_ok(fs.write_file("run/config.amended.yaml", text));
  check_ok(chain->append(AmendEntry{1, R"({"optimizer.learning_rate":{"from":2,"to":1}})"}));
  check_ok(chain->sync());
  CHECK(config_file(fs, "run") == "run/config.yaml");  // it is of an earlier amend
  fs.content("run/chain.jsonl")->at(5) ^= 1;
  CHECK(config_file(fs, "run") == "run/config.yaml");
}

}  // namespace
}  // namespace ostro::chain
