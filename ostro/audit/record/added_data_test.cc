// Runs whose amend adds a component of data: batches before it stay, the chain names the data before and
// after, verify takes it; what may not be added or changed; forged entries.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "ostro/audit/inspect.h"
#include "ostro/audit/record/amended_run_for_test.h"
#include "ostro/audit/record/recorded_run.h"
#include "ostro/batches/loader/document_uses.h"
#include "ostro/chain/config_file.h"
#include "ostro/chain/data_record.h"
#include "ostro/chain/record.h"
#include "ostro/data/options/document_name.h"
#include "ostro/io/files/faulty_file_system.h"
#include "ostro/run/amend/amend_plan.h"
#include "ostro/train/step/batches.h"

namespace ostro::audit {
namespace {

using namespace amend_for_test;
using Json = nlohmann::json;

train::Settings with_algebra(const std::string& components = train::kAlgebra[0].value) {
  train::Settings settings = kQuiet;
  settings.insert(settings.end(), {{"data.components", components},
                                   train::kAlgebra[1],
                                   {"optimizer.schedule_from", "4"},
                                   {"optimizer.warmup", "2"},
                                   {"optimizer.warmup_from", "0.0001"}});
  return settings;
}

std::unique_ptr<io::MemoryFileSystem> begun_with_algebra(runtime::Engine& engine) {
  auto fs = begun(engine);
  train::write_algebra(*fs);
  check_ok(fs->sync_tree(""));
  return fs;
}

const chain::AmendEntry& only_amend(const chain::Chain& chain) {
  const chain::AmendEntry* found = nullptr;
  for (const chain::ChainLink& link : chain.links)
    if (const auto* amend = std::get_if<chain::AmendEntry>(&link.entry)) {
      REQUIRE(found == nullptr);
      found = amend;
    }
  REQUIRE(found != nullptr);
  return *found;
}

void has(const std::string& text, const std::string& part) {
  CHECK_MESSAGE(text.find(part) != std::string::npos, text);
}

TEST_CASE("an amend adds a component: old batches stay, one config gives all, any interruption, verified") {
  const auto engine = plain_engine();
  const auto fs = begun_with_algebra(*engine);
  const std::vector<chain::StepEntry> before = steps_of(chain_of(*fs));
  const std::string was = *fs->read_file("runs/run/chain.jsonl");
  const auto plan = run::plan_amend(*fs, train::mixed_config(with_algebra()), {});
  REQUIRE_MESSAGE(plan.ok(), plan.error().message());
  CHECK(plan->step == kAmendedAt);
  for (const char* part :
       {"amend of runs/run after step 4", "  data.components from {", "  data from ",
        "  optimizer.schedule_from from absent to 4", "data.components.algebra is added: "})
    has(plan->text, part);
  CHECK(*fs->read_file("runs/run/chain.jsonl") == was);

  const std::string whole = must_go(*fs, *engine, train::mixed_config(with_algebra()), true).hash;
  const chain::Chain chain = chain_of(*fs);
  const std::vector<chain::StepEntry> steps = steps_of(chain);
  REQUIRE(steps.size() == 7);
  CHECK(std::equal(before.begin(), before.end(), steps.begin()));
  for (const int64_t from : {0, 2, 4, 6}) CHECK(verified(*fs, *engine, from) == "equal");
  CHECK(verified(*fs, *engine, 0, 3) == "equal");

  const auto stored = train::parse_train_config(*fs->read_file("runs/run/config.yaml"), "config.yaml",
                                                models::builtin_models());
  REQUIRE(stored.ok());
  const auto data = train::open_data(*fs, *stored);
  REQUIRE(data.ok());
  const Json said = Json::parse(only_amend(chain).difference);
  CHECK(said["data"] == Json{{"from", chain.genesis().data_hash}, {"to", data->data_hash}});
  CHECK(said["data_roots"] == Json{{"from", chain.genesis().data_roots}, {"to", *data->stores->roots()}});
  CHECK(said["data_roots"]["to"].size() == 3);
  CHECK(chain::data_records(chain).back().components == std::set<std::string>{"algebra", "code", "web"});
  const auto record = chain::read_record(*fs, "runs/run/run.json");
  REQUIRE_MESSAGE(record.ok(), record.error().message());
  CHECK(record->data_hash == chain.genesis().data_hash);
  CHECK(record->data_hash_now == data->data_hash);
  const auto shown = inspect(*fs, "runs/run", {});
  REQUIRE_MESSAGE(shown.ok(), shown.error().message());
  has(shown->text, "data now");
  has(shown->text, data->data_hash);
  const auto unchanged = begun_with_algebra(*engine);
  CHECK(chain::read_record(*unchanged, "runs/run/run.json")->data_hash_now.empty());
  CHECK(inspect(*unchanged, "runs/run", {})->text.find("data now") == std::string::npos);

  const auto loader = train::make_loader(*stored, data->stores);
  REQUIRE(loader.ok());
  int64_t of_algebra = 0;
  for (const chain::StepEntry& step : steps) {
    const auto batch = loader->batch(step.step - 1);
    CHECK(batches::batch_fingerprint(*batch) == step.batch);
    for (const size_t component : batch->components) {
      const bool is_new = loader->component_name(component) == "algebra";
      if (step.step <= kAmendedAt) CHECK(!is_new);
      of_algebra += is_new;
    }
  }
  CHECK(of_algebra > 0);
  // Where documents are used, by the inverses of order and mixture: the sums are those of the batches.
  int64_t found = 0;
  for (int document = 0; document < 12; ++document) {
    const auto name = data::parse_document_name(fmt::format("algebra/{}.txt:1", document));
    REQUIRE(name.ok());
    const auto rows = batches::document_uses(*data->stores, *loader, *name, "", 0, 7);
    if (!rows.ok()) continue;  // it was held out
    for (const batches::UsedRow& row : *rows)
      for (const auto& use : row.uses) {
        CHECK(use.step >= kAmendedAt);
        ++found;
      }
  }
  CHECK(found >= of_algebra);

  const auto other = begun_with_algebra(*engine);
  CHECK(must_go(*other, *engine, train::mixed_config(with_algebra()), true, 1000, 3).hash == whole);
  const auto slow = begun_with_algebra(*engine);
  must_go(*slow, *engine, train::mixed_config(with_algebra()), true, 5);
  must_go(*slow, *engine, train::mixed_config(with_algebra()), false, 6);
  auto own = train::parse_train_config(*slow->read_file("runs/run/config.yaml"), "config.yaml",
                                       models::builtin_models());
  REQUIRE(own.ok());
  CHECK(must_go(*slow, *engine, *own, false).hash == whole);
}

TEST_CASE("slow: a power cut at any moment of an amend that adds data: the places of the data are known") {
  const auto engine = plain_engine();
  train::Settings added = with_algebra();
  added.emplace_back("data.cache_dir", "elsewhere");  // where no configuration before the amend looks
  int64_t writes = 0;
  {
    const auto memory = begun_with_algebra(*engine);
    io::FaultyFileSystem counted(*memory);
    REQUIRE(run::Run::open(train::mixed_config(added), {counted, *engine}, true).ok());
    writes = counted.writes();
  }
  // Before the last ones the stores are built, which a cut leaves to be built again.
  constexpr int64_t kLast = 40;
  int cuts = 0, amended = 0;
  for (int64_t at = std::max<int64_t>(0, writes - kLast);; ++at) {
    const auto memory = begun_with_algebra(*engine);
    io::FaultyFileSystem faulty(*memory);
    faulty.inject(io::Fault::kCrash, at);
    (void)run::Run::open(train::mixed_config(added), {faulty, *engine}, true).ok();
    if (!faulty.triggered()) break;
    memory->crash(static_cast<uint64_t>(at % 3));
    ++cuts;
    CAPTURE(at);
    const bool is_amended = chain::data_records(chain_of(*memory)).size() > 1;
    amended += is_amended;
    CHECK(verified(*memory, *engine) == "equal");
    const auto config = open_recorded(*memory, "runs/run", models::builtin_models(), false);
    REQUIRE_MESSAGE(config.ok(), config.error().message());
    CHECK((config->config.data.cache_dir == "elsewhere") == is_amended);
    CHECK(train::open_data(*memory, config->config).ok());
  }
  CHECK(cuts > 20);
  CHECK(amended > 2);
  CHECK(amended < cuts);
}

TEST_CASE("slow: a second amend keeps the places of data that the first one added, wherever it is cut off") {
  const auto engine = plain_engine();
  train::Settings added = with_algebra();
  added.emplace_back("data.cache_dir", "elsewhere");
  train::Settings again = added;
  again.emplace_back("optimizer.max_grad_norm", "0.5");
  const std::string config = "runs/run/config.yaml", amended = "runs/run/config.amended.yaml";
  // A run whose process died behind the entry of the first amend, before config.yaml was renewed.
  const auto killed = [&] {
    auto fs = begun_with_algebra(*engine);
    const std::string before = fs->read_file(config).value();
    REQUIRE(run::Run::open(train::mixed_config(added), {*fs, *engine}, true).ok());
    const chain::Chain chain = chain_of(*fs);
    const auto entry = std::get<chain::AmendEntry>(chain.links.back().entry);
    check_ok(fs->write_file(amended, chain::amended_config_text(entry, fs->read_file(config).value())));
    check_ok(fs->write_file(config, before));
    check_ok(fs->sync_tree(""));
    return fs;
  };
  int cuts = 0, second = 0;
  for (int64_t at = 0;; ++at) {
    const auto memory = killed();
    io::FaultyFileSystem faulty(*memory);
    faulty.inject(io::Fault::kCrash, at);
    (void)run::Run::open(train::mixed_config(again), {faulty, *engine}, true).ok();
    if (!faulty.triggered()) break;
    memory->crash(static_cast<uint64_t>(at % 3));
    ++cuts;
    CAPTURE(at);
    const auto recorded = open_recorded(*memory, "runs/run", models::builtin_models(), false);
    REQUIRE_MESSAGE(recorded.ok(), recorded.error().message());
    CHECK(recorded->config.data.cache_dir == "elsewhere");
    second += recorded->periods.size() > 2;
  }
  CHECK(cuts > 5);
  CHECK(second > 0);
  CHECK(second < cuts);
}

TEST_CASE("controls: a stage a step late, or moments that were reset, are another run") {
  const auto engine = plain_engine();
  const auto fs = begun_with_algebra(*engine);
  const std::string whole = must_go(*fs, *engine, train::mixed_config(with_algebra()), true).hash;
  train::Settings late = with_algebra();
  late.emplace_back("optimizer.schedule_from", "5");
  const auto other = begun_with_algebra(*engine);
  CHECK(must_go(*other, *engine, train::mixed_config(late), true).hash != whole);
  late = with_algebra();
  late.emplace_back("optimizer.warmup_from", "0.0002");
  const auto another = begun_with_algebra(*engine);
  CHECK(must_go(*another, *engine, train::mixed_config(late), true).hash != whole);
  VerifyOptions reset;
  reset.from_step = kAmendedAt;
  reset.before_step = [](train::State& state) -> Status {
    if (state.step == kAmendedAt)
      for (runtime::Buffer& array : state.optimizer) array = runtime::Buffer::zeros(array.shape());
    return {};
  };
  const auto report = verify_run(*fs, *engine, "runs/run", reset, models::builtin_models());
  REQUIRE(report.ok());
  CHECK(!report->equal);
  CHECK(report->different_step == kAmendedAt + 1);
}

TEST_CASE("what an amend cannot do to data says why: removing, changing, packed rows, pairs, no --amend") {
  const auto engine = plain_engine();
  const auto fs = begun_with_algebra(*engine);
  const std::string was = *fs->read_file("runs/run/chain.jsonl");
  const auto refused = [&](const std::string& components, const std::string& weights, bool amend = true) {
    train::Settings settings = with_algebra(components);
    settings.emplace_back("data.train_weights", weights);
    const auto outcome = go(*fs, *engine, train::mixed_config(settings), amend, 5);
    CHECK(*fs->read_file("runs/run/chain.jsonl") == was);
    return outcome.ok() ? "" : outcome.error().message();
  };
  const std::string web = "web: {train_urls: [web], validation_fraction: 0.2}",
                    code = "code: {train_urls: [code], validation_fraction: 0.2}",
                    algebra = "algebra: {train_urls: [algebra], validation_fraction: 0.2}",
                    three = "{algebra: 1, web: 1, code: 1}";
  has(refused(train::kAlgebra[0].value, three, false), "add --amend");
  has(refused("{" + web + ", " + algebra + "}", "{web: 1, algebra: 1}"),
      "code would be removed; an amend can only add components");
  has(refused("{" + code + ", " + algebra + ", web: {train_urls: [web], validation_fraction: 0.3}}", three),
      "web would be another; an amend can only add components");
  has(refused("{" + code + ", " + algebra +
                  ", web: {train_urls: [algebra], validation_fraction: 0.2, cache_dir: elsewhere}}",
              three),
      "another data set: hash ");
  has(refused("{" + web + ", " + code +
                  ", algebra: {train_urls: [pairs/web.jsonl], cache_dir: packed, format: {type: supervised, "
                  "input_field: prompt, output_field: chosen}}}",
              three),
      "data.components.algebra.format.type: its rows are packed");
  // The run itself is as it was.
  must_go(*fs, *engine, train::mixed_config(with_algebra()), true, 5);
  CHECK(verified(*fs, *engine) == "equal");
  has(go(*fs, *engine, train::mixed_config(kQuiet), true).error().message(), "algebra would be removed");

  io::MemoryFileSystem pairs;
  train::write_mixed_files(pairs);
  train::Settings of_pairs = kQuiet;
  of_pairs.insert(of_pairs.end(), train::kPairRun.begin(), train::kPairRun.end());
  must_go(pairs, *engine, train::mixed_config(of_pairs), false, 2);
  std::string more = train::kPairRun[0].value;
  more.insert(1, "more: {train_urls: [pairs/web.jsonl], format: {type: preference}}, ");
  of_pairs.insert(of_pairs.end(),
                  {{"data.components", more}, {"data.train_weights", "{web: 1, code: 1, more: 1}"}});
  has(go(pairs, *engine, train::mixed_config(of_pairs), true).error().message(),
      "data.components: the run trains on preference pairs");
}

TEST_CASE("one component without a weight, and a tokenizer that was trained, stay what they were") {
  const auto engine = plain_engine();
  io::MemoryFileSystem fs;
  train::write_mixed_files(fs);
  train::write_algebra(fs);
  const std::string web = "web: {train_urls: [web], validation_fraction: 0.2}";
  train::Settings settings = kQuiet;
  settings.insert(settings.end(), {{"data.components", "{" + web + "}"},
                                   {"data.train_weights", "{}"},
                                   {"data.tokenizer", "null"},
                                   {"data.vocab_size", "270"}});
  must_go(fs, *engine, train::mixed_config(settings), false, kAmendedAt);
  const std::vector<chain::StepEntry> before = steps_of(chain_of(fs));
  settings.insert(settings.end(), {{"data.components", "{" + web + ", algebra: {train_urls: [algebra]}}"},
                                   {"data.train_weights", "{web: 0.5, algebra: 0.5}"}});
  must_go(fs, *engine, train::mixed_config(settings), true, 5);
  must_go(fs, *engine, train::mixed_config(settings), false);
  const std::vector<chain::StepEntry> steps = steps_of(chain_of(fs));
  REQUIRE(steps.size() == 7);
  CHECK(std::equal(before.begin(), before.end(), steps.begin()));
  CHECK(verified(fs, *engine) == "equal");
  const Json weights = Json::parse(only_amend(chain_of(fs)).difference)["data.train_weights"];
  CHECK(!weights.contains("from"));
  CHECK(weights["to"][0].dump() == R"([0,{"web":"0x1p+0"}])");
}

TEST_CASE("forged entries of added data are found") {
  const auto engine = plain_engine();
  const auto fs = begun_with_algebra(*engine);
  must_go(*fs, *engine, train::mixed_config(with_algebra()), true, 5);
  const std::string good = *fs->read_file("runs/run/chain.jsonl");
  const auto found = [&](const std::function<void(Json&)>& change, const std::string& what) {
    chain::Chain chain = chain_of(*fs);
    std::string text, head;
    for (chain::ChainLink& link : chain.links) {
      if (auto* amend = std::get_if<chain::AmendEntry>(&link.entry)) {
        Json difference = Json::parse(amend->difference);
        change(difference);
        amend->difference = difference.dump();
      }
      const std::string json = *chain::entry_json(link.entry);
      head = chain::entry_hash(head, json);
      text += chain::chain_line(json, head) + "\n";
    }
    *fs->content("runs/run/chain.jsonl") = text;
    has(verified(*fs, *engine), what);
    *fs->content("runs/run/chain.jsonl") = good;
  };
  const std::string zeros(64, '0');
  found([](Json&) {}, "equal");
  found([](Json& d) { d.erase("data"); }, "it adds components, but names no data with them");
  found([](Json& d) { d.erase("data.components"); }, "it names other data, but adds no component");
  found([](Json& d) { d.erase("data_roots"); }, "its \"data_roots\" are not those of before");
  found([&](Json& d) { d["data_roots"]["to"]["web"] = zeros; }, "its \"data_roots\" are not those of before");
  found([](Json& d) { d["data_roots"]["to"].erase("algebra"); }, "\"data_roots\" changes nothing");
  found([&](Json& d) { d["data_roots"]["to"]["more"] = zeros; },
        "its \"data_roots\" are not those of before");
  found([&](Json& d) { d["data_roots"]["to"]["../x"] = zeros; }, "no object of components and hashes");
  found([&](Json& d) { d["data_roots"]["from"]["web"] = zeros; }, "\"data_roots\" is changed from ");
  found([&](Json& d) { d["data_roots"]["to"]["algebra"] = zeros; },
        "the amend after step 4 has the data roots");
  found([&](Json& d) { d["data"]["from"] = zeros; }, "\"data\" is changed from ");
  found([](Json& d) { d["data"]["to"] = "x"; }, "\"data\" is changed to what is no SHA-256");
  found([&](Json& d) { d["data"]["to"] = zeros; }, "it holds another data set");
  found([](Json& d) { d["data.components"]["to"].erase("web"); },
        "its \"data_roots\" are not those of before");
}

}  // namespace
}  // namespace ostro::audit
