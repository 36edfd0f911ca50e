// What a genesis says of the model that its run began with, against itself and against the maker's state.
#include "ostro/audit/record/maker.h"

#include <doctest/doctest.h>

#include <map>

#include "ostro/audit/record/fork.h"
#include "ostro/base/sha256.h"
#include "ostro/chain/chain_writer.h"
#include "ostro/chain/leaves.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/checkpoint/save.h"
#include "ostro/io/files/memory_file_system.h"

namespace ostro::audit {
namespace {

const std::string kA(64, 'a'), kB(64, 'b'), kC(64, 'c');

chain::GenesisEntry made_genesis() {
  const std::string hash = sha256_hex(std::string_view("x"));
  chain::GenesisEntry out{"1", hash, "{}", hash, hash, std::nullopt};
  out.data_roots = {{"", hash}};
  return out;
}

std::string origin_from(const std::string& head, const std::string& state) {
  return R"({"files":{},"format":"hf","state":")" + kC + R"(","from":{"step":1,"head":")" + head +
         R"(","state":")" + state + R"("}})";
}

std::string refusal(const chain::GenesisEntry& genesis) {
  const Status status = check_claims(genesis, "chain.jsonl");
  if (status.ok()) return "";
  CHECK(status.error().code() == ErrorCode::kCorrupt);
  return status.error().message();
}

TEST_CASE(
    "a genesis names a maker only of parameters that it began with, and of those that it was imported from") {
  const chain::Maker maker{kA, kB};
  chain::GenesisEntry genesis = made_genesis();
  CHECK(refusal(genesis).empty());
  genesis.maker = maker;
  CHECK(refusal(genesis).find("a maker and no initial state") != std::string::npos);
  genesis.initial = kC;
  CHECK(refusal(genesis).empty());
  genesis.fork = chain::Fork{kA, 1};
  CHECK(refusal(genesis).find("a fork and a maker") != std::string::npos);
  genesis.fork.reset();
  genesis.origin = origin_from(kA, kB);
  CHECK(refusal(genesis).empty());
  for (const std::string& other :
       {origin_from(kB, kB), origin_from(kA, kA), R"({"files":{},"format":"hf","state":")" + kC + "\"}",
        R"({"files":{},"from":{"step":1,"state":")" + kB + "\"}}"}) {
    genesis.origin = other;
    CHECK_MESSAGE(refusal(genesis).find("contradicts itself") != std::string::npos, other);
  }
  genesis.maker.reset();
  CHECK(refusal(genesis).empty());
  genesis.initial.reset();
  CHECK(refusal(genesis).find("an origin and no initial") != std::string::npos);
}

// Parameters and their means by path; all arrays are f32[mlp:2].
using Arrays = std::map<std::string, std::vector<float>>;

// A run directory "run" whose maker has one step and then a state.
struct MadeWorld {
  io::MemoryFileSystem fs;
  chain::GenesisEntry genesis = made_genesis();

  checkpoint::Manifest save(const std::string& root, int64_t step, const Arrays& arrays) {
    std::vector<checkpoint::Tensor> tensors;
    for (const auto& [path, values] : arrays)
      tensors.push_back({{path, "f32", {"mlp"}, {2}, {}}, std::as_bytes(std::span(values)), nullptr});
    check_ok(fs.make_dirs(root));
    const auto saved =
        checkpoint::save(fs, root, {step, checkpoint::Kind::kPermanent, "1", "", "", ""}, tensors);
    REQUIRE_MESSAGE(saved.ok(), saved.error().message());
    return checkpoint::read_manifest(fs, saved->path).value();
  }

  explicit MadeWorld(const Arrays& published) {
    const checkpoint::Manifest state = save("record/checkpoints", 1, published);
    check_ok(fs.make_dirs("run/maker"));
    auto writer = chain::ChainWriter::create(fs, "run/maker/chain.jsonl", made_genesis());
    REQUIRE(writer.ok());
    check_ok(writer->append(
        chain::StepEntry{1, 4.0, 64, "ab", "cd", chain::leaves_root(std::vector<chain::LeafRecord>{})}));
    genesis.maker = chain::Maker{writer->head(), state.name};
    check_ok(writer->append(chain::CheckpointEntry{1, state.name}));
    check_ok(copy_maker_manifest(fs, "record", *genesis.maker, 1, "run"));
  }

