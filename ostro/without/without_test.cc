// `ostro lab without`: the run without a document is what training without it from step 0 gives, and a
// planted text that is seen once matters more for itself than documents like it do.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "ostro/audit/verify.h"
#include "ostro/batches/loader/document_uses.h"
#include "ostro/cpu/engine/engine.h"
#include "ostro/data/ledger/ledger.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/numerics/threefry.h"
#include "ostro/run/fork/fork.h"
#include "ostro/tokenizer/files/files.h"
#include "ostro/tokenizer/files/trainer.h"
#include "ostro/train/step/batches.h"
#include "ostro/without/effect.h"

namespace ostro::without {
namespace {

constexpr int kDocuments = 64, kPlanted = 23;  // documents count from 1
constexpr int64_t kRunSteps = 10;

// A sentence of a few words.
std::string sentence(int number) {
  static const char* const kWords[] = {"sun ", "moon ", "star ", "sky ", "wind ", "rain ", "snow ", "sea "};
  std::string text;
  for (int i = 0; i < 11; ++i) text += kWords[(number * 5 + i * (number % 3 + 1)) % 8];
  return text;
}

// A text of words that no other has, of about as many tokens as a sentence.
std::string planted(const tokenizer::Tokenizer& tokenizer) {
  static const char* const kOdd[] = {"zyx ", "qwv ", "jkp ", "fgq ", "vxz ", "wqk "};
  std::string text;
  for (int i = 0; tokenizer.encode(text).size() < tokenizer.encode(sentence(7)).size(); ++i)
    text += kOdd[i * i % 6];
  return text;
}

struct WithoutWorld {
  io::MemoryFileSystem fs;
  NoProgress progress;

  WithoutWorld() {
    check_ok(fs.make_dirs("held"));
    check_ok(fs.write_file("held/h.txt", sentence(200) + sentence(301)));
    check_ok(fs.write_file("other.txt", sentence(402)));
    int next = 0;
    auto trained = tokenizer::train(
        [&](std::string& text) -> Result<bool> {
          text = sentence(++next);
          return next <= kDocuments;
        },
        {.vocab_size = 280});
    REQUIRE(trained.ok());
    check_ok(tokenizer::save_tokenizer(fs, *trained, "tokenizer.json"));
    check_ok(fs.make_dirs("in"));
    std::string lines;
    for (int i = 1; i <= kDocuments; ++i)
      lines += nlohmann::json{{"text", i == kPlanted ? planted(*trained) : sentence(i)}}.dump() + "\n";
    check_ok(fs.write_file("in/a.jsonl", lines));
  }

  static MakeEngine engines() {
    return [] { return cpu::make_cpu_engine({.isa = {}, .threads = 1, .generated_code = false}); };
  }
  Context context() { return {fs, models::builtin_models(), engines(), engines(), progress}; }

  train::TrainConfig config(const std::vector<config::Override>& more) const {
    std::vector<config::Override> options = {{"data.tokenizer", "tokenizer.json"},
                                             {"data.train_urls", "[in]"},
                                             {"data.validation_urls", "[held]"},
                                             {"model.seq_len", "16"},
                                             {"model.hidden_dim", "32"},
                                             {"model.intermediate_dim", "48"},
                                             {"model.num_layers", "1"},
                                             {"model.num_heads", "2"},
                                             {"model.num_kv_heads", "1"},
                                             {"optimizer.learning_rate", "0.01"},
                                             {"optimizer.warmup", "0"},
                                             {"trainer.mp", "f32"},
                                             {"trainer.train_batch_size", "4"},
                                             {"trainer.steps_per_eval", "0"},
                                             {"trainer.num_train_steps", std::to_string(kRunSteps)},
                                             {"trainer.checkpointer.keep", "[{every: 2}]"},
                                             {"trainer.log_dir", "runs"},
                                             {"trainer.id", "base"},
                                             {"numerics.leaf_examples", "2"}};
    options.insert(options.end(), more.begin(), more.end());
    auto config = train::load_train_config("", options);
    REQUIRE_MESSAGE(config.ok(), config.error().message());
    return *config;
  }

