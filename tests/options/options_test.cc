// Changes every declared option, one at a time, and runs a tiny training: what the option's declared effect
// names must change (program or chain; plan; output), and nothing that it does not name. The stored config,
// the command line and the log do not count.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "ostro/base/sha256.h"
#include "ostro/base/test_size.h"
#include "ostro/chain/chain.h"
#include "ostro/cpu/engine/engine.h"
#include "ostro/data/rows/row_verdicts.h"
#include "ostro/io/files/forwarding_file_system.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/io/files/path.h"
#include "ostro/models/decoder/families.h"
#include "ostro/run/loop/run.h"
#include "ostro/run/report/tracker.h"
#include "ostro/tokenizer/files/files.h"
#include "ostro/tokenizer/files/trainer.h"

namespace ostro::train {
namespace {

using Settings = std::vector<config::Override>;

// A configuration in which every option matters: two layers, held-out text, several leaves, checkpoints.
const Settings kBase = {
    {"data.tokenizer", "tokenizer.json"},
    {"data.train_urls", "[corpus]"},
    {"data.validation_fraction", "0.2"},
    {"model.seq_len", "32"},
    {"model.hidden_dim", "32"},
    {"model.intermediate_dim", "48"},
    {"model.num_layers", "2"},
    {"model.num_heads", "4"},
    {"model.num_kv_heads", "2"},
    {"trainer.train_batch_size", "4"},
    {"trainer.num_train_steps", "6"},
    {"trainer.steps_per_eval", "2"},
    {"trainer.checkpointer.keep", "[{every: 2}]"},
    {"trainer.watch_norms", "[parameters]"},
    {"numerics.leaf_examples", "2"},
};

// Options inside elements of lists: the list that shows them.
const std::map<std::string, config::Override> kInsideLists = {
    {"trainer.checkpointer.keep[].every", {"trainer.checkpointer.keep", "[{every: 3}]"}},
    {"trainer.checkpointer.keep[].until", {"trainer.checkpointer.keep", "[{every: 2, until: 3}]"}},
    {"trainer.tracker[].type", {"trainer.tracker", "[{type: tensorboard}]"}},
    {"trainer.tracker[].project", {"trainer.tracker", "[{type: wandb, project: other}]"}},
    {"trainer.tracker[].entity", {"trainer.tracker", "[{type: wandb, entity: team}]"}},
    {"trainer.tracker[].mode", {"trainer.tracker", "[{type: wandb, mode: offline}]"}},
};

// Options of a component: two components, and what the first becomes.
config::Override components(const std::string& web) {
  return {"data.components", "{web: " + web + ", code: {train_urls: [\"other/**/*.txt\"]}}"};
}
const Settings kComponents = {{"data.train_urls", "[]"},
                              {"data.validation_fraction", "0.01"},
                              components("{train_urls: [corpus], validation_fraction: 0.2}"),
                              {"data.train_weights", "{web: 0.75, code: 0.25}"},
                              {"data.mixture_block_size", "8"}};
const std::map<std::string, config::Override> kInsideComponents = {
    {"train_urls", components("{train_urls: [held_out], validation_fraction: 0.2}")},
    {"validation_urls",
     components("{train_urls: [corpus], validation_urls: [held_out], validation_fraction: 0.2}")},
    {"validation_fraction", components("{train_urls: [corpus], validation_fraction: 0.4}")},
    {"cache_dir", components("{train_urls: [corpus], validation_fraction: 0.2, cache_dir: elsewhere}")},
    {"rows", components("{train_urls: [corpus], validation_fraction: 0.2, rows: rows.jsonl}")},
    {"format.type", components("{train_urls: [corpus], validation_fraction: 0.2, format: {type: prebuilt}}")},
};

// Options of a component's rows: the format before and after.
// Options of a group of parameters: what the group becomes.
config::Override group(const std::string& more) {
  return {"optimizer.groups", "{mlp: {parameters: [\"*/mlp/*\", \"*embedding*\"]" + more +
                                  "}, norms: {parameters: [\"*norm*\"]}}"};
}
const std::map<std::string, config::Override> kInsideGroups = {
    {"parameters",
     {"optimizer.groups", "{mlp: {parameters: [\"*/mlp/down/*\"]}, norms: {parameters: [\"*norm*\"]}}"}},
    {"lr_multiplier", group(", lr_multiplier: 0.5")},
    {"weight_decay", group(", weight_decay: 0.5")},
    {"max_grad_norm", group(", max_grad_norm: 0.1")},
    {"learning_rate", group(", learning_rate: 0.01")},
    {"optimizer.type", group(", optimizer: {type: lion}")},
};

// Another value of "optimizer.beta1" of a type.
std::string other_value_of(const std::string& path, const std::string& type) {
  for (const config::OptionInfo& option : config::list_options(TrainConfig()))
    if (option.path == path && (option.selects.empty() || option.selects.back().second == type))
      return option.other_value;
  FAIL("no option ", path, " of ", type);
  return "";
}

const char* const kTemplate =
    "chat_template: '{% for m in messages %}{% if m.role == \"assistant\" %}{% generation %}{{ m.content }}"
    "{% endgeneration %}{% else %}{{ m.content }}: {% endif %}{% endfor %}'";
const char* const kOtherTemplate =
    "chat_template: '{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %} {% endfor %}'";
const char* const kPairsOfMessages =
    "prompt_field: prompt_messages, chosen_field: chosen_messages, rejected_field: rejected_messages, ";
const std::map<std::string, std::pair<std::string, std::string>> kFormats = {
    {"text/text_key", {"", "text_key: content"}},
    {"chat/messages_field", {kTemplate, std::string(kTemplate) + ", messages_field: other_messages"}},
    {"chat/chat_template", {kTemplate, kOtherTemplate}},
    {"chat/pack", {kTemplate, std::string(kTemplate) + ", pack: false"}},
    {"chat/mask_user_turns", {kTemplate, std::string(kTemplate) + ", mask_user_turns: false"}},
    {"supervised/input_field", {"", "input_field: text"}},
    {"supervised/output_field", {"", "output_field: text"}},
    {"supervised/separate_with", {"", "separate_with: \"\\n\""}},
    {"supervised/pack", {"", "pack: false"}},
    {"supervised/mask_inputs", {"", "mask_inputs: false"}},
    {"preference/prompt_field", {"", "prompt_field: other_prompt"}},
    {"preference/chosen_field", {"", "chosen_field: rejected, rejected_field: chosen"}},
    {"preference/rejected_field", {"", "rejected_field: other_rejected"}},
    {"preference/chat_template",
     {std::string(kPairsOfMessages) + kTemplate, std::string(kPairsOfMessages) + kOtherTemplate}},
    {"prebuilt/input_ids_key", {"", "input_ids_key: other_ids"}},
    {"prebuilt/loss_weights_key", {"", "loss_weights_key: weights"}},
};
config::Override with_format(const std::string& type, const std::string& options) {
  return components("{train_urls: [corpus], validation_fraction: 0.2, format: {type: " + type +
                    (options.empty() ? "" : ", ") + options + "}}");
}

// All components have pairs, or none has.
config::Override with_pairs(const std::string& options = "") {
  const std::string component = "{train_urls: [corpus], validation_fraction: 0.2, format: {type: preference" +
                                std::string(options.empty() ? "" : ", ") + options + "}}";
  return {"data.components", "{web: " + component + ", code: " + component + "}"};
}

// What it does is to let builds go on that would stop.
// Changes nothing that can be seen but memory (tested beside the cache itself).
constexpr const char* kMemoryOnly = "data.chunk_cache_mib";
// Change how long several processes wait for each other (ostro/run/job/time_limits_test.cc).
bool is_time_limit(const std::string& path) {
  for (const char* name : {"hang", "exchange", "connect", "link", "stop"})
    if (path == fmt::format("trainer.{}_timeout", name)) return true;
  return false;
}
// Change what is done beside a run by the process that watches it, or when a notice comes
// (ostro/monitor, ostro/run/notice), how bytes come from one process to another, or what a machine keeps of
// checkpoints in an object store (tests/e2e/run_store_test.py).
bool is_beside(const std::string& path) {
  for (const char* begin : {"trainer.metrics_", "trainer.alert_", "trainer.notice_", "trainer.tls",
                            "trainer.worker_ports", "trainer.relay", "trainer.scratch_dir"})
    if (path.starts_with(begin)) return true;
  return false;
}
constexpr const char* kSkipsRows = "data.on_bad_row";

// Every kind of data has one objective that it is for.
constexpr const char* kDecidedByData = "objective.type";

// What it does is to refuse runs that are too long.
constexpr const char* kLimitsLength = "data.stop_strategy";

// Llama's default is what other families have by default, too; this one has biases.
constexpr const char* kOtherModel = "qwen2";

std::string words(int number, int count, int shift) {
  static const char* const kWords[] = {"the", "cat", "sat",  "on",   "a",  "mat",
                                       "dog", "log", "that", "then", "was"};
  std::string text;
  auto state = static_cast<uint64_t>(number * 7919 + 13 + shift);
  for (int i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    text += kWords[(state >> 33) % 11];
    text += i % 9 == 8 ? ".\n" : " ";
  }
  return text;
}

void write(io::FileSystem& fs, const std::string& path, const std::string& text) {
  check_ok(fs.make_dirs(io::parent_path(path)));
  check_ok(fs.write_file(path, text));
}

// Texts in which data.text_key matters, other texts for the options that name other places, two tokenizers.
void write_files(io::FileSystem& fs) {
  std::string lines;
  for (int i = 0; i < 60; ++i) {
    const auto messages = [i](int shift) {
      return nlohmann::json{{{"role", "user"}, {"content", words(i, 2 + i % 5, shift)}},
                            {{"role", "assistant"}, {"content", words(i, 3 + i % 9, shift + 1)}}};
    };
    nlohmann::json row = {{"text", words(i, 60, 0)},  {"content", words(i, 60, 1)},
                          {"messages", messages(0)},  {"other_messages", messages(5)},
                          {"prompt", words(i, 3, 6)}, {"response", words(i, 4 + i % 6, 7)}};
    row["other_prompt"] = words(i, 4, 8);
    row["chosen"] = words(i, 3 + i % 4, 9);
    row["rejected"] = words(i, 8 + i % 3, 10);
    row["other_rejected"] = words(i, 9 + i % 3, 11);
    row["prompt_messages"] = {messages(2)[0]};
    row["chosen_messages"] = {messages(3)[1]};
    row["rejected_messages"] = {messages(4)[1]};
    for (int k = 0; k < 50; ++k) {
      row["input_ids"].push_back((i * 7 + k * 11) % 256);
      row["other_ids"].push_back((i * 5 + k * 13) % 256);
      row["weights"].push_back(k % 3 * 0.5);
    }
    lines += row.dump() + "\n";
  }
  write(fs, "corpus/a.jsonl", lines);
  data::FileVerdicts verdicts{
      .file = "a.jsonl", .sha256 = sha256_hex(lines), .rows = std::count(lines.begin(), lines.end(), '\n')};
  for (int64_t row = 2; row <= verdicts.rows; row += 5)
    verdicts.said.push_back({.row = row, .drop = "quality"});
  REQUIRE(data::write_row_verdicts(fs, "rows.jsonl", {{verdicts}}).ok());
  write(fs, "malformed/a.jsonl", "{\"text\": \"the cat\"}\nthe mat\n");
  for (int i = 0; i < 30; ++i) write(fs, fmt::format("other/{}.txt", i), words(i, 80, 2));
  for (int i = 0; i < 6; ++i) write(fs, fmt::format("held_out/{}.txt", i), words(i, 50, 3));
  for (const auto& [path, vocab] :
       {std::pair{"tokenizer.json", 300U}, std::pair{"other_tokenizer.json", 270U}}) {
    int next = 0;
    auto trained = tokenizer::train(
        [&](std::string& text) -> Result<bool> {
          text = words(next, 60, 0);
          return next++ < 20;
        },
        {.vocab_size = vocab, .special_tokens = {"<|endoftext|>", "<s>"}});  // ends and begins texts
    REQUIRE(trained.ok());
    check_ok(tokenizer::save_tokenizer(fs, *trained, path));
  }
}

// Everything of a run that an option may change, sorted by what may change it.
struct Seen {
  std::string canonical;  // the canonical config: only to check that effects are declared right
  std::string bits;       // programs, and the chain after its genesis
  std::string plan;       // what the engine reports of the compiled programs, and the mesh of 4 workers
  std::set<std::string> output;  // files with their content, metrics, checkpoints that existed for a while
};

void list_files(io::FileSystem& fs, const std::string& directory, std::set<std::string>& out) {
  auto entries = fs.list(directory);
  REQUIRE(entries.ok());
  for (const io::DirEntry& e : *entries) {
    const std::string path = directory.empty() ? e.name : directory + "/" + e.name;
    if (e.is_directory)
      list_files(fs, path, out);
    else
      out.insert(path);
  }
}

// metrics.jsonl without what a clock or the machine put there.
std::string without_time(const std::string& text) {
  std::string out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    auto row = nlohmann::json::parse(text.substr(begin, end - begin));
    for (auto it = row.begin(); it != row.end();)
      it = it.key() == "time" || it.key().starts_with("throughput/") || it.key().starts_with("memory/")
               ? row.erase(it)
               : std::next(it);
    out += row.dump() + "\n";
    begin = end + 1;
  }
  return out;
}

// Notes every checkpoint that was ever complete. They are written by a thread of their own and temporary ones
// are pruned by it: whoever lists the directory between two steps sees one sooner, later or never.
class NotesCheckpoints final : public io::ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;
  // After the run has been closed, when nothing writes any more.
  const std::set<std::string>& completed() const { return completed_; }

