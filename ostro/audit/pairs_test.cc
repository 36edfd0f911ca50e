// Runs on preference pairs: one chain on threads, workers and after a stop; the reference is kept, is made
// again where it is lost, and is verified.
#include <doctest/doctest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "ostro/audit/record/with_reference.h"
#include "ostro/audit/sample/draw.h"
#include "ostro/audit/sampled.h"
#include "ostro/audit/verify.h"
#include "ostro/chain/chain.h"
#include "ostro/cpu/engine/engine.h"
#include "ostro/interp/engine/engine.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/run/loop/run.h"
#include "ostro/train/options/mixed_run_for_test.h"
#include "ostro/train/step/batches.h"
#include "ostro/train/step/reference.h"

namespace ostro::audit {
namespace {

struct PairMachine {
  io::MemoryFileSystem fs;
  std::unique_ptr<runtime::Engine> engine;
  std::vector<std::vector<std::pair<std::string, double>>> measures;  // by step, of the last run
  std::vector<run::EvalReport> evaluations;

  explicit PairMachine(std::unique_ptr<runtime::Engine> made) : engine(std::move(made)) {
    train::write_mixed_files(fs);
  }
  explicit PairMachine(int threads = 1)
      : PairMachine(std::move(cpu::make_cpu_engine({.isa = {}, .threads = threads, .generated_code = false}))
                        .value()) {}

  static train::TrainConfig config(const std::string& id, const train::Settings& more = {}) {
    train::Settings settings = train::kPairRun;
    settings.insert(settings.end(), more.begin(), more.end());
    settings.push_back({"trainer.id", id});
    return train::mixed_config(settings);
  }

  // The hash of the run; it is stopped after `stop_after` steps first, if that is not 0.
  std::string train(const train::TrainConfig& config, int64_t workers = 1, int64_t stop_after = 0) {
    for (const bool stops : {true, false}) {
      if (stops && stop_after == 0) continue;
      int64_t asked = 0;
      run::Environment env{fs, *engine, workers, {}, {}, {}};
      if (stops) env.stop = [&] { return ++asked >= stop_after; };
      const auto run = run::Run::open(config, env);
      REQUIRE_MESSAGE(run.ok(), run.error().message());
      measures.clear();
      evaluations.clear();
      run::Watcher watcher;
      watcher.on_step = [&](const run::StepReport& r) { measures.push_back(r.measures); };
      watcher.on_eval = [&](const run::EvalReport& r) { evaluations.push_back(r); };
      const auto outcome = (*run)->train(watcher);
      REQUIRE_MESSAGE(outcome.ok(), outcome.error().message());
      if (!stops) return outcome->hash;
    }
    return "";
  }
  std::string train(const std::string& id, const train::Settings& more = {}, int64_t workers = 1,
                    int64_t stop_after = 0) {
    return train(config(id, more), workers, stop_after);
  }