  // Empty: the parameters are those of the maker.
  std::string compared(const Arrays& began) {
    (void)fs.remove_all("run/initial");
    const checkpoint::Manifest initial = save("run/initial", 0, began);
    genesis.initial = initial.name;
    const auto made = check_made(fs, "run", genesis, initial);
    if (made.ok()) return *made;
    CHECK(made.error().code() == ErrorCode::kCorrupt);
    return "differs: " + made.error().message();
  }
};

TEST_CASE("the parameters that a run began with are compared with the manifest of the maker's state") {
  MadeWorld world({{"model/up", {1, 2}}, {"model/down", {3, 4}}, {"optimizer/first/up", {5, 6}}});
  CHECK(world.compared({{"model/up", {1, 2}}, {"model/down", {3, 4}}, {"optimizer/first/up", {0, 0}}}) == "");
  const auto differs = [&](const Arrays& began, const std::string& what) {
    const std::string text = world.compared(began);
    CHECK_MESSAGE(text.starts_with("differs: the run did not begin with the published state "), text);
    CHECK_MESSAGE(text.find(what) != std::string::npos, text);
  };
  differs({{"model/up", {1, 2}}, {"model/down", {3, 5}}}, "model/down has other numbers");
  differs({{"model/up", {1, 2}}}, "has model/down, initial/ has no such parameter");
  differs({{"model/up", {1, 2}}, {"model/down", {3, 4}}, {"model/more", {0, 0}}}, "has no model/more");
  // An import may have rounded, so this shows nothing.
  world.genesis.origin = origin_from(world.genesis.maker->head, world.genesis.maker->state);
  CHECK(world.compared({{"model/up", {1, 2}}, {"model/down", {3, 4}}}) == "");
  CHECK(world.compared({{"model/up", {1, 2}}, {"model/down", {3, 5}}}).find("an export may round") !=
        std::string::npos);
  check_ok(world.fs.remove_all("run/maker/checkpoints"));
  CHECK(world.compared({{"model/up", {1, 2}}}).find("the manifest of that state is not in run/maker") == 0);
  check_ok(world.fs.remove_all("run/maker"));
  CHECK(world.compared({{"model/up", {1, 2}}}) == "run/maker/chain.jsonl is not there");
}

TEST_CASE("where a state has means of the weights, a run begins with these") {
  MadeWorld world({{"model/up", {1, 2}}, {"optimizer/average/up", {7, 8}}});
  CHECK(world.compared({{"model/up", {7, 8}}}) == "");
  CHECK(world.compared({{"model/up", {1, 2}}}).find("other numbers") != std::string::npos);
}

TEST_CASE("a manifest of another state than the maker's is not copied, and none is believed") {
  MadeWorld world({{"model/up", {1, 2}}});
  (void)world.fs.remove_all("record");
  world.save("record/checkpoints", 1, {{"model/up", {1, 3}}});
  CHECK(!copy_maker_manifest(world.fs, "record", *world.genesis.maker, 1, "run").ok());
  (void)world.fs.remove_all("run/maker/checkpoints");
  world.save("run/maker/checkpoints", 1, {{"model/up", {1, 3}}});
  CHECK(world.compared({{"model/up", {1, 3}}}).find("but the run began with the published state") !=
        std::string::npos);
  check_ok(world.fs.remove_all("record"));
  check_ok(copy_maker_manifest(world.fs, "record", *world.genesis.maker, 1, "run"));
}

TEST_CASE("a bundle is found from its directory, its record and what lies in that") {
  io::MemoryFileSystem fs;
  check_ok(fs.make_dirs("/b/record/checkpoints"));
  check_ok(fs.make_dirs("/b/other"));
  const auto found = [&](const std::string& from) { return bundle_of(fs, from).value().value_or("none"); };
  CHECK(found("/b/record") == "none");
  const auto file = fs.create("/b/bundle.json");
  REQUIRE(file.ok());
  check_ok((*file)->close());
  for (const char* inside : {"/b", "/b/", "/b/record", "/b/record/checkpoints/step-00000001"})
    CHECK_MESSAGE(found(inside) == "/b", inside);
  for (const char* outside : {"/", "/b/other", "/b/records", "/c"})
    CHECK_MESSAGE(found(outside) == "none", outside);
}

}  // namespace
}  // namespace ostro::audit