 private:
  Status before(Operation operation, const std::string& path) override {
    if (operation == Operation::kRename && path.ends_with(".tmp") &&
        io::parent_path(path).ends_with("/checkpoints"))
      completed_.insert(path.substr(0, path.size() - std::string(".tmp").size()));
    return {};
  }

  std::set<std::string> completed_;
};

// A run of the base configuration, for the option that begins with another run's parameters.
void write_other_run(io::FileSystem& fs, runtime::Engine& engine) {
  Settings settings = kBase;
  settings.push_back({"trainer.log_dir", "earlier"});
  const auto config = load_train_config("", settings);
  REQUIRE(config.ok());
  const auto run = run::Run::open(*config, {fs, engine});
  REQUIRE_MESSAGE(run.ok(), run.error().message());
  REQUIRE((*run)->train({}).ok());
}

Seen observe(const Settings& settings, runtime::Engine& engine) {
  io::MemoryFileSystem memory;
  NotesCheckpoints fs(memory);
  write_files(fs);
  auto config = load_train_config("", settings);
  REQUIRE_MESSAGE(config.ok(), config.error().message());
  if (config->trainer.initialize_from) write_other_run(fs, engine);
  Seen seen;
  seen.canonical = config::canonical_config(*config);
  const std::string directory = run_directory(*config);
  {
    std::chrono::nanoseconds now{0};
    run::Environment environment{fs, engine};
    environment.clock = [&now] { return now; };
    auto run = run::Run::open(*config, environment);
    REQUIRE_MESSAGE(run.ok(), run.error().message());
    seen.bits = *fs.read_file(directory + "/program.ir");
    const run::RunPlan plan = (*run)->plan().value();
    for (const auto& info : {plan.leaf, plan.update})
      seen.plan += fmt::format("{} {} {}\n", info.arena_bytes, info.input_bytes, info.output_bytes);
    const ir::Sharding sharding = sharding_for(config->trainer.sharding, 4).value();  // of a run on 4 workers
    seen.plan += fmt::format(
        "exchange {}, copies {}, slices {}, overlap {}, connections {}\n",
        static_cast<int>(config->trainer.sharding.mesh.exchange),
        config->trainer.sharding.mesh.state_replicas, static_cast<int>(config->trainer.sharding.mesh.slices),
        config->trainer.sharding.mesh.slice_overlap, config->trainer.sharding.mesh.slice_connections);
    seen.plan += fmt::format("shares {}\n", static_cast<int>(config->trainer.sharding.shares));
    seen.plan += "on " + config->trainer.device + "\n";  // the engine that the command line would make
    for (const ir::Axis& axis : sharding.mesh.axes) seen.plan += fmt::format("{} {}\n", axis.name, axis.size);
    for (const auto* map : {&sharding.compute, &sharding.parameter})
      for (const auto& [axis, mesh_axis] : *map) seen.plan += fmt::format("{} over {}\n", axis, mesh_axis);
    auto trackers = run::make_trackers(fs, directory, config->trainer.tracker, 0);
    REQUIRE(trackers.ok());
    run::Watcher watcher;
    watcher.on_step = [&](const run::StepReport& r) {
      run::Metrics metrics(r.watched.begin(), r.watched.end());
      metrics["train/loss"] = r.loss;
      check_ok((*trackers)->log(r.step, metrics));
      seen.plan += fmt::format("{} leaves computed twice\n", r.checked_leaves);
      // One step longer than the shortest interval between saves by the clock.
      if (r.step == 2) now += std::chrono::milliseconds(1100);
    };
    watcher.on_eval = [&](const run::EvalReport& r) {
      check_ok((*trackers)->log(r.step, {{"eval/loss", r.loss}}));
    };
    const auto outcome = (*run)->train(watcher);
    REQUIRE_MESSAGE(outcome.ok(), outcome.error().message());
    check_ok((*trackers)->finish());
  }
  for (const std::string& path : fs.completed()) seen.output.insert("had " + path);
  const auto chain = chain::read_chain(fs, directory + "/chain.jsonl");
  REQUIRE(chain.ok());
  for (size_t i = 1; i < chain->links.size(); ++i)
    seen.bits += *chain::entry_json(chain->links[i].entry) + "\n";

  std::set<std::string> files;
  list_files(fs, "", files);
  for (const std::string& path : files) {
    const std::string name = path.substr(path.rfind('/') + 1);
    if (path.find("/tb/") != std::string::npos)
      seen.output.insert(io::parent_path(path));  // event files are named after time and process
    else if (name == "metrics.jsonl")
      seen.output.insert(path + ": " + without_time(*fs.read_file(path)));
    else if (path.find("/c/") != std::string::npos)  // chunks of the token store
      seen.output.insert(fmt::format("{}: {} bytes", path, fs.read_file(path)->size()));
    else if (name == "goodput.json")  // but for what a clock put there
      seen.output.insert(fmt::format(
          "{}: price {}", path, nlohmann::json::parse(*fs.read_file(path))["price_per_worker_hour"].dump()));
    else if (path.find("/checkpoints/") == std::string::npos)
      seen.output.insert(path);
  }
  return seen;
}

