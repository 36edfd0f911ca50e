// Runs of which only a part of the model is trained: adapters, frozen parameters, and runs that begin with
// the parameters of another one. Their chains are the same on threads, workers and after a stop, and verify
// replays them.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include <functional>

#include "ostro/audit/verify.h"
#include "ostro/chain/chain.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/checkpoint/restore.h"
#include "ostro/cpu/engine/engine.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/run/loop/run.h"
#include "ostro/train/options/mixed_run_for_test.h"

namespace ostro::audit {
namespace {

const train::Settings kLora = {
    {"adapter.type", "lora"}, {"adapter.rank", "2"}, {"adapter.target_modules", "[q_proj, up_proj]"}};

train::Settings operator+(train::Settings a, const train::Settings& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

train::Settings named(const std::string& id) { return {{"trainer.id", id}}; }

struct Machine {
  io::MemoryFileSystem fs;
  std::unique_ptr<runtime::Engine> engine;

  explicit Machine(int threads = 1) {
    auto made = cpu::make_cpu_engine({.isa = {}, .threads = threads, .generated_code = false});
    REQUIRE(made.ok());
    engine = std::move(*made);
    train::write_mixed_files(fs);
  }

  // The hash of the run; it is stopped after `stop_after` steps first, if that is not 0.
  std::string train(const train::Settings& settings, int64_t workers = 1, int64_t stop_after = 0) {
    for (const bool stops : {true, false}) {
      if (stops && stop_after == 0) continue;
      int64_t asked = 0;
      run::Environment env{fs, *engine, workers, {}, {}, {}};
      if (stops) env.stop = [&] { return ++asked >= stop_after; };
      const auto run = run::Run::open(train::mixed_config(settings), env);
      REQUIRE_MESSAGE(run.ok(), run.error().message());
      const auto outcome = (*run)->train({});
      REQUIRE_MESSAGE(outcome.ok(), outcome.error().message());
      CHECK(outcome->finished == !stops);
      if (!stops) return outcome->hash;
    }
    return "";
  }

  std::string refusal(const train::Settings& settings) {
    const auto run = run::Run::open(train::mixed_config(settings), {fs, *engine, 1, {}, {}, {}});
    return run.ok() ? "" : run.error().message();
  }

  bool verifies(const std::string& id, int64_t from = 0) {
    VerifyOptions options;
    options.from_step = from;
    const auto report = verify_run(fs, *engine, "runs/" + id, options, models::builtin_models());
    REQUIRE_MESSAGE(report.ok(), report.error().message());
    return report->equal && report->last_step == 7;
  }

  std::vector<std::byte> tensor(const std::string& checkpoint, const std::string& path) {
    auto c = checkpoint::Checkpoint::open(fs, "runs/" + checkpoint);
    REQUIRE_MESSAGE(c.ok(), c.error().message());
    const int64_t at = c->find(path);
    REQUIRE(at >= 0);
    std::vector<std::byte> bytes(static_cast<size_t>(c->manifest().tensors[static_cast<size_t>(at)].bytes()));
    check_ok(c->read(at, bytes));
    return bytes;
  }
};

TEST_CASE("a run of adapters has one hash on threads, workers and after a stop, and verifies") {
  Machine one, three(3);
  const std::string hash = one.train(kLora);
  CHECK(three.train(kLora) == hash);
  CHECK(three.train(kLora + named("workers"), 2) == hash);
  CHECK(one.train(kLora + named("stopped"), 1, 3) == hash);
  CHECK(one.train(kLora + train::Settings{{"adapter.alpha", "4"}} + named("alpha")) != hash);
  CHECK(one.verifies("run"));
  CHECK(one.verifies("run", 5));
  // Frozen parameters stay as they are, and have no arrays of the optimizer.
  const std::string frozen = "model/layers/attention/qkv/weight";
  CHECK(one.tensor("run/checkpoints/step-00000002", frozen) ==
        one.tensor("run/checkpoints/step-00000007", frozen));
  CHECK(one.tensor("run/checkpoints/step-00000002", "model/layers/mlp/gate_up/lora/up_proj/b") !=
        one.tensor("run/checkpoints/step-00000007", "model/layers/mlp/gate_up/lora/up_proj/b"));
  auto c = checkpoint::Checkpoint::open(one.fs, "runs/run/checkpoints/step-00000007");
  REQUIRE(c.ok());
  CHECK(c->find("optimizer/first_moment/layers/attention/qkv/weight") < 0);
  CHECK(c->find("optimizer/first_moment/layers/attention/qkv/lora/q_proj/a") >= 0);
  CHECK(c->manifest().tensors[static_cast<size_t>(c->find(frozen))].dtype == "bf16");
}

TEST_CASE("workers that share the model, and exchange by layers, give the hash of one") {
  const train::Settings f32 = {{"trainer.mp", "f32"}};
  Machine m;
  const std::string hash = m.train(kLora + f32);
  CHECK(m.train(kLora + f32 + named("layers") + train::Settings{{"trainer.mesh.exchange", "layer"}}, 2) ==
        hash);
}

TEST_CASE("frozen parameters by glob: what is left is trained") {
  Machine m;
  const std::string freeze = m.train({{"trainer.freeze", "[\"*norm*\", \"*embedding*\"]"}});
  CHECK(m.train(train::Settings{{"trainer.freeze", "[\"*norm*\", \"*embedding*\"]"}} + named("two"), 2) ==
        freeze);
  CHECK(m.verifies("run"));
  CHECK(m.train(train::Settings{{"trainer.train_only", "[\"*mlp*\"]"}} + named("only")) != freeze);
  CHECK(m.tensor("only/checkpoints/step-00000002", "model/layers/mlp/down/weight") !=
        m.tensor("only/checkpoints/step-00000007", "model/layers/mlp/down/weight"));
  CHECK(m.tensor("only/checkpoints/step-00000002", "model/head/weight") ==
        m.tensor("only/checkpoints/step-00000007", "model/head/weight"));
}

TEST_CASE(
    "a run begins with the parameters of another: its adapters are new, its genesis has its state's name") {
  Machine m;
  m.train(named("base"));
  const train::Settings tuned = kLora + train::Settings{{"trainer.initialize_from", "runs/base"}};
  const std::string hash = m.train(tuned + named("tuned"));
  CHECK(hash != m.train(kLora + named("drawn")));
  CHECK(m.train(tuned + named("workers"), 2) == hash);
  CHECK(m.train(tuned + named("stopped"), 1, 1) == hash);
  CHECK(m.verifies("tuned"));
  CHECK(m.verifies("tuned", 1));
  // Full tuning from the checkpoint itself.
  const train::Settings full = {{"trainer.initialize_from", "runs/base/checkpoints/step-00000007"},
                                {"trainer.mp", "f32"}};
  m.train(full + named("full"));
  CHECK(m.tensor("full/initial/step-00000000", "model/head/weight") ==
        m.tensor("base/checkpoints/step-00000007", "model/head/weight"));
  CHECK(m.verifies("full"));
  // With what it lacks, or has too much of.
  CHECK(m.refusal(train::Settings{{"trainer.initialize_from", "runs/tuned"}} + named("a"))
            .find("merge it first") != std::string::npos);
  CHECK(m.refusal(train::Settings{{"trainer.initialize_from", "runs/base"}, {"model.hidden_dim", "64"}} +
                  named("b"))
            .find("is f32[") != std::string::npos);
  CHECK(m.refusal(train::Settings{{"trainer.initialize_from", "runs/base"},
                                  {"model.tie_word_embeddings", "true"}} +
                  named("c"))
            .find("which this model has not") != std::string::npos);
  CHECK(m.refusal(train::Settings{{"trainer.initialize_from", "nowhere"}} + named("d")).find("nowhere") !=
        std::string::npos);
  CHECK(m.refusal(kLora + named("tuned")).find("began with the parameters of a checkpoint") !=
        std::string::npos);
}

TEST_CASE("what cannot be trained is refused with the names that there are") {
  Machine m;
  CHECK(
      m.refusal({{"adapter.type", "lora"}, {"adapter.target_modules", "[query]"}})
          .find("adapter.target_modules: \"query\" matches nothing of the model, which has q_proj, k_proj") !=
      std::string::npos);
  CHECK(m.refusal({{"trainer.freeze", "[\"*\"]"}}).find("nothing of the model is left to train") !=
        std::string::npos);
  CHECK(m.refusal({{"trainer.train_only", "[\"*moe*\"]"}}).find("\"*moe*\" matches nothing") !=
        std::string::npos);
}

// An imported checkpoint: no chain lies above it, and what it is from stands beside it.
TEST_CASE("a run that begins with an import names its files, and verify compares them") {
  Machine m;
  m.train(named("base"));
  const std::string from = "runs/base/checkpoints/step-00000007", to = "imported/checkpoints/step-00000007",
                    name = checkpoint::read_manifest(m.fs, from)->name, hash(64, 'a');
  const std::function<void(const std::string&)> copy = [&](const std::string& below) {
    check_ok(m.fs.make_dirs(to + below));
    const auto entries = m.fs.list(from + below);
    REQUIRE(entries.ok());
    for (const io::DirEntry& e : *entries) {
      const std::string path = below + "/" + e.name;
      if (e.is_directory) copy(path);
      if (!e.is_directory) check_ok(io::write_file_atomically(m.fs, to + path, *m.fs.read_file(from + path)));
    }
  };
  copy("");
  const auto say = [&](const std::string& state, const std::string& file_hash) {
    const std::string text =
        fmt::format(R"({{"files":{{"config.json":"{}"}},"format":"hf","state":"{}"}})", file_hash, state);
    check_ok(io::write_file_atomically(m.fs, "imported/origin.json", text));
    return text;
  };
  const train::Settings begun = {{"trainer.initialize_from", "imported"}};
  m.train(begun + named("plain"));
  CHECK_FALSE(chain::read_chain(m.fs, "runs/plain/chain.jsonl")->genesis().origin);
  say(hash, hash);
  CHECK(m.refusal(begun + named("other")).find("is of the state aaaa") != std::string::npos);
  const std::string origin = say(name, hash);
  m.train(begun + named("named"));
  CHECK(chain::read_chain(m.fs, "runs/named/chain.jsonl")->genesis().origin == origin);
  CHECK(m.verifies("named"));
  say(name, std::string(64, 'b'));
  const auto report = verify_run(m.fs, *m.engine, "runs/named", {}, models::builtin_models());
  REQUIRE_FALSE(report.ok());
  CHECK(report.error().message().find("config.json of SHA-256 aaaa") != std::string::npos);
  check_ok(m.fs.remove_all("imported"));  // what is gone is not compared
  CHECK(m.verifies("named"));
}

}  // namespace
}  // namespace ostro::audit
