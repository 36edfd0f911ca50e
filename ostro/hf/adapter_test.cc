#include "ostro/hf/adapter.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "ostro/hf/tiny_model_for_test.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/memory_file_system.h"

namespace ostro::hf {
namespace {

using Json = nlohmann::ordered_json;

// A model of a family with adapters of this rank on matrices, and random values in all of them.
struct Adapted {
  models::DecoderOptions options;
  models::ModelFunctions functions;
  std::vector<runtime::Buffer> values;
  std::vector<WeightPart> base;

  Adapted(const std::string& family, int64_t rank, std::vector<std::string> targets, uint64_t seed)
      : options(family) {
    options.seq_len = 16, options.hidden_dim = 24, options.intermediate_dim = 20, options.num_layers = 3;
    options.num_heads = 6, options.num_kv_heads = options.family->shows("num_kv_heads") ? 2 : 6;
    if (options.family->shows("sliding_window")) options.sliding_window = 7;
    if (options.family->shows("partial_rotary_factor")) options.partial_rotary_factor = 0.5;
    check_ok(options.resolve());
    nn::LoraSpec spec;
    spec.rank = rank;
    spec.targets = std::move(targets);
    functions = models::model_functions<models::Decoder>(options, 40, ir::DType::f32, spec);
    base = family_weights(options).value();
    std::mt19937_64 rng(seed);
    for (size_t k = 0; k < functions.paths.size(); ++k) {
      runtime::Buffer b = runtime::Buffer::zeros(functions.shapes[k]);
      if (seed != 0)
        for (float& x : b.mutable_as<float>())
          x = static_cast<float>(rng() % 15) - 7;  // sums of these are exact
      values.push_back(std::move(b));
    }
  }