// The settings with one more, which wins over the same key before it.
Settings with(Settings settings, const config::Override& one) {
  settings.push_back(one);
  return settings;
}

// Why a run cannot begin; empty when it can.
std::string open_error(const Settings& settings, runtime::Engine& engine) {
  io::MemoryFileSystem fs;
  write_files(fs);
  const auto config = load_train_config("", settings);
  REQUIRE_MESSAGE(config.ok(), config.error().message());
  const auto run = run::Run::open(*config, {fs, engine});
  return run.ok() ? "" : run.error().message();
}

// A Python package `wandb` that does nothing, for the tracker of that name.
class SilentWandb {
 public:
  SilentWandb() {
    char name[] = "/tmp/ostro-options-XXXXXX";
    folder_ = ::mkdtemp(name);
    std::ofstream(folder_ / "wandb.py")
        << "class Run:\n  dir = 'nowhere'\n  def log(self, metrics, step): pass\n"
           "  def finish(self): pass\ndef init(**options): return Run()\n";
    ::setenv("PYTHONPATH", folder_.c_str(), 1);
  }
  ~SilentWandb() {
    ::unsetenv("PYTHONPATH");
    std::filesystem::remove_all(folder_);
  }

 private:
  std::filesystem::path folder_;
};

TEST_CASE("every option changes what its declaration says, and nothing else") {
  const SilentWandb package;
  auto engine = cpu::make_cpu_engine({.isa = {}, .threads = 1, .generated_code = false});
  REQUIRE(engine.ok());
  std::map<std::string, Seen> baselines;
  // Options of the first two families, which have all of them, and of a sample of the others.
  std::set<std::string> families = {"llama", "decoder"};
  std::vector<std::string> others;
  for (const models::Family& f : models::families())
    if (!families.contains(std::string(f.name))) others.emplace_back(f.name);
  for (size_t i = 0; i < sized<size_t>(2, others.size(), others.size()); ++i)
    families.insert(others[(test_seed() + 5 * i) % others.size()]);
  MESSAGE("families: " << fmt::format("{}", fmt::join(families, ", ")));
  std::set<std::string> declared;  // optimizers have many options in common
  int changed = 0;
  for (const config::OptionInfo& option : config::list_options(TrainConfig())) {
    CAPTURE(option.path);
    if (!declared.insert(option.path + ": " + option.help).second) continue;
    config::Override change{option.path, option.other_value};
    if (option.path == "model.type") change.value = kOtherModel;
    const std::string family =
        !option.selects.empty() && option.selects[0].first == "model.type" ? option.selects[0].second : "";
    if (!family.empty() && !families.contains(family)) continue;
    if (option.path.find("[]") != std::string::npos) {
      const auto inside = kInsideLists.find(option.path);
      REQUIRE_MESSAGE(inside != kInsideLists.end(), "name a list that shows this option in kInsideLists");
      change = inside->second;
    }
    Settings base = kBase;
    // Not every family has heads of both kinds.
    if (!family.empty() && !models::family_of(family).shows("num_kv_heads"))
      std::erase_if(base, [](const config::Override& o) { return o.path == "model.num_kv_heads"; });
    if (const std::string prefix = "optimizer.groups.<name>."; option.path.starts_with(prefix)) {
      const std::string inside = option.path.substr(prefix.size());
      // Which parameters are in a group shows only if the group differs from the rest.
      base.push_back(group(inside == "parameters" ? ", lr_multiplier: 0.5" : ""));
      if (const auto found = kInsideGroups.find(inside); found != kInsideGroups.end()) {
        change = found->second;
      } else {  // of a rule: the other value is that of the same rule outside of a group
        const std::string type = option.selects.back().second;
        const std::string other = other_value_of(inside, type);
        base.back() = group(fmt::format(", optimizer: {{type: {}}}", type));
        change = group(fmt::format(", optimizer: {{type: {}, {}: {}}}", type,
                                   inside.substr(inside.rfind('.') + 1), other));
      }
      if (inside == "parameters")
        change.value =
            "{mlp: {parameters: [\"*/mlp/down/*\"], lr_multiplier: 0.5}, norms: {parameters: [\"*norm*\"]}}";
    } else if (const std::string prefix = "data.components.<name>."; option.path.starts_with(prefix)) {
      base.insert(base.end(), kComponents.begin(), kComponents.end());
      const std::string inside = option.path.substr(prefix.size());
      if (const auto found = kInsideComponents.find(inside); found != kInsideComponents.end()) {
        change = found->second;
      } else {
        REQUIRE_FALSE(option.selects.empty());
        const std::string& type = option.selects.back().second;
        const auto& [without, changed_format] =
            kFormats.at(type + "/" + inside.substr(std::string("format.").size()));
        const bool pairs = type == "preference";
        if (pairs) base.push_back({"objective.type", "dpo"});
        base.push_back(pairs ? with_pairs(without) : with_format(type, without));
        change = pairs ? with_pairs(changed_format) : with_format(type, changed_format);
      }
    } else if (option.path.starts_with("objective.")) {
      base.insert(base.end(), kComponents.begin(), kComponents.end());
      base.push_back(with_pairs());
      base.push_back({"objective.type", "dpo"});
    } else if (option.path.find("[]") == std::string::npos) {  // an item of a list is shown by the whole list
      for (const auto& [path, value] : option.selects) base.push_back({path, value});
      for (const auto& [path, value] : option.beside) base.push_back({path, value});
    }
    if (change.value.empty()) {
      MESSAGE(option.path << ": has one value only");
      continue;
    }
    if (option.path == kDecidedByData) {
      CHECK(load_train_config("", base).ok());
      CHECK(load_train_config("", with(base, {option.path, "next_token"}))
                .error()
                .message()
                .find("--objective.type: objective.type: next_token cannot train on pairs") == 0);
      CHECK(load_train_config("", with(kBase, {option.path, "dpo"}))
                .error()
                .message()
                .find("--objective.type: objective.type: dpo needs preference pairs") == 0);
      ++changed;
      continue;
    }
    if (option.path == kSkipsRows) {
      base.push_back({"data.train_urls", "[corpus, malformed]"});
      CHECK(open_error(base, **engine).find("malformed/a.jsonl:2: not valid JSON") != std::string::npos);
      CHECK(open_error(with(base, change), **engine) == "");
      ++changed;
      continue;
    }
    if (option.path == kLimitsLength) {
      base.push_back({"trainer.num_train_steps", "100000"});
      CHECK(open_error(base, **engine) == "");
      CHECK(open_error(with(base, change), **engine).find("data.stop_strategy first_exhausted") !=
            std::string::npos);
      ++changed;
      continue;
    }
    std::string key;
    for (size_t i = kBase.size(); i < base.size(); ++i) key += base[i].path + "=" + base[i].value + "\n";
    if (!baselines.contains(key)) baselines.emplace(key, observe(base, **engine));
    const Seen& before = baselines.at(key);
    const Seen after = observe(with(base, change), **engine);
    switch (option.effect) {
      case config::Effect::kBits:
      case config::Effect::kSchedule:
        CHECK_MESSAGE((after.bits != before.bits), "bits must change");
        CHECK_MESSAGE((after.canonical != before.canonical) != option.by_content, "canonical config");
        break;
      case config::Effect::kPlan:
        CHECK_MESSAGE((after.plan != before.plan), "plan must change");
        CHECK_MESSAGE((after.bits == before.bits), "bits must not change");
        CHECK_MESSAGE((after.canonical == before.canonical), "canonical must not change");
        break;
      case config::Effect::kOutput:
        CHECK_MESSAGE(
            (after.output != before.output) ==
                (option.path != kMemoryOnly && !is_time_limit(option.path) && !is_beside(option.path)),
            "output must change");
        CHECK_MESSAGE((after.bits == before.bits), "bits must not change");
        CHECK_MESSAGE((after.canonical == before.canonical), "canonical must not change");
        break;
    }
    ++changed;
  }
  MESSAGE(changed << " options were changed");
  CHECK(changed >= 50);
}

}  // namespace
}  // namespace ostro::train