  // Where a document is used in a run's steps, with this seed.
  std::vector<batches::DocumentUse> uses(const train::TrainConfig& config, int64_t document) {
    const auto data = train::open_data(fs, config);
    REQUIRE_MESSAGE(data.ok(), data.error().message());
    const auto loader = train::make_loader(config, data->stores);
    REQUIRE_MESSAGE(loader.ok(), loader.error().message());
    const auto rows = batches::document_uses(*data->stores, *loader, {"a.jsonl", document}, "", 0, kRunSteps);
    REQUIRE_MESSAGE(rows.ok(), rows.error().message());
    return (*rows)[0].uses;
  }

  Result<run::RunOutcome> train(const train::TrainConfig& config, int64_t workers = 1) {
    ASSIGN_OR_RETURN(const auto engine, engines()());
    ASSIGN_OR_RETURN(const auto run, run::Run::open(config, {fs, *engine, workers, {}, {}, {}}));
    return run->train({});
  }

  chain::Chain trained(const train::TrainConfig& config, int64_t workers = 1) {
    const auto outcome = train(config, workers);
    REQUIRE_MESSAGE(outcome.ok(), outcome.error().message());
    return chain_of(train::run_directory(config));
  }

  chain::Chain chain_of(const std::string& folder) {
    auto chain = chain::read_chain(fs, folder + "/chain.jsonl");
    REQUIRE_MESSAGE(chain.ok(), chain.error().message());
    return std::move(*chain);
  }

  void check_verified(const std::string& folder) {
    const auto engine = engines()();
    const auto report = audit::verify_run(fs, **engine, folder, {}, models::builtin_models());
    REQUIRE_MESSAGE(report.ok(), report.error().message());
    CHECK_MESSAGE(report->equal, report->what);
  }