  std::vector<LoraModule> modules() const {
    return lora_modules(base, functions.matrices, functions.paths, functions.shapes);
  }
  const runtime::Buffer& value(const std::string& path) const {
    for (size_t k = 0; k < functions.paths.size(); ++k)
      if (functions.paths[k] == path) return values[k];
    FAIL("no parameter " << path);
    return values.front();
  }
  // What is added to a module's weight, row by row: B A of each of its matrices, in the rows that it has.
  std::vector<double> product(const LoraModule& module) const {
    std::vector<double> out(static_cast<size_t>(module.rows * module.inputs), 0.0);
    for (const LoraShare& share : module.shares) {
      const runtime::Buffer &a = value(share.a.path), &b = value(share.b.path);
      const PartPlaces at_a = part_places(share.a, a.shape()), at_b = part_places(share.b, b.shape());
      for (size_t i = 0; i < share.rows.size(); ++i)
        for (size_t c = 0; c < at_a.columns.size(); ++c)
          for (size_t r = 0; r < at_a.rows.size(); ++r)
            out[static_cast<size_t>(share.rows[i] * module.inputs) + c] +=
                static_cast<double>(b.as<float>()[static_cast<size_t>(at_b.rows[i] + at_b.columns[r])]) *
                static_cast<double>(a.as<float>()[static_cast<size_t>(at_a.rows[r] + at_a.columns[c])]);
    }
    return out;
  }
  Status write(io::FileSystem& fs, const std::string& directory, const LoraConfig& config) const {
    return export_lora(fs, directory, config, base, functions.matrices, functions.paths, values, "base", "");
  }
};

// The adapters of a directory in a model of the family.
Adapted read_back(const std::string& family, const LoraFiles& files) {
  const Adapted all(family, 1, {"*"}, 0);
  const auto targets = lora_targets(files, all.modules());
  if (!targets.ok()) FAIL(targets.error().message());
  Adapted out(family, files.rank(), *targets, 0);
  check_ok(take_lora(files, out.base, out.modules(), out.functions.paths, out.values));
  return out;
}

TEST_CASE(
    "adapters that are written for PEFT and read again add the same to every module, whatever the family") {
  for (const char* family : {"llama", "phi3", "gpt2", "gpt_neox", "starcoder2", "glm4", "stablelm"}) {
    CAPTURE(family);
    io::MemoryFileSystem fs;
    const Adapted ours(family, 2, {"*"}, 5);
    check_ok(ours.write(fs, "a", {2, 8, false}));
    const auto files = open_lora(fs, "a");
    REQUIRE(files.ok());
    const Adapted again = read_back(family, *files);
    const std::vector<LoraModule> before = ours.modules(), after = again.modules();
    REQUIRE(before.size() == after.size());
    for (size_t i = 0; i < before.size(); ++i) {
      CAPTURE(before[i].name);
      std::vector<double> wanted = ours.product(before[i]), got = again.product(after[i]);
      const double ours_scale = 8.0 / 2, scale = files->alpha() / static_cast<double>(files->rank());
      for (double& x : wanted) x *= ours_scale;
      for (double& x : got) x *= scale;
      CHECK(wanted == got);
    }
    // As PEFT makes them, with one A for all matrices of a module: of the same rank, and written as they
    // were.
    check_ok(again.write(fs, "b", {files->rank(), files->alpha(), false}));
    const auto twice = open_lora(fs, "b");
    REQUIRE(twice.ok());
    CHECK(twice->config.rank_pattern.empty());
    CHECK(twice->rank() == files->rank());
  }
}

TEST_CASE("the names of modules are those of the family, and long where a short one is not enough") {
  const auto words = [](const char* family, std::vector<std::string> targets) {
    io::MemoryFileSystem fs;
    const Adapted m(family, 2, std::move(targets), 3);
    check_ok(m.write(fs, "a", {2, 4, false}));
    return Json::parse(fs.read_file("a/adapter_config.json").value());
  };
  CHECK(words("llama", {"q_proj"})["target_modules"] == Json({"q_proj"}));
  const Json phi = words("phi3", {"q_proj", "k_proj", "v_proj", "up_proj"});
  CHECK(phi["target_modules"] == Json({"qkv_proj", "gate_up_proj"}));
  CHECK(phi["rank_pattern"] == Json({{"qkv_proj", 6}}));  // three A, but one of gate_up_proj
  CHECK(phi["alpha_pattern"] == Json({{"qkv_proj", 12}}));
  const Json gpt2 = words("gpt2", {"down_proj"});
  CHECK(gpt2["target_modules"] == Json({"mlp.c_proj"}));
  CHECK(gpt2["fan_in_fan_out"] == true);
  CHECK(words("gpt2", {"down_proj", "o_proj"})["target_modules"] == Json({"c_proj"}));
}

TEST_CASE("ranks and factors by module, layers that are left out, and copies of the base") {
  io::MemoryFileSystem fs;
  const Adapted ours("llama", 2, {"q_proj", "down_proj"}, 9);
  check_ok(ours.write(fs, "a", {2, 4, false}));
  const std::string config = fs.read_file("a/adapter_config.json").value();
  const auto with = [&](const Json& more) {
    Json json = Json::parse(config);
    json.update(more);
    check_ok(io::write_file_atomically(fs, "a/adapter_config.json", json.dump()));
    return open_lora(fs, "a");
  };
  // Another factor of one module: twice the product, in B.
  const auto twice = with({{"alpha_pattern", {{"self_attn.q_proj", 8}}}});
  REQUIRE(twice.ok());
  const Adapted read = read_back("llama", *twice);
  const std::vector<LoraModule> modules = read.modules();
  for (const LoraModule& module : modules) {
    std::vector<double> wanted = ours.product(module);
    if (module.name.ends_with("q_proj"))
      for (double& x : wanted) x *= 2;
    CHECK(read.product(module) == wanted);
  }
  CHECK(with({{"rank_pattern", {{"down_proj", 4}}}})->rank() == 4);
  CHECK(with({{"rank_pattern", {{".*q_proj", 4}}}}).error().message().find("expressions are not read") !=
        std::string::npos);
  CHECK(with({{"use_dora", true}}).error().message().find("use_dora") != std::string::npos);

  // The first layer alone: the others have none in the file, and zeros here.
  std::vector<std::vector<std::byte>> storage;
  std::vector<io::SafetensorsEntry> entries;
  const auto all = with(Json::object());
  for (const io::SafetensorsInfo& t : all->tensors.tensors()) {
    if (t.name.find(".layers.0.") == std::string::npos) continue;
    storage.emplace_back(static_cast<size_t>(t.bytes()));
    check_ok(all->tensors.read(t.name, storage.back()));
    entries.push_back({t.name, t.dtype, t.shape, storage.back()});
  }
  const size_t embedding = 0;
  REQUIRE(ours.base[embedding].path == "model/embedding/weight");
  std::vector<float> copy(24 * 40, 0.0F);
  const auto bytes = std::as_bytes(std::span(copy));
  entries.push_back({"base_model.model.lm_head.base_layer.weight", "F32", {40, 24}, bytes});
  check_ok(io::write_safetensors(fs, "a/adapter_model.safetensors", entries, {}));
  CHECK(with({{"layers_to_transform", Json::array({0})}}).ok());
  const auto first = with({{"layers_to_transform", 0}});
  REQUIRE(first.ok());
  const Adapted one = read_back("llama", *first);  // whose base is zero, as the copy is
  for (const LoraModule& module : one.modules()) {
    const std::vector<double> got = one.product(module);
    CHECK((got == ours.product(module)) == (module.layer() == 0));
    if (module.layer() > 0) CHECK(got == std::vector<double>(got.size(), 0.0));
  }
  const auto missing = with(Json::object());
  Adapted other("llama", 2, {"q_proj", "down_proj"}, 0);
  CHECK(take_lora(*missing, other.base, other.modules(), other.functions.paths, other.values)
            .error()
            .message()
            .find("is missing") != std::string::npos);
  copy[7] = 1;
  check_ok(io::write_safetensors(fs, "a/adapter_model.safetensors", entries, {}));
  const auto trained = with({{"layers_to_transform", 0}});
  CHECK(take_lora(*trained, other.base, other.modules(), other.functions.paths, other.values)
            .error()
            .message()
            .find("is not the weight lm_head.weight of the base") != std::string::npos);
}

TEST_CASE("adapters that PEFT has no name for are told before they are trained") {
  const Adapted moe("mixtral", 2, {"*"}, 0);
  CHECK(check_lora_names(moe.base, moe.functions.matrices, moe.modules()).ok());  // experts have none
  const Adapted shared("qwen2_moe", 2, {"*"}, 0);
  const Status refused = check_lora_names(shared.base, shared.functions.matrices, shared.modules());
  REQUIRE(!refused.ok());
  CHECK(refused.error().message().find("experts' matrix") != std::string::npos);
}

}  // namespace
}  // namespace ostro::hf
