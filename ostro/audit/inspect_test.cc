#include "ostro/audit/inspect.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "ostro/audit/audit_run.h"
#include "ostro/audit/bare_model.h"
#include "ostro/audit/record/amend.h"
#include "ostro/base/sha256.h"
#include "ostro/chain/chain_writer.h"
#include "ostro/chain/leaves.h"
#include "ostro/chain/record.h"
#include "ostro/checkpoint/save.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/train/options/mixed_run_for_test.h"

namespace ostro::audit {
namespace {

using Json = nlohmann::json;

// A run of two steps with a checkpoint of two tensors.
struct Run {
  Run() {
    check_ok(fs.make_dirs("runs/a/checkpoints"));
    const train::TrainConfig config = train::mixed_config({{"trainer.seed", "3"}});
    const std::string hash = sha256_hex(std::string_view("x"));
    auto writer = chain::ChainWriter::create(
        fs, "runs/a/chain.jsonl", {"1", hash, train::canonical_text(config), hash, hash, std::nullopt});
    REQUIRE(writer.ok());
    for (int64_t n = 1; n <= 2; ++n)
      check_ok(writer->append(chain::StepEntry{n, 4.0 / static_cast<double>(n), 64, "ab", "cd",
                                               chain::leaves_root(std::vector<chain::LeafRecord>{})}));
    const std::vector<float> weights(6, 0.5F), moments(6, 0.0F);
    const std::vector<checkpoint::Tensor> tensors = {
        {{"model/up/weight", "f32", {"embed", "mlp"}, {2, 3}, {}},
         std::as_bytes(std::span(weights)),
         nullptr},
        {{"optimizer/m/up/weight", "f32", {"embed", "mlp"}, {2, 3}, {}},
         std::as_bytes(std::span(moments)),
         nullptr}};
    const auto saved = checkpoint::save(
        fs, "runs/a/checkpoints",
        {2, checkpoint::Kind::kPermanent, "1", config::resolved_yaml(config), writer->head(), ""}, tensors);
    REQUIRE_MESSAGE(saved.ok(), saved.error().message());
    check_ok(writer->append(chain::CheckpointEntry{2, saved->name}));
    name = saved->name;
    path = saved->path;
    head = writer->head();
    links = writer->chain().links;
    chain::RunRecord record;
    record.sessions.push_back(chain::begin_session({"ostro", "train"}, 0));
    chain::end_session(record, "finished", 2);
    check_ok(chain::write_record(fs, "runs/a/run.json", record));
  }
  io::MemoryFileSystem fs;
  std::string name, path, head;
  std::vector<chain::ChainLink> links;
};

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_CASE("a run is shown with its chain, checkpoints and sessions") {
  Run run;
  CHECK(*run_hash(run.fs, "runs/a") == run.head);
  const Json json = Json::parse(inspect(run.fs, "runs/a", {.json = true})->text);
  CHECK(json["kind"] == "run");
  CHECK(inspect(run.fs, "runs/a", {})->sound);
  CHECK(json["run_hash"] == run.head);
  CHECK(json["step"] == 2);
  CHECK(json["chain"]["entries"] == 4);
  CHECK(json["chain"]["config"]["trainer"]["seed"] == 3);
  CHECK(json["losses"] == Json::parse(R"([{"step":1,"loss":4.0},{"step":2,"loss":2.0}])"));
  REQUIRE(json["checkpoints"].size() == 1);
  CHECK(json["checkpoints"][0]["name"] == run.name);
  CHECK(json["record"]["sessions"][0]["outcome"] == "finished");
  const std::string text = inspect(run.fs, "runs/a", {})->text;
  for (const std::string& part : {run.head, run.name, std::string("4 entries, 2 steps done"),
                                  std::string("4.0000 at step 1"), std::string("steps 0 to 2")})
    CHECK_MESSAGE(holds(text, part), text);
}

TEST_CASE("what a genesis may have is shown where it is not empty") {
  Run run;
  const char* const rare[] = {"options", "data root", "fork of", "model of"};
  const std::string plain = inspect(run.fs, "runs/a", {})->text;
  for (const char* name : rare) CHECK_MESSAGE(!holds(plain, fmt::format("\n{:<12}", name)), name);
  chain::GenesisEntry genesis = std::get<chain::GenesisEntry>(run.links[0].entry);
  genesis.numerics_options = R"({"block":256})";
  genesis.data_roots = {{"code", std::string(64, '1')}};
  genesis.fork = chain::Fork{std::string(64, '2'), 7};
  genesis.maker = chain::Maker{std::string(64, '3'), std::string(64, '4')};
  check_ok(run.fs.remove_all("runs/a/checkpoints"));
  check_ok(run.fs.make_dirs("runs/a/checkpoints"));
  check_ok(run.fs.remove("runs/a/chain.jsonl"));
  REQUIRE(chain::ChainWriter::create(run.fs, "runs/a/chain.jsonl", genesis).ok());
  const std::string text = inspect(run.fs, "runs/a", {})->text;
  for (const std::string& part :
       {std::string("options     {\"block\":256}\n"), "data root   " + std::string(64, '1') + "  code\n",
        "fork of     " + std::string(64, '2') + " at step 7, as its genesis says\n",
        "model of    " + std::string(64, '3') + ", state " + std::string(64, '4') +
            ", as its genesis says\n"})
    CHECK_MESSAGE(holds(text, part), text);
  const Json links = Json::parse(inspect(run.fs, "runs/a", {.json = true})->text)["chain"];
  CHECK(links["format"] == 2);
  CHECK(links["numerics_options"] == Json{{"block", 256}});
  CHECK(links["data_roots"] == Json{{"code", std::string(64, '1')}});
  CHECK(links["maker"] == Json{{"head", std::string(64, '3')}, {"state", std::string(64, '4')}});
}

TEST_CASE("a checkpoint is shown with its tree") {
  Run run;
  const Json json = Json::parse(inspect(run.fs, run.path, {.json = true})->text);
  CHECK(json["kind"] == "checkpoint");
  CHECK(json["step"] == 2);
  CHECK(json["name"] == run.name);
  CHECK(json["elements"] == Json::parse(R"({"model":6,"optimizer":6})"));
  REQUIRE(json["tensors"].size() == 2);
  CHECK(json["tensors"][0]["path"] == "model/up/weight");
  CHECK(json["tensors"][0]["axes"] == Json::parse(R"(["embed","mlp"])"));
  CHECK(json["tensors"][0]["shape"] == Json::parse("[2,3]"));
  CHECK(json["tensors"][0]["sha256"] != json["tensors"][1]["sha256"]);
  const std::string text = inspect(run.fs, run.path, {})->text;
  for (const std::string& part : {run.name, std::string("model/up/weight        f32[embed:2, mlp:3]"),
                                  std::string("6 elements in model"), std::string("2, 48 bytes")})
    CHECK_MESSAGE(holds(text, part), text);
}

TEST_CASE(
    "a checkpoint that is not what the chain says is named, and refused unless it is asked for unchecked") {
  Run run;
  const std::string chain = *run.fs.content("runs/a/chain.jsonl");
  // The same chain with another name for the same step.
  check_ok(run.fs.remove("runs/a/chain.jsonl"));
  {
    auto writer = chain::ChainWriter::create(run.fs, "runs/a/chain.jsonl",
                                             std::get<chain::GenesisEntry>(run.links[0].entry));
    REQUIRE(writer.ok());
    check_ok(writer->append(std::get<chain::StepEntry>(run.links[1].entry)));
    check_ok(writer->append(std::get<chain::StepEntry>(run.links[2].entry)));
    check_ok(writer->append(chain::CheckpointEntry{2, std::string(64, '0')}));
  }
  const std::string text = inspect(run.fs, "runs/a", {})->text;
  CHECK_MESSAGE(holds(text, "step-00000002  forged: " + run.path), text);
  CHECK(!inspect(run.fs, "runs/a", {})->sound);
  const auto refused = inspect(run.fs, run.path, {});
  REQUIRE(!refused.ok());
  CHECK_MESSAGE(holds(refused.error().message(), run.name + ", runs/a/chain.jsonl has 0000"),
                refused.error().message());
  CHECK(holds(refused.error().message(), "--unchecked"));
  CHECK(inspect(run.fs, run.path, {.unchecked = true}).ok());
  *run.fs.content("runs/a/chain.jsonl") = chain;
  CHECK(inspect(run.fs, run.path, {}).ok());
}

TEST_CASE("what is damaged is said, what is neither is refused") {
  Run run;
  *run.fs.content(run.path + "/manifest.json") += "x";
  CHECK(holds(inspect(run.fs, "runs/a", {})->text, "damaged: "));
  CHECK(Json::parse(inspect(run.fs, "runs/a", {.json = true})->text)["checkpoints"][0].contains("error"));
  CHECK(inspect(run.fs, run.path, {}).error().code() == ErrorCode::kCorrupt);
  (*run.fs.content("runs/a/run.json"))[20] ^= 1;
  CHECK(holds(inspect(run.fs, "runs/a", {})->text, "record      damaged: "));
  CHECK(!inspect(run.fs, "runs/a", {})->sound);
  (*run.fs.content("runs/a/chain.jsonl"))[20] ^= 1;
  CHECK(inspect(run.fs, "runs/a", {}).error().code() == ErrorCode::kCorrupt);
  CHECK(run_hash(run.fs, "runs/a").error().code() == ErrorCode::kCorrupt);
  for (const char* none : {"runs", "runs/b"}) {
    CHECK(inspect(run.fs, none, {}).error().code() == ErrorCode::kNotFound);
    CHECK(holds(run_hash(run.fs, none).error().message(), "is not a run directory"));
  }
}

TEST_CASE("a model without its record is called one, with what can be done") {
  Run run;
  check_ok(run.fs.make_dirs("model"));
  check_ok(io::write_file_atomically(run.fs, "model/config.json", "{}"));
  const auto engine = [] { return Result<std::unique_ptr<runtime::Engine>>(io_error("not needed")); };
  const auto audit = audit_run(run.fs, engine, "model", {}, models::builtin_models());
  REQUIRE(audit.ok());
  CHECK(audit->verdict() == Verdict::kCannotCheck);
  for (const std::string& text : {audit->findings.at(0).text, inspect(run.fs, "model", {}).error().message(),
                                  run_hash(run.fs, "model").error().message()})
    CHECK_MESSAGE(
        text.starts_with("model is a model without a record. With the directory of its run: ostro export"),
        text);
  CHECK(no_run(run.fs, "runs", not_found("no run")).message() == "no run");
}

}  // namespace
}  // namespace ostro::audit
