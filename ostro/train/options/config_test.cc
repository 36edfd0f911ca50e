#include "ostro/train/options/config.h"

#include "ostro/models/decoder/decoder.h"
#include "ostro/train/options/llama_for_test.h"
#include "ostro/train/options/mesh.h"
#include "ostro/train/options/shown_config.h"

#include <doctest/doctest.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <utility>

namespace ostro::train {
namespace {

using config::Override;

const std::string kSource = OSTRO_SOURCE_DIR;
const std::string kDense = kSource + "/bench/dense.yaml";

std::string slurp(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::string error_of(std::vector<Override> overrides) {
  const Result<TrainConfig> config = load_train_config(kDense, overrides);
  return config.ok() ? "" : config.error().message();
}

// Whether one of the errors begins with this text, behind its place or without one.
bool says(const std::string& errors, const std::string& text) {
  for (const std::string& error : config::split_errors(errors))
    if (error.starts_with(text) || error.find(": " + text) != std::string::npos) return true;
  return false;
}

TEST_CASE("mistakes of all sections are named in one run, and nothing that only follows from one of them") {
  const std::string text =
      "data: {train_urls: [x], validation_fraction: 2}\n"                             // 1
      "model:\n  type: llama\n  hiden_dim: 64\n  num_heads: 3\n  num_kv_heads: 2\n"   // 4: unknown
      "optimizer: {type: adamw}\n"                                                    // 7
      "trainer:\n  lr: 1\n  train_batch_size: 13\n  steps_per_eval: -1\n  id: a/b\n"  // 9, 11, 12
      "numerics: {leaf_examples: x, leaves: {mpl: 2}}\n"                              // 13, twice
      "chain: 3\n";                                                                   // 14
  const auto config = parse_train_config(text, "c.yaml", models::builtin_models());
  REQUIRE(!config.ok());
  const std::string all = config.error().message();
  for (const std::string error :
       {"c.yaml:1: data.validation_fraction: 2 is not a fraction",
        "c.yaml:4: unknown key \"model.hiden_dim\"",
        "c.yaml:5: model.num_heads: 3 is not a multiple of model.num_kv_heads, which is 2",
        "c.yaml:7: optimizer.type: unknown type \"adamw\"; it is called optimizer.type: adam here",
        "c.yaml:9: unknown key \"trainer.lr\"; it is called optimizer.learning_rate here",
        "c.yaml:11: trainer.steps_per_eval: -1 is too small", "c.yaml:12: trainer.id: \"a/b\" cannot name",
        "c.yaml:13: numerics.leaf_examples: expected an integer", "c.yaml:14: chain: expected a section"})
    CHECK_MESSAGE(("\nerror: " + all).find("\nerror: " + error) != std::string::npos, error, "\n", all);
  // The width that was meant is not known, and neither is the leaf: nothing is said of 13 and of heads of 64.
  CHECK_MESSAGE(config::split_errors(all).size() == 9, all);
}

TEST_CASE("the configs in the repository resolve, and the resolved text is a fixed point") {
  for (const char* name : {"quickstart", "nano_test"}) {
    const Result<TrainConfig> config = load_train_config(kSource + "/configs/" + name + ".yaml", {});
    REQUIRE_MESSAGE(config.ok(), config.error().message());
    const std::string text = config::resolved_yaml(*config);
    TrainConfig again;
    const Result<config::Node> tree = config::parse_yaml(text, "resolved.yaml");
    REQUIRE_MESSAGE(tree.ok(), text);
    check_ok(config::read_value(*tree, "", &again));
    check_ok(again.resolve());
    CHECK(config::resolved_yaml(again) == text);
    CHECK(config::canonical_config(again) == config::canonical_config(*config));
  }
}

TEST_CASE("values that follow from others are filled in") {
  const std::vector<Override> overrides = {{"numerics.leaf_examples", "null"},
                                           {"trainer.train_batch_size", "24"},
                                           {"numerics.leaves", "{pos: 2, mlp: 4, kv_heads: 1}"}};
  const Result<TrainConfig> config = load_train_config(kDense, overrides);
  REQUIRE_MESSAGE(config.ok(), config.error().message());
  CHECK(config->numerics.leaf_examples == 12);  // 12 * 256 = 3,072 tokens; 24 would be 6,144
  CHECK(config->numerics.leaves == config::IntMap{{"mlp", 4}, {"pos", 2}});
  CHECK(
      models::model_options_as<models::DecoderOptions, models::Decoder>(config->model_options())->head_dim ==
      64);
  CHECK(run_directory(*config) == "runs/dense");
  TrainConfig in_store = *config;
  for (const char* place : {"s3://b/runs", "s3://b/runs/", "s3://b//runs//"}) {
    in_store.trainer.log_dir = place;
    CHECK(run_directory(in_store) == "s3://b/runs/dense");
  }
  CHECK(default_leaf_examples({16}, 256) == 16);
  CHECK(default_leaf_examples({16}, 5000) == 1);
  CHECK(default_leaf_examples({7}, 1000) == 1);
}

TEST_CASE("what makes no sense is refused with both values and the fix") {
  const std::vector<std::pair<Override, std::string>> cases = {
      {{"numerics.leaf_examples", "5"},
       "trainer.train_batch_size: 16 is not a multiple of numerics.leaf_examples, which is 5; use "
       "leaf_examples 4 or a "
       "batch of 20"},
      {{"numerics.leaf_examples", "0"}, "numerics.leaf_examples: 0 is not positive"},
      {{"numerics.slice_partials", "-1"}, "numerics.slice_partials: -1 groups; use 0 or more"},
      {{"model.num_kv_heads", "3"}, "model.num_heads: 4 is not a multiple of model.num_kv_heads, which is 3"},
      {{"model.hidden_dim", "250"}, "model.hidden_dim: 250 is not a multiple of model.num_heads, which is 4"},
      {{"model.head_dim", "33"}, "model.head_dim: 33 is not a positive even number"},
      {{"model.head_dim", "1026"},
       "model.head_dim: 1026 is above 1024, the widest head that attention takes; use more and narrower "
       "heads"},
      {{"model.hidden_dim", "8192"}, "model.head_dim: 2048 is above 1024"},
      {{"model.seq_len", "0"}, "model.seq_len: 0 is not positive"},
      {{"model.gradient_checkpointing", "some"}, "model.gradient_checkpointing: unknown name \"some\""},
      {{"model.gradient_checkpointing", "qkv,"}, "model.gradient_checkpointing: unknown name \"\""},
      {{"model.activation_function", "swish"},
       "--model.activation_function: model.activation_function: expected one of silu | gelu | gelu_new | "
       "relu"},
      {{"trainer.mp", "p=bf16,c=bf16"}, "trainer.mp: p=bf16 in \"p=bf16,c=bf16\": parameters are always f32"},
      {{"trainer.mp", "c=f16"}, "trainer.mp: unknown type \"f16\"; use f32, bfloat16, int8 or bf16_tc16"},
      {{"trainer.mp", "x=f32"}, "trainer.mp: \"x=f32\" in \"x=f32\" is not understood"},
      {{"trainer.tracker", "[{type: mlflow}]"},
       "--trainer.tracker:1: trainer.tracker[0].type: unknown type \"mlflow\"; known: json, tensorboard, "
       "wandb"},
      {{"trainer.tracker", "[{type: json}, {type: json}]"}, "trainer.tracker: lists the same type twice"},
      {{"trainer.per_device_parallelism", "4"},
       "--trainer.per_device_parallelism: trainer.per_device_parallelism is refused"},
      {{"trainer.id", "a/b"}, "trainer.id: \"a/b\" cannot name a directory"},
      {{"trainer.checkpointer.keep", "[{every: 5}, {every: 10}]"},
       "trainer.checkpointer.keep: policy 2 is never reached"},
      {{"optimizer.beta1", "1"}, "optimizer.beta1: 1 is not allowed"},
      {{"optimizer.warmup", "1000000"}, "optimizer.warmup: 1000000 steps of warm-up"},
      {{"optimizer.warmup", "2.5"}, "optimizer.warmup: 2.5 is not allowed"},
      {{"optimizer.type", "lyon"}, "--optimizer.type: optimizer.type: unknown type \"lyon\""},
      {{"numerics.leaves", "{mpl: 2}"}, "numerics.leaves.mpl: the model has no such axis to cut"},
      {{"numerics.leaves", "{kv_heads: 3}"}, "numerics.leaves.kv_heads: 3 is more than the axis has: 2"},
      {{"trainer.mp", "p=f32,c=int4"},
       "trainer.mp: unknown type \"int4\"; use f32, bfloat16, int8 or bf16_tc16"},
      {{"trainer.mp", "c=int8,a=bf16"},
       "trainer.mp: a=bf16 in \"c=int8,a=bf16\": attention computes in the type of c; write a=int8"},
      {{"trainer.mp", "p=int8"}, "trainer.mp: p=int8 in \"p=int8\": parameters are always f32"},
      {{"numerics.cells", "{embed: 0}"}, "numerics.cells.embed: 0 is not a count"},
      {{"trainer.tensor_parallel_axes", "[mlp, vocb]"},
       "trainer.tensor_parallel_axes: the model has no axis \"vocb\" that workers can split; it has "
       "kv_heads, "
       "mlp, vocab, pos, embed, head_dim; the nearest is \"vocab\""},
      {{"trainer.fsdp_axis", "embd"}, "trainer.fsdp_axis: the model has no axis \"embd\""},
      {{"trainer.axis_resources", "{poz: model}"}, "trainer.axis_resources: the model has no axis \"poz\""},
      {{"trainer.parameter_axis_resources", "{ml: data}"},
       "trainer.parameter_axis_resources: the model has no axis \"ml\""},
      {{"trainer.axis_resources", "{pos: contxt}"},
       "trainer.axis_resources: axis \"pos\" is mapped to the mesh axis \"contxt\""},
      {{"data.train_urls", "[]"}, "data.train_urls: is empty"},
      {{"data.validation_fraction", "1"}, "data.validation_fraction: 1 is not a fraction"},
      {{"data.shuffle", "0"}, "data.shuffle: 0 is not a number of sequences"},
      {{"modle.seq_len", "1"}, "--modle.seq_len: unknown key \"modle\"; the nearest known key is \"model\""},
  };
  for (const auto& [override, message] : cases)
    CHECK_MESSAGE(says(error_of({override}), message), override.path, ": ", error_of({override}));
  CHECK(error_of({{"trainer.per_device_parallelism", "4"}}).find("numerics.leaf_examples") !=
        std::string::npos);
}

TEST_CASE("integer products go with feature leaves and with experts") {
  TrainConfig c = tiny_llama();
  c.trainer.mp = "p=f32,c=int8";
  CHECK(c.resolve().ok());
  c.numerics.leaves = {{"mlp", 2}};
  CHECK(c.resolve().ok());
  c = tiny_llama();
  c.trainer.mp = "int8";
  llama(c).num_experts = 4, llama(c).num_experts_per_tok = 2;
  CHECK(c.resolve().ok());
}

TEST_CASE("attention on integers is refused where a model has none") {
  TrainConfig c = tiny_llama();
  for (const char* mp : {"p=f32,c=int8,a=int8", "c=f32,a=int8", "c=bf16,a=int8"}) {
    c.trainer.mp = mp;
    CHECK(c.resolve().ok());
  }
  CHECK(error_of({{"model.type", "grok"},
                  {"model.num_experts", "4"},
                  {"model.rounding", "released"},
                  {"trainer.mp", "c=bf16,a=int8"}})
            .find("trainer.mp: \"c=bf16,a=int8\" has a=int8, and the attention of model.type grok") !=
        std::string::npos);
}

TEST_CASE("precision is read from its string") {
  CHECK(parse_precision("p=f32,c=bfloat16").value() == Compute::kBf16);
  CHECK(parse_precision("bf16").value() == Compute::kBf16);
  CHECK(parse_precision("f32").value() == Compute::kF32);
  CHECK(parse_precision("compute=bfloat16,params=float32,output=f32").value() == Compute::kBf16);
  CHECK(parse_precision("p=f32,c=int8").value() == Compute::kInt8);
  CHECK(parse_precision("p=f32,c=int8,a=int8").value() == MixedPrecision(Compute::kInt8, true));
  CHECK(parse_precision("c=bf16,attention=int8").value() == MixedPrecision(Compute::kBf16, true));
  CHECK(parse_precision("c=int8").value() != MixedPrecision(Compute::kInt8, true));
  CHECK(parse_precision("p=f32,c=bf16_tc16").value() == Compute::kBf16Tc16);
  CHECK(precision_word(parse_precision("bf16_tc16").value()) == "bf16_tc16");
  CHECK(!parse_precision("p=bf16_tc16").ok());
  CHECK(!parse_precision("c=f32,a=bf16_tc16").ok());
  CHECK(all_precisions().size() == 8);
  for (const MixedPrecision& precision : all_precisions())
    CHECK(parse_precision(precision_word(precision)).value() == precision);
  CHECK(!parse_precision("p=int8").ok());
  CHECK(!parse_precision("").ok());
  CHECK(!parse_precision("p=f32,").ok());
}

TEST_CASE("keep policies") {
  CheckpointerOptions options;
  options.keep = {{10, 50}, {100, {}}};
  std::vector<int64_t> kept;
  for (int64_t step = 0; step <= 300; ++step)
    if (options.is_kept(step)) kept.push_back(step);
  CHECK(kept == std::vector<int64_t>{10, 20, 30, 40, 50, 100, 200, 300});
}

TEST_CASE("a replica axis is an outer one where only axes of size 1 come before it") {
  const auto outer = [](config::IntMap axes) {
    ShardingOptions options;
    options.mesh.axes = std::move(axes);
    return outer_replicas(options);
  };
  CHECK(outer({{"replica", 4}, {"data", -1}}) == 4);
  CHECK(outer({{"data", 1}, {"replica", 4}, {"model", 2}}) == 4);
  CHECK(outer({{"replica", -1}, {"data", 2}}) == -1);
  CHECK(outer({{"data", -1}, {"replica", 4}}) == 0);
  CHECK(outer({{"data", 2}, {"replica", -1}}) == 0);
  CHECK(outer(MeshOptions().axes) == 0);
  CHECK(outer({}) == 0);
}

TEST_CASE("every option has another legal value, and the canonical config shows exactly bits and schedule") {
  for (const std::string& file : {kDense, kSource + "/configs/nano_test.yaml"}) {
    const Result<TrainConfig> base = load_train_config(file, {});
    REQUIRE(base.ok());
    int options = 0;
    for (const config::OptionInfo& info : config::list_options(*base)) {
      if (info.effect > config::Effect::kSchedule) CHECK_MESSAGE(info.fixed.empty(), info.path);
      if (config::is_inside_element(info.path)) continue;
      if (info.other_value.empty()) {
        CHECK_MESSAGE(info.path.ends_with(".type"), info.path);  // a section of one type only
        continue;
      }
      if (info.path == "objective.type") continue;  // the data decide it: every kind has one
      const bool pairs = info.path.starts_with("objective.");
      std::vector<Override> before = {{"data.train_urls", "[x]"}};
      if (pairs) before = {{"data.components", "{p: {train_urls: [x], format: {type: preference}}}"}};
      for (const auto& [path, value] : info.selects)
        if (path == "optimizer.type")  // the files have options that only some optimizers know
          before.push_back({"optimizer", "{type: " + value + "}"});
        else
          before.push_back({path, value});
      for (const auto& [path, value] : info.beside) before.push_back({path, value});
      std::vector<Override> after = before;
      if (info.path == "optimizer.type")
        after.push_back({"optimizer", "{type: " + info.other_value + "}"});
      else
        after.push_back({info.path, info.other_value});
      // The files describe a Llama; what it has, another family may refuse.
      const bool family = !info.selects.empty() && info.selects[0].first == "model.type" &&
                          info.selects[0].second != base->model.value().type();
      const std::string& below = family || pairs ? std::string() : file;
      const Result<TrainConfig> a = load_train_config(below, before), b = load_train_config(below, after);
      REQUIRE_MESSAGE(a.ok(), info.path, ": ", a.error().message());
      REQUIRE_MESSAGE(b.ok(), b.error().message());
      CHECK_MESSAGE(config::resolved_yaml(*a) != config::resolved_yaml(*b), info.path);
      const bool in_chain = !info.by_content && info.effect <= config::Effect::kSchedule;
      CHECK_MESSAGE((config::canonical_config(*a) != config::canonical_config(*b)) == in_chain, info.path);
      ++options;
    }
    CHECK(options > 45);
  }
}

TEST_CASE("options younger than the first runs are left out of the canonical config at their default") {
  for (const config::OptionInfo& info : config::list_options(TrainConfig{}))
    if (!info.left_out_at.empty()) CHECK_MESSAGE(info.left_out_at == info.default_value, info.path);
}

TEST_CASE("components, their weights and stages are read, and mistakes are named") {
  const Override no_urls{"data.train_urls", "[]"};
  const auto error = [&](const std::string& components, const std::string& weights) {
    return error_of({no_urls, {"data.components", components}, {"data.train_weights", weights}});
  };
  const std::string two = "{b: {train_urls: [y]}, a: {train_urls: [x], format: {type: chat}}}";
  const auto config = load_train_config(
      kDense, std::vector<Override>{no_urls,
                                    {"data.components", two},
                                    {"data.train_weights", "[[0, {a: 3, b: 1}], [10, {b: 1}]]"},
                                    {"data.components.a.format.pack", "false"}});
  REQUIRE_MESSAGE(config.ok(), config.error().message());
  const data::DataOptions& d = config->data;
  const std::vector<data::Component> all = data::components_of(d);
  REQUIRE(all.size() == 2);
  CHECK(all[0].name == "a");
  CHECK(all[1].cache_dir == d.cache_dir + "/b");
  CHECK(!std::get<data::ChatFormat>(all[0].format).pack);
  CHECK(data::weight_of(d, "a", 9) == 3);
  CHECK(data::weight_of(d, "a", 10) == 0);
  CHECK(config::canonical_config(*config).find(
            R"("components":{"a":{"format":{"chat_template":null,"mask_user_turns":true)") !=
        std::string::npos);
  CHECK(config::canonical_config(*config).find(R"("train_weights":[[0,{"a":3.0,"b":1.0}],[10,{"b":1.0}]])") !=
        std::string::npos);

  const std::vector<std::array<std::string, 3>> cases = {
      {two, "{a: 1, c: 1}", "data.train_weights: there is no component \"c\"; the nearest is \"a\""},
      {two, "{a: 1}", "data.train_weights: component \"b\" has no weight; add b: 0 for evaluation only"},
      {two, "{a: -1, b: 1}", "data.train_weights.a: -1 is not a weight"},
      {two, "{a: 0, b: 0}", "data.train_weights: no component has a weight above 0; weigh a, b, like {a: 1}"},
      {two, "[[1, {a: 1, b: 1}]]",
       "--data.train_weights:1: data.train_weights[0][0]: expected 0, the first step"},
      {two, "[[0, {a: 1, b: 1}], [0, {a: 1}]]",
       "--data.train_weights:1: data.train_weights[1][0]: expected a step"},
      {two, "[[0]]", "--data.train_weights:1: data.train_weights[0]: expected a stage, [first step, value]"},
      {"{a/b: {train_urls: [x]}, a: {train_urls: [y]}}", "{a: 1, a/b: 1}",
       "data.components.a: \"a/b\" would lie inside its folder"},
      {"{a.rows/b: {train_urls: [x]}, a: {train_urls: [y]}}", "{a: 1, a.rows/b: 1}",
       "data.components.a: \"a.rows/b\" would lie inside its folder"},
      {"{.a: {train_urls: [x]}}", "{}", "data.components..a: \".a\" cannot name a component"},
      {"{train: {train_urls: [x]}}", "{}", "data.components.train: \"train\" is the name of a folder"},
      {"{a: {validation_urls: [x]}}", "{a: 1}", "data.train_weights.a: 1 is above 0"},
      {"{a: {train_urls: [x], cache_dir: c}, b: {train_urls: [x], cache_dir: c}}", "{a: 1, b: 1}",
       "data.components.b.cache_dir: c is the store of component \"a\", too"},
      {"{a: {train_urls: [x], format: {type: chat, text_key: t}}}", "{}",
       "--data.components:1: unknown key \"data.components.a.format.text_key\""},
  };
  for (const auto& [components, weights, message] : cases)
    CHECK_MESSAGE(says(error(components, weights), message), error(components, weights));
  CHECK(says(error_of({{"data.components", two}}), "data.train_urls: texts are named here and in"));
  CHECK(says(error_of({{"data.train_weights", "{a: 1}"}}), "data.train_weights: weighs components"));
  CHECK(error_of({{"data.shuffle", "{type: block, io_blocksize: 3}"}})
            .find("unknown key \"data.shuffle.io_blocksize\"") != std::string::npos);
  CHECK(says(error_of({{"data.target_budget", "10"}}), "data.experiment_budget: is null"));
}

TEST_CASE("the canonical config names no place and no run") {
  const std::vector<Override> overrides = {
      {"data.tokenizer", "/secret/t.json"}, {"data.cache_dir", "/secret/c"},
      {"data.train_urls", "[/secret/x]"},   {"trainer.id", "secret"},
      {"trainer.log_dir", "/secret/runs"},  {"data.validation_urls", "[/secret/y]"}};
  const Result<TrainConfig> a = load_train_config(kDense, {}), b = load_train_config(kDense, overrides);
  REQUIRE(a.ok());
  REQUIRE(b.ok());
  CHECK(config::canonical_config(*a) == config::canonical_config(*b));
}

// OSTRO_UPDATE_DOCS=1 writes the file instead.
TEST_CASE("docs/reference/config.md is what the declarations say") {
  const std::string text =
      "<!-- Generated from the option structs: OSTRO_UPDATE_DOCS=1 train_test writes it. Do not edit. -->\n"
      "# Configuration\n\n"
      "The configuration is one YAML file. On the command line, `--a.b.c value` overrides a key; a list or "
      "map "
      "is written as YAML: `--trainer.tracker '[{type: json}]'`. In the file, `!include file.yaml` inserts "
      "the "
      "content of that file; its path is relative to the file that includes it. An unknown key, a value of "
      "the wrong type and a combination "
      "that makes no sense are errors. Other paths are relative to the working directory.\n\n"
      "*Effect* says what changes when the option changes:\n\n"
      "- **bits**: the numbers of the run;\n"
      "- **schedule**: what the hash chain records and when;\n"
      "- **plan**: only how the same numbers are computed;\n"
      "- **output**: only files, logs and evaluations.\n\n"
      "The options with the effects bits and schedule form the canonical config in the chain. For an option "
      "marked *by content*, the chain has the hash of what the option names. A run that has begun can "
      "continue with other values (`ostro train --amend`, [formats/chain.md](formats/chain.md)), except of "
      "options marked *fixed* or *by content*.\n\n"
      "The defaults below are used for keys that a file leaves out.\n" +
      config::options_markdown(config::list_options(TrainConfig{}));
  const std::string path = kSource + "/docs/reference/config.md";
  if (std::getenv("OSTRO_UPDATE_DOCS")) std::ofstream(path) << text;
  CHECK_MESSAGE(slurp(path) == text,
                "docs/reference/config.md is stale; run OSTRO_UPDATE_DOCS=1 on this test program");
}

TEST_CASE("words of commands, which may have a secret, are not in a config that others see") {
  const auto given = load_train_config(
      kDense, std::vector<Override>{{"trainer.alert_command", "[curl, \"https://hooks.example.org/SECRET\"]"},
                                    {"trainer.notice_command", "[probe, --key, SECRET]"}});
  REQUIRE_MESSAGE(given.ok(), given.error().message());
  const std::string whole = config::resolved_yaml(*given), shown = config_to_show(whole);
  CHECK(whole.find("SECRET") != std::string::npos);
  CHECK_MESSAGE(shown.find("SECRET") == std::string::npos, shown);
  const auto read = parse_train_config(shown, "shown", models::builtin_models());
  REQUIRE_MESSAGE(read.ok(), read.error().message());
  TrainConfig without = *given;
  without.trainer.alert_command.clear(), without.trainer.notice_command.clear();
  CHECK(config::resolved_yaml(*read) == config::resolved_yaml(without));
  CHECK(config_to_show(shown) == shown);
  CHECK(config_to_show(*given) == shown);
  for (const char* text : {"", "[", "trainer: {}\n", "trainer: 3 # as it is\n"})
    CHECK(config_to_show(text) == text);
}

}  // namespace
}  // namespace ostro::train