  std::string verified(const std::string& id, int64_t from = 0) {
    VerifyOptions options;
    options.from_step = from;
    const auto report = verify_run(fs, *engine, "runs/" + id, options, models::builtin_models());
    if (!report.ok()) return report.error().message();
    return report->equal && report->last_step == 7 ? "equal" : report->what;
  }
};

TEST_CASE("pairs: one hash on threads, workers, engines and after a stop; it verifies") {
  PairMachine one, three(3);
  const std::string hash = one.train("run");
  CHECK(one.evaluations.back().pairs.has_value());
  CHECK(one.evaluations.back().parts.size() == 2);
  REQUIRE(one.measures.size() == 7);
  CHECK(one.measures[0] ==
        std::vector<std::pair<std::string, double>>{{"accuracy", 0.0}, {"margin", 0.0}});  // no step was done
  CHECK(one.measures[6][1].second != 0.0);
  const auto last = one.measures;
  CHECK(three.train("run") == hash);
  CHECK(three.train("workers", {}, 2) == hash);
  CHECK(three.measures == last);
  CHECK(one.train("stopped", {}, 1, 3) == hash);
  CHECK(one.verified("run") == "equal");
  CHECK(one.verified("run", 5) == "equal");
  PairMachine plain(interp::make_interpreter());
  CHECK(plain.train("run") == hash);
  const train::Settings f32 = {{"trainer.mp", "f32"}};
  const std::string whole = one.train("whole", f32);
  CHECK(whole != hash);
  CHECK(one.train("layers", {{"trainer.mp", "f32"}, {"trainer.mesh.exchange", "layer"}}, 2) == whole);
}

TEST_CASE(
    "pairs: every loss, adapters, leaf gradients and the objective's options give hashes of their own") {
  PairMachine m;
  std::vector<std::string> hashes;
  const std::vector<train::Settings> all = {
      {},
      {{"objective.loss_type", "sigmoid_norm"}},
      {{"objective.loss_type", "ipo"}},
      {{"objective.loss_type", "hinge"}},
      {{"objective.loss_type", "robust"}, {"objective.label_smoothing", "0.1"}},
      {{"objective.label_smoothing", "0.1"}},
      {{"objective.beta", "0.5"}},
      {{"adapter.type", "lora"}, {"adapter.rank", "2"}},
      {{"chain.leaf_gradients", "true"}}};
  for (size_t i = 0; i < all.size(); ++i) {
    CAPTURE(i);
    hashes.push_back(m.train(fmt::format("a{}", i), all[i]));
    CHECK(m.train(fmt::format("b{}", i), all[i], 2) == hashes.back());
    CHECK(std::count(hashes.begin(), hashes.end(), hashes.back()) == 1);
  }
  CHECK(m.verified("a4") == "equal");
  CHECK(m.verified("a7") == "equal");
  CHECK(m.verified("a8") == "equal");
}

TEST_CASE("pairs: a run that begins with another run's weights learns which answers are better") {
  PairMachine m;
  const train::TrainConfig base = train::mixed_config({{"trainer.id", "base"}});
  m.train(base);
  const train::Settings more = {{"trainer.initialize_from", "runs/base"},
                                {"trainer.train_batch_size", "8"},
                                {"trainer.num_train_steps", "40"},
                                {"optimizer.learning_rate", "0.01"},
                                {"trainer.checkpointer.keep", "[]"}};
  m.train("tuned", more);
  CHECK(m.evaluations.back().loss < 0.5);
  CHECK(m.evaluations.back().pairs->accuracy > 0.8);
  CHECK(m.evaluations.back().pairs->margin > 0.3);
}

TEST_CASE("pairs: a sample that has the first step, too, computes the reference and reads no file of it") {
  PairMachine m;
  m.train("run");
  const chain::Chain chain = chain::read_chain(m.fs, "runs/run/chain.jsonl").value();
  const auto states = states_of(m.fs, "runs/run", chain);
  REQUIRE((states.ok() && states->size() > 1 && (*states)[1] < 7));
  SampleRequest request;
  request.count = 1;
  for (int i = 0; request.challenge.empty(); ++i)  // one that draws the last step alone
    if (drawn_steps(chain.head(), std::to_string(i), 1, 7, 1).value().front() == 7)
      request.challenge = std::to_string(i);
  const auto sampled = [&] {
    return replay_sample(m.fs, *m.engine, "runs/run", {}, request, *states, models::builtin_models());
  };
  auto whole = sampled();
  REQUIRE_MESSAGE(whole.ok(), whole.error().message());
  CHECK(whole->report.equal);
  check_ok(m.fs.remove("runs/run/reference.safetensors"));
  CHECK_FALSE(sampled().ok());
  request.also = {1, 7};
  const auto computed = sampled();
  REQUIRE_MESSAGE(computed.ok(), computed.error().message());
  CHECK(computed->report.equal);
  CHECK(computed->plan.drawn == std::vector<int64_t>{7});
  CHECK(computed->replayed == 1 + whole->replayed);
}

TEST_CASE("pairs: the reference is kept by its hash, and is made again where it is lost or damaged") {
  PairMachine m;
  const train::TrainConfig config = PairMachine::config("run");
  const std::string path = "runs/run/reference.safetensors";
  const std::string hash = m.train("other");
  for (const char* what : {"lost", "damaged"}) {
    CAPTURE(what);
    int64_t asked = 0;
    run::Environment env{m.fs, *m.engine, 1, [&] { return ++asked >= 3; }, {}, {}};
    {
      const auto run = run::Run::open(config, env);
      REQUIRE_MESSAGE(run.ok(), run.error().message());
      REQUIRE((*run)->train({}).ok());
    }
    const std::string good = *m.fs.read_file(path);
    if (std::strcmp(what, "lost") == 0)
      check_ok(m.fs.remove(path));
    else
      m.fs.content(path)->back() ^= 1;
    if (std::strcmp(what, "damaged") == 0)
      CHECK(m.verified("run", 2).find("the hash of its values is ") != std::string::npos);
    CHECK(m.train(config) == hash);
    CHECK(*m.fs.read_file(path) == good);
    check_ok(m.fs.remove_all("runs/run"));
  }
  // Another set of weights would give another reference: the chain says which it was.
  m.train(config);
  CHECK(m.verified("run") == "equal");
  std::string chain = *m.fs.read_file("runs/run/chain.jsonl");
  CHECK(chain.find("\"reference\":\"") != std::string::npos);
  const auto data = train::open_data(m.fs, config);
  REQUIRE(data.ok());
  const auto scored = with_reference(m.fs, config, "runs/run/checkpoints/step-00000007", data->stores);
  REQUIRE_MESSAGE(scored.ok(), (scored.ok() ? "" : scored.error().message()));
  CHECK((*scored)->parts()[0].scores[0]->size() > 20);
  m.train(train::mixed_config({{"trainer.id", "texts"}}));
  CHECK(with_reference(m.fs, config, "runs/texts/checkpoints/step-00000007", data->stores)
            .error()
            .message()
            .find("was not trained on pairs") != std::string::npos);
  CHECK(with_reference(m.fs, config, "elsewhere", data->stores).error().message().find("is in no run") !=
        std::string::npos);
}

}  // namespace
}  // namespace ostro::audit
