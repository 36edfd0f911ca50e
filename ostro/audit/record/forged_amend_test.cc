// Chains whose amends were forged, with every hash made good again: verify finds what an entry says wrongly.
#include "ostro/audit/record/amend.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "ostro/audit/record/amended_run_for_test.h"
#include "ostro/chain/canonical.h"

namespace ostro::audit {
namespace {

using namespace amend_for_test;

using Json = nlohmann::json;

// The chain with `change` made to its entries and every hash made good again.
void forge_links(io::MemoryFileSystem& fs,
                 const std::function<void(std::vector<chain::ChainLink>&)>& change) {
  chain::Chain chain = chain_of(fs);
  change(chain.links);
  std::string text, head;
  for (const chain::ChainLink& link : chain.links) {
    const std::string json = *chain::entry_json(link.entry);
    head = chain::entry_hash(head, json);
    text += chain::chain_line(json, head) + "\n";
  }
  *fs.content("runs/run/chain.jsonl") = text;
}

void forge(io::MemoryFileSystem& fs, const std::function<void(chain::AmendEntry&)>& change) {
  forge_links(fs, [&](std::vector<chain::ChainLink>& links) {
    for (chain::ChainLink& link : links)
      if (auto* amend = std::get_if<chain::AmendEntry>(&link.entry)) change(*amend);
  });
}

TEST_CASE("a forged difference is found") {
  const auto engine = plain_engine();
  const auto fs = begun(*engine);
  must_go(*fs, *engine, train::mixed_config(kAmended), true, 5);
  const std::string good = *fs->read_file("runs/run/chain.jsonl");
  const auto found = [&](const std::string& key, const Json& value, const std::string& what) {
    forge(*fs, [&](chain::AmendEntry& amend) {
      Json difference = Json::parse(amend.difference);
      if (value.is_null())
        difference.erase(key);
      else
        difference[key] = value;
      amend.difference = difference.dump();
    });
    const std::string said = verified(*fs, *engine);
    CHECK_MESSAGE(said.find(what) != std::string::npos, said);
    *fs->content("runs/run/chain.jsonl") = good;
  };
  forge(*fs, [](chain::AmendEntry&) {});
  CHECK(*fs->read_file("runs/run/chain.jsonl") == good);
  CHECK(verified(*fs, *engine) == "equal");

  const std::string was = chain::hex_float(6e-4), is = chain::hex_float(0.002), three = chain::hex_float(3);
  const auto change = [](const Json& from, const Json& to) { return Json{{"from", from}, {"to", to}}; };
  found("optimizer.learning_rate", change(three, is),
        "\"optimizer.learning_rate\" is changed from \"0x1.8p+1\"");
  found("optimizer.learning_rate", change(was, was), "\"optimizer.learning_rate\" changes nothing");
  found("optimizer.learning_rate", Json{{"to", is}}, "is changed from absent, but was");
  found("optimizer.learning_rate", change(was, three), "config.yaml is not the config of the chain");
  found("optimizer.learning_rate", Json(), "config.yaml is not the config of the chain");
  for (const char* path :
       {"optimizer.nothing", "nothing.at_all", "trainer.checkpointer.keep.", "data.cache_dir", ".", "",
        "trainer.checkpointer.keep.99999999999999999999", "trainer.checkpointer.keep.0",
        "data.components.web", "data.components.<name>.train_urls"})
    found(path, Json{{"to", 1}},
          fmt::format("line 8: the amend after step 4: \"{}\" is no option of the canonical config", path));
  const Json genesis = Json::parse(chain_of(*fs).genesis().config);
  found("optimizer", change(genesis["optimizer"], genesis["optimizer"]), "\"optimizer\" changes nothing");
  found("numerics", change(genesis["numerics"], Json::object()), "\"numerics\" is no option");
  // Members that another one undoes.
  forge(*fs, [&](chain::AmendEntry& amend) {
    Json difference = Json::parse(amend.difference), other = genesis["data"]["shuffle"];
    other["io_block_size"] = 4;
    difference["data.shuffle"] = change(genesis["data"]["shuffle"], other);
    difference["data.shuffle.io_block_size"] = change(4, 3);
    amend.difference = difference.dump();
  });
  const auto says = [&](const std::string& what) {
    const std::string said = verified(*fs, *engine);
    CHECK_MESSAGE(said.find(what) != std::string::npos, said);
    *fs->content("runs/run/chain.jsonl") = good;
  };
  says("line 8: the amend after step 4: what it leads to is said otherwise: {");
  // The order of entries.
  using Links = std::vector<chain::ChainLink>;
  const auto is_amend = [](const chain::ChainLink& link) {
    return std::holds_alternative<chain::AmendEntry>(link.entry);
  };
  forge_links(*fs, [&](Links& links) {
    const auto amend = std::find_if(links.begin(), links.end(), is_amend);
    std::iter_swap(amend, amend - 1);
  });
  says("line 8: the checkpoint entry of step 4 behind an amend of it");
  forge_links(*fs, [&](Links& links) {
    auto& beginning = std::get<chain::GenesisEntry>(links[0].entry);
    Json config = genesis;
    config["chain"]["leaf_gradients"] = true;
    beginning.config = config.dump();
    const Json to = change(true, genesis["chain"]["leaf_gradients"]);
    links.insert(links.begin() + 1, {chain::AmendEntry{0, Json{{"chain.leaf_gradients", to}}.dump()}, ""});
  });
  says("line 2: an amend after step 0, before any step of this run");
  // Products of integers in a run of others.
  forge_links(*fs, [&](Links& links) {
    std::get<chain::GenesisEntry>(links[0].entry).numerics_options = chain::kIntegerProducts;
  });
  says(R"(numerics_options are {"block":256,"products":"int8"}, but a run with trainer.mp)");
  // Steps beyond a length that held.
  forge_links(*fs, [&](Links& links) {
    Json config = genesis;
    config["trainer"]["num_train_steps"] = 3;
    std::get<chain::GenesisEntry>(links[0].entry).config = config.dump();
    auto& amend = std::get<chain::AmendEntry>(std::find_if(links.begin(), links.end(), is_amend)->entry);
    Json difference = Json::parse(amend.difference);
    difference["trainer.num_train_steps"]["from"] = 3;
    amend.difference = difference.dump();
  });
  says("the genesis: trainer.num_train_steps is 3, but 4 steps are done");
  found("program", Json(), "the configuration after step 4 gives other programs than the chain names");
  // Even when config.yaml goes along.
  const auto forged_config = [&](const config::Override& with, const std::string& key, const Json& value,
                                 const std::string& what) {
    const std::string yaml = *fs->read_file("runs/run/config.yaml");
    auto tree = config::parse_yaml(yaml, "config.yaml");
    REQUIRE(tree.ok());
    check_ok(config::apply_override(with, &*tree));
    *fs->content("runs/run/config.yaml") = config::block_text(*tree);
    found(key, value, what);
    *fs->content("runs/run/config.yaml") = yaml;
  };
  forged_config({"optimizer.learning_rate", "3.0"}, "optimizer.learning_rate", change(was, three),
                "step 5 differs");
  forged_config({"trainer.seed", "1"}, "trainer.seed", change(0, 1),
                "no amend can change: trainer.seed is 0 there");
  const Json weights = Json::parse(train::canonical_text(train::mixed_config({})))["data"]["train_weights"];
  forged_config({"data.train_weights", "{web: 0.5, code: 0.5}"}, "data.train_weights",
                change(weights, Json{{"web", chain::hex_float(0.5)}, {"code", chain::hex_float(0.5)}}),
                "stages before step 4 are others: data.train_weights");
}

// Every option of the canonical config, by what its declaration says: refused with its reason, or amended,
// verified across the amend and by every later step.

}  // namespace
}  // namespace ostro::audit