  // The first seed with which the planted document is first used in one of the steps 4 to 6.
  train::TrainConfig base() {
    for (int seed = 0; seed < 200; ++seed) {
      train::TrainConfig tried = config({{"trainer.seed", std::to_string(seed)}});
      const auto used = uses(tried, kPlanted);
      if (!used.empty() && used[0].step >= 4 && used[0].step <= 6) return tried;
    }
    FAIL("no seed uses the planted document in time");
    return config({});
  }
};

const chain::StepEntry& step_of(const chain::Chain& chain, int64_t step) {
  REQUIRE(chain.find_step(step) != nullptr);
  return std::get<chain::StepEntry>(chain.find_step(step)->entry);
}

TEST_CASE("without: the fork has the states of a run that lacked the document from step 0") {
  WithoutWorld world;
  const train::TrainConfig base = world.base();
  const std::string seed = std::to_string(base.trainer.seed), planted = fmt::format("a.jsonl:{}", kPlanted);
  const chain::Chain parent = world.trained(base);
  for (const data::WithoutAs as : {data::WithoutAs::kMask, data::WithoutAs::kBlank}) {
    const char* how = as == data::WithoutAs::kMask ? "mask" : "blank";
    CAPTURE(how);
    const WithoutRequest request{.run = "runs/base",
                                 .documents = {planted},
                                 .as = as,
                                 .controls = 3,
                                 .texts = {"other.txt"},
                                 .out = fmt::format("out-{}", how)};
    const auto plan = plan_removals(world.context(), request);
    REQUIRE_MESSAGE(plan.ok(), plan.error().message());
    const int64_t first = world.uses(base, kPlanted)[0].step;
    CHECK(plan->asked.first_use == first);
    CHECK(plan->asked.begins == first / 2 * 2);
    INFO(plan_text(request, *plan));
    REQUIRE(plan->controls.size() == 3);
    const auto report =
        find_effect(world.context(), request, *plan,
                    {{}, [&](const train::TrainConfig& config) { return world.train(config); }});
    REQUIRE_MESSAGE(report.ok(), report.error().message());
    REQUIRE(report->has_value());
    const EffectReport& found = **report;
    const chain::Chain fork = world.chain_of(request.out + "/without");
    CHECK(found.asked.hash == fork.head());
    const chain::Chain whole = world.trained(world.config({{"trainer.seed", seed},
                                                           {"trainer.id", fmt::format("whole-{}", how)},
                                                           {"data.without", "[\"" + planted + "\"]"},
                                                           {"data.without_as", how}}),
                                             as == data::WithoutAs::kMask ? 2 : 1);
    for (int64_t step = 1; step <= kRunSteps; ++step) {
      CAPTURE(step);
      const chain::StepEntry& from_0 = step_of(whole, step);
      if (step > plan->asked.begins) CHECK(from_0 == step_of(fork, step));
      // The control: only from the first use on does the run differ from the one that had the document.
      CHECK((from_0 == step_of(parent, step)) == (step <= first));
    }
    CHECK(*whole.find_checkpoint(kRunSteps) == *fork.find_checkpoint(kRunSteps));
    world.check_verified(request.out + "/without");
    world.check_verified(fmt::format("runs/whole-{}", how));
    std::vector<double> on_documents, on_itself;
    for (size_t i = 0; i < found.controls.size(); ++i) {
      on_documents.push_back(found.on_documents(found.controls[i]));
      on_itself.push_back(found.on_itself(i));
    }
    INFO(effect_text(found));
    CHECK(found.on_documents(found.asked) > 0);
    CHECK(place_among(found.on_documents(found.asked), on_documents) == 1);
    CHECK(place_among(found.on_itself({}), on_itself) == 1);
    CHECK(nlohmann::json::parse(effect_json(found))["without"]["run_hash"] == fork.head());
  }
}

TEST_CASE("without: a document that no step draws changes the run hash and no state") {
  WithoutWorld world;
  const train::TrainConfig base = world.config({});
  int64_t unused = 1;
  while (unused <= kDocuments && !world.uses(base, unused).empty()) ++unused;
  REQUIRE(unused <= kDocuments);
  const std::string name = fmt::format("a.jsonl:{}", unused);
  const chain::Chain with = world.trained(base);
  const chain::Chain without =
      world.trained(world.config({{"trainer.id", "without"}, {"data.without", "[\"" + name + "\"]"}}));
  for (int64_t step = 1; step <= kRunSteps; ++step) CHECK(step_of(with, step) == step_of(without, step));
  CHECK(with.head() != without.head());
  const auto plan =
      plan_removals(world.context(), {.run = "runs/base", .documents = {name}, .texts = {}, .out = "out"});
  REQUIRE_FALSE(plan.ok());
  CHECK(plan.error().message().find("no step of runs/base uses it") != std::string::npos);
}

TEST_CASE("without: what is used before the first checkpoint begins anew; errors name what is missing") {
  WithoutWorld world;
  const train::TrainConfig base = world.config({{"trainer.num_train_steps", "3"}});
  int64_t early = 1;
  const auto begins_early = [&](int64_t document) {
    const auto used = world.uses(base, document);
    return !used.empty() && used[0].step < 2;
  };
  while (early <= kDocuments && !begins_early(early)) ++early;
  REQUIRE(early <= kDocuments);
  world.trained(base);
  WithoutRequest request{
      .run = "runs/base", .documents = {fmt::format("a.jsonl:{}", early)}, .texts = {}, .out = "out"};
  const auto plan = plan_removals(world.context(), request);
  REQUIRE_MESSAGE(plan.ok(), plan.error().message());
  CHECK(plan->asked.begins == 0);
  const auto report =
      find_effect(world.context(), request, *plan,
                  {{}, [&](const train::TrainConfig& config) { return world.train(config); }});
  REQUIRE_MESSAGE(report.ok(), report.error().message());
  CHECK((*report)->asked.steps.size() == 3);
  CHECK_FALSE(world.chain_of("out/without").genesis().fork.has_value());
  const auto says = [&](const char* document, const char* words) {
    request.documents = {document};
    const auto refused = plan_removals(world.context(), request);
    REQUIRE_FALSE(refused.ok());
    CHECK_MESSAGE(refused.error().message().find(words) != std::string::npos, refused.error().message());
  };
  says("a.jsonl:65", "its document 65 is not in");
  says("a.jsonl", "names no document");
  says("h.txt:1", "held out");
}

TEST_CASE("without: a store that is made again lacks the document, and has another order") {
  WithoutWorld world;
  const train::TrainConfig base = world.config({{"trainer.num_train_steps", "3"}});
  const chain::Chain parent = world.trained(base);
  int64_t used = 1;
  const auto places = [&](int64_t document) { return world.uses(base, document); };
  while (places(used).empty() || places(used)[0].step > 2) ++used;
  const WithoutRequest request{.run = "runs/base",
                               .documents = {fmt::format("a.jsonl:{}", used)},
                               .rebuild = true,
                               .texts = {},
                               .out = "again"};
  const auto plan = plan_removals(world.context(), request);
  REQUIRE_MESSAGE(plan.ok(), plan.error().message());
  CHECK(plan->asked.begins == 0);
  CHECK(plan_text(request, *plan).find("without (rebuild)") != std::string::npos);
  const auto report =
      find_effect(world.context(), request, *plan,
                  {{}, [&](const train::TrainConfig& config) { return world.train(config); }});
  REQUIRE_MESSAGE(report.ok(), report.error().message());
  const chain::Chain without = world.chain_of("again/without");
  CHECK(without.genesis().program_hash == parent.genesis().program_hash);
  CHECK(without.genesis().tokenizer_hash == parent.genesis().tokenizer_hash);
  CHECK(without.genesis().data_hash != parent.genesis().data_hash);
  const auto ledger = data::read_ledger(world.fs, "again/without.store/store");
  REQUIRE_MESSAGE(ledger.ok(), ledger.error().message());
  CHECK(ledger->split(data::Split::kTrain).rows == kDocuments - 1);
  CHECK(ledger->files.at(0).left_out == std::map<std::string, int64_t>{{"without", 1}});
  // A run on texts without the line has the same states: what is left out is the document and nothing else.
  std::string lines, line;
  std::istringstream all(*world.fs.read_file("in/a.jsonl"));
  for (int64_t number = 1; std::getline(all, line); ++number)
    if (number != used) lines += line + "\n";
  check_ok(world.fs.make_dirs("fewer"));
  check_ok(world.fs.write_file("fewer/a.jsonl", lines));
  const chain::Chain naive = world.trained(world.config({{"trainer.num_train_steps", "3"},
                                                         {"trainer.id", "naive"},
                                                         {"data.train_urls", "[fewer]"},
                                                         {"data.cache_dir", "fewer-cache"}}));
  for (int64_t step = 1; step <= 3; ++step) CHECK(step_of(naive, step).state == step_of(without, step).state);
  CHECK(step_of(naive, 1).state != step_of(parent, 1).state);
}

TEST_CASE("without: a sample is documents that are left out alone, and seeds are runs from the beginning") {
  WithoutWorld world;
  const std::string steps = "3";
  const chain::Chain base = world.trained(world.config({{"trainer.num_train_steps", steps}}));
  const auto trains = [&](const train::TrainConfig& config) { return world.train(config); };
  WithoutRequest request{
      .run = "runs/base", .documents = {}, .sample = 3, .texts = {"other.txt"}, .out = "sampled"};
  const auto plan = plan_removals(world.context(), request);
  REQUIRE_MESSAGE(plan.ok(), plan.error().message());
  REQUIRE(plan->controls.size() == 2);
  const std::vector<std::string> names = {plan->asked.documents[0], plan->controls[0].documents[0],
                                          plan->controls[1].documents[0]};
  CHECK(names[0] != names[1]);
  CHECK(names[0] != names[2]);
  CHECK(names[1] != names[2]);
  const auto sampled = find_effect(world.context(), request, *plan, {{}, trains});
  REQUIRE_MESSAGE(sampled.ok(), sampled.error().message());
  const std::string table = effect_text(**sampled);
  for (const std::string& name : names) CHECK_MESSAGE(table.find(name) != std::string::npos, table);
  CHECK(nlohmann::json::parse(effect_json(**sampled))["sample"] == true);

  // The same document, asked for alone, and with two seeds.
  WithoutRequest one{.run = "runs/base", .documents = {names[1]}, .seeds = 2, .texts = {}, .out = "one"};
  const auto again = plan_removals(world.context(), one);
  REQUIRE_MESSAGE(again.ok(), again.error().message());
  CHECK(again->steps_to_do() == 3 - again->asked.begins + 12);
  REQUIRE(again->seeds.size() == 2);
  CHECK(again->seeds[0] != again->seeds[1]);
  const auto found = find_effect(world.context(), one, *again, {{}, trains});
  REQUIRE_MESSAGE(found.ok(), found.error().message());
  CHECK((*found)->on_itself({}) == (*sampled)->on_itself(0));
  CHECK((*found)->asked.hash == (*sampled)->controls[0].hash);
  for (size_t i = 0; i < 2; ++i) {
    const SeedEffect& effect = (*found)->seeds[i];
    const std::string seed = std::to_string(effect.seed);
    const chain::Chain with = world.trained(world.config(
        {{"trainer.num_train_steps", steps}, {"trainer.seed", seed}, {"trainer.id", "seed-" + seed}}));
    CHECK(with.head() == effect.hash);
    CHECK(with.head() != base.head());
    CHECK(effect.hash_without != effect.hash);
    CHECK(world.chain_of(fmt::format("one/seed-{}-without", i + 1)).head() == effect.hash_without);
  }
  const std::string said = effect_text(**found);
  CHECK_MESSAGE(said.find("That is about training") != std::string::npos, said);
  CHECK(nlohmann::json::parse(effect_json(**found))["seeds"].size() == 2);

  // A fork cannot be trained anew with another seed.
  REQUIRE((*found)->asked.removal.begins >= 0);
  world.trained(world.config({{"trainer.num_train_steps", "4"}, {"trainer.id", "long"}}));
  const run::ForkRequest forked{"runs/long", 2, "runs/forked"};
  const auto config = run::config_of_parent(world.fs, forked, {}, models::builtin_models());
  REQUIRE_MESSAGE(config.ok(), config.error().message());
  const auto begun = run::fork_run(world.fs, forked, *config, {});
  REQUIRE_MESSAGE(begun.ok(), begun.error().message());
  REQUIRE(world.train(begun->config).ok());
  one.run = "runs/forked";
  const auto refused = plan_removals(world.context(), one);
  REQUIRE_FALSE(refused.ok());
  CHECK_MESSAGE(refused.error().message().find("is a fork") != std::string::npos, refused.error().message());
}

TEST_CASE("without: no document stays where a store that has it cannot be made again") {
  WithoutWorld world;
  check_ok(world.fs.make_dirs("more"));
  check_ok(world.fs.write_file("more/b.jsonl", *world.fs.read_file("in/a.jsonl")));
  const std::string web = "web: {train_urls: [in], validation_urls: [held], cache_dir: web-cache}";
  const auto config = [&](const std::string& old, const char* id) {
    return world.config({{"data.train_urls", "[]"},
                         {"data.validation_urls", "[]"},
                         {"data.components", "{" + web + ", old: {" + old + "cache_dir: old-cache}}"},
                         {"data.train_weights", "{web: 0.5, old: 0.5}"},
                         {"trainer.id", id}});
  };
  world.trained(config("train_urls: [more], ", "makes-the-store"));
  world.trained(config("", "base"));
  WithoutRequest request{.run = "runs/base", .documents = {}, .rebuild = true, .texts = {}, .out = "again"};
  // The first document of a file that a step uses.
  const auto used = [&](const char* file) {
    for (int i = 1; i <= kDocuments; ++i) {
      request.documents = {fmt::format("{}:{}", file, i)};
      if (plan_removals(world.context(), request).ok()) return request.documents[0];
    }
    FAIL("no step uses a document of ", file);
    return std::string();
  };
  const std::string kept = used("b.jsonl"), gone = used("a.jsonl");
  request.documents = {gone, kept};
  const auto trains = [&](const train::TrainConfig& made) { return world.train(made); };
  const auto plan = plan_removals(world.context(), request);
  REQUIRE_MESSAGE(plan.ok(), plan.error().message());
  const auto refused = find_effect(world.context(), request, *plan, {{}, trains});
  REQUIRE_FALSE(refused.ok());
  CHECK_MESSAGE(
      refused.error().message().find(kept + " is in a store that is used where it is") != std::string::npos,
      refused.error().message());
  // Alone, the document of the store that has its texts is removed.
  request.documents = {gone};
  const auto alone = plan_removals(world.context(), request);
  REQUIRE_MESSAGE(alone.ok(), alone.error().message());
  const auto report = find_effect(world.context(), request, *alone, {{}, trains});
  CHECK_MESSAGE(report.ok(), report.error().message());
}

}  // namespace
}  // namespace ostro::without
