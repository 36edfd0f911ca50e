#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "ostro/hf/elements.h"
#include "ostro/hf/export.h"
#include "ostro/hf/model_files.h"
#include "ostro/hf/tiny_model_for_test.h"
#include "ostro/hf/weights.h"
#include "ostro/io/arrays/safetensors.h"

namespace ostro::hf {
namespace {

using Json = nlohmann::ordered_json;

// Options of the family at other values than its own, where it shows them.
models::DecoderOptions unusual(std::string_view type) {
  models::DecoderOptions o(type);
  o.seq_len = 32, o.hidden_dim = 24, o.intermediate_dim = 20, o.num_layers = 5;
  o.num_heads = 6, o.num_kv_heads = 2;
  if (o.family->shows("max_position_embeddings")) o.max_position_embeddings = 32;
  // OLMoE's heads are as wide as hidden_dim makes them.
  if (o.family->shows("head_dim") && type != "olmoe") o.head_dim = 8;
  if (o.family->shows("rope") && type != "phi3")
    o.rope = models::RopeYarnOptions{777, 3, 16, 20, 2, 1.5, false};
  if (o.family->shows("sliding_window")) o.sliding_window = 7;
  if (o.family->shows("layer_pattern"))
    o.layer_pattern = {models::LayerKind::kSliding, models::LayerKind::kFull, models::LayerKind::kFull};
  if (o.family->shows("query_pre_attn_scalar")) o.query_pre_attn_scalar = 11;
  if (o.family->shows("attn_logit_softcapping")) o.attn_logit_softcapping = 9.5;
  if (o.family->shows("attention_multiplier")) o.attention_multiplier = 0.3;
  if (o.family->shows("rope_local_theta")) o.rope_local_theta = 321;
  if (o.family->shows("parallel")) o.parallel = !o.parallel;
  if (o.family->shows("qkv_bias")) o.qkv_bias = !o.qkv_bias;
  if (o.family->shows("out_bias")) o.out_bias = o.qkv_bias;
  if (o.family->shows("mlp_bias")) o.mlp_bias = o.qkv_bias;
  if (o.family->shows("partial_rotary_factor")) o.partial_rotary_factor = 0.5;
  if (o.num_experts > 0) o.num_experts = 5, o.num_experts_per_tok = 3;
  if (o.family->shows("n_group")) o.num_experts = 6, o.n_group = 3, o.topk_group = 2;
  if (o.family->shows("routed_scaling_factor")) o.routed_scaling_factor = 1.7;
  if (o.family->shows("shared_intermediate_dim")) o.shared_intermediate_dim = 40;
  if (o.family->shows("first_k_dense_replace")) o.first_k_dense_replace = 2, o.dense_intermediate_dim = 28;
  if (o.family->shows("rope_interleaved")) o.rope_interleaved = !o.rope_interleaved;
  if (o.family->shows("kv_lora_rank")) {
    o.kv_lora_rank = 10, o.qk_nope_head_dim = 6, o.qk_rope_head_dim = 4, o.v_head_dim = 8;
    o.q_lora_rank = o.q_lora_rank > 0 ? 0 : 11;
    std::get<models::RopeYarnOptions>(o.rope).mscale_all_dim = 0.8;
  }
  if (o.family->shows("norm_topk_prob")) o.norm_topk_prob = !o.norm_topk_prob;
  o.activation_function = models::Activation::kGeluTanh;
  o.tie_word_embeddings = !o.tie_word_embeddings;
  o.layer_norm_epsilon = 3e-4;
  check_ok(o.resolve());
  return o;
}

TEST_CASE("what config.json says of a family is read back equal") {
  const tokenizer::Tokenizer tokenizer = tiny_tokenizer();
  for (const HfFamily& family : hf_families()) {
    CAPTURE(family.type);
    const models::DecoderOptions o = unusual(family.type);
    const auto text = config_json({o, 260}, tokenizer);
    REQUIRE(text.ok());
    const auto read = read_config_json(*text, "config.json");
    if (!read.ok()) FAIL(read.error().message());
    CHECK(read->vocab == 260);
    CHECK(read->options.signature() == o.signature());
    CHECK(config_json(*read, tokenizer).value() == *text);
  }
}

TEST_CASE("one key for several biases: a model in which they differ cannot be written") {
  const tokenizer::Tokenizer tokenizer = tiny_tokenizer();
  int seen = 0;
  for (const HfFamily& family : hf_families()) {
    models::DecoderOptions o = unusual(family.type);
    if (!o.family->shows("out_bias") || family.type == "seed_oss") continue;  // which has a key for each
    CAPTURE(family.type);
    ++seen;
    o.out_bias = !o.qkv_bias;
    const auto text = config_json({o, 260}, tokenizer);
    REQUIRE_FALSE(text.ok());
    CHECK(text.error().message().find("model.qkv_bias") != std::string::npos);
    CHECK(text.error().message().find("model.out_bias") != std::string::npos);
  }
  CHECK(seen == 16);
}

TEST_CASE("every element of every parameter is in one tensor, whatever the family") {
  for (const HfFamily& family : hf_families()) {
    CAPTURE(family.type);
    const TinyModel m(unusual(family.type));
    const auto parts = family_weights(m.options);
    REQUIRE(parts.ok());
    size_t parameters = 0;
    for (size_t k = 0; k < m.functions.paths.size(); ++k) {
      std::vector<int> seen(static_cast<size_t>(m.functions.shapes[k].count()), 0);
      for (const WeightPart& part : *parts) {
        if (part.path != m.functions.paths[k]) continue;
        const PartPlaces places = part_places(part, m.functions.shapes[k]);
        for (const int64_t row : places.rows)
          for (const int64_t column : places.columns) ++seen[static_cast<size_t>(row + column)];
      }
      CAPTURE(m.functions.paths[k]);
      CHECK(std::count(seen.begin(), seen.end(), 1) == static_cast<int64_t>(seen.size()));
      parameters += seen.size();
    }
    const auto weights = NamedWeights::create(m.options, m.functions.paths, m.values);
    REQUIRE(weights.ok());
    size_t bytes = 0;
    for (const io::SafetensorsEntry& e : weights->entries()) bytes += e.bytes.size();
    CHECK(bytes == parameters * sizeof(float));
  }
}

// The tensors' bytes, part by part out of whole weights: by name.
std::map<std::string, std::vector<std::byte>> taken(const TinyModel& m, const char* dtype) {
  std::map<std::string, std::vector<std::byte>> out;
  const auto& paths = m.functions.paths;
  const std::vector<WeightPart> parts = family_weights(m.options).value();
  for (const WeightPart& part : parts) {
    const auto k = static_cast<size_t>(std::find(paths.begin(), paths.end(), part.path) - paths.begin());
    const std::vector<std::byte> wide = take_part(part, m.values.at(k));
    std::vector<std::byte>& bytes = out[part.name];
    const size_t at = bytes.size(), count = wide.size() / sizeof(float);
    bytes.resize(at + count * static_cast<size_t>(io::safetensors_item_size(dtype)));
    elements_from_f32(dtype, {reinterpret_cast<const float*>(wide.data()), count},
                      std::span(bytes).subspan(at));
  }
  return out;
}

TEST_CASE("weights that are read in blocks of rows are the weights in memory, whatever the family") {
  for (const HfFamily& family : hf_families()) {
    const TinyModel m(unusual(family.type));
    for (const char* dtype : {"F32", "BF16"}) {
      const auto weights = NamedWeights::create(m.options, m.functions.paths, m.values, dtype);
      REQUIRE(weights.ok());
      const auto wanted = taken(m, dtype);
      for (const int64_t block : {int64_t{1}, int64_t{37}, int64_t{500}, kBlockElements}) {
        CAPTURE(family.type);
        CAPTURE(block);
        const auto streamed = streamed_weights(
            m.options, {m.functions.paths, m.functions.shapes, checkpoint::boxes_in_memory(m.values)}, dtype,
            block);
        REQUIRE(streamed.ok());
        REQUIRE(streamed->size() == weights->entries().size());
        REQUIRE(streamed->size() == wanted.size());
        for (size_t i = 0; i < streamed->size(); ++i) {
          const io::SafetensorsEntry& entry = weights->entries()[i];
          CHECK((*streamed)[i].name == entry.name);
          CHECK((*streamed)[i].shape == entry.shape);
          std::vector<std::byte> bytes;
          check_ok((*streamed)[i].write([&](std::span<const std::byte> piece) {
            bytes.insert(bytes.end(), piece.begin(), piece.end());
            return Status();
          }));
          CHECK(bytes == wanted.at(entry.name));
          CHECK(std::equal(bytes.begin(), bytes.end(), entry.bytes.begin(), entry.bytes.end()));
        }
      }
    }
  }
}

TEST_CASE("config.json: what a family does not know is refused by name") {
  const tokenizer::Tokenizer tokenizer = tiny_tokenizer();
  const auto refusal = [&](const char* type, const char* key, const Json& value) {
    Json json = Json::parse(config_json({unusual(type), 260}, tokenizer).value());
    json[key] = value;
    const auto read = read_config_json(json.dump(), "d/config.json");
    REQUIRE(!read.ok());
    CHECK(read.error().message().find("d/config.json") != std::string::npos);
    return read.error().message();
  };
  CHECK(refusal("llama", "clip_qkv", 8).find("\"clip_qkv\" is 8") != std::string::npos);
  CHECK(refusal("mistral", "attention_bias", true).find("mistral does not know") != std::string::npos);
  CHECK(refusal("deepseek_v2", "mlp_bias", true).find("only false") != std::string::npos);
  CHECK(refusal("granite", "head_dim", 16).find("here it is 4, \"hidden_size\" divided") !=
        std::string::npos);
  CHECK(refusal("llama", "model_type", "mamba").find("\"mamba\"") != std::string::npos);
  CHECK(refusal("llama", "hidden_act", "mish").find("gelu_new") != std::string::npos);
  CHECK(refusal("llama", "quantization_config", {{"bits", 4}}).find("quantized") != std::string::npos);
  CHECK(refusal("llama", "hidden_size", "big").find("whole number") != std::string::npos);
  CHECK(refusal("llama", "num_attention_heads", 5).find("num_kv_heads") != std::string::npos);
  CHECK(refusal("llama", "rope_theta", 5.0).find("older keys say 5.0") != std::string::npos);
  CHECK(refusal("llama", "rope_parameters", {{"rope_type", "longrope"}, {"rope_theta", 777.0}}).size() > 0);
  CHECK(refusal("gemma2", "layer_types", {"full_attention"}).find("has 1 entries") != std::string::npos);
  CHECK(refusal("qwen3", "layer_types", {"a", "a", "a", "a", "a"}).find("\"a\"") != std::string::npos);
  CHECK(refusal("qwen3_moe", "decoder_sparse_step", 2).find("only 1 is known") != std::string::npos);
  CHECK(refusal("qwen3_moe", "mlp_only_layers", {0, 2}).find("\"mlp_only_layers\" names layer 2") !=
        std::string::npos);
  CHECK(refusal("qwen3_moe", "num_local_experts", 6).find("\"num_experts\" is 5") != std::string::npos);
  CHECK(refusal("olmoe", "clip_qkv", 8.0).find("only null") != std::string::npos);
  CHECK(refusal("gpt2", "scale_attn_by_inverse_layer_idx", true).find("only false") != std::string::npos);
  // Keys of published files that say nothing else than the family is.
  for (const auto& [type, key, value] :
       {std::tuple<const char*, const char*, Json>{"llama", "is_llama_config", true},
        {"llama", "rope_interleaved", false},
        {"qwen2", "use_mrope", false},
        {"phi3", "lm_head_bias", false},
        {"phi3", "interpolate_factor", 1}}) {
    Json json = Json::parse(config_json({unusual(type), 260}, tokenizer).value());
    json[key] = value;
    CHECK(read_config_json(json.dump(), "config.json").ok());
    CHECK(refusal(type, key, value.is_boolean() ? Json(!value.get<bool>()) : Json(2)).find(key) !=
          std::string::npos);
  }
  const auto rope_refusal = [&](const Json& rope) {
    Json json = Json::parse(config_json({unusual("llama"), 260}, tokenizer).value());
    json.erase("rope_scaling"), json["rope_parameters"] = rope, json["rope_theta"] = nullptr;
    const auto read = read_config_json(json.dump(), "c");
    REQUIRE(!read.ok());
    return read.error().message();
  };
  CHECK(rope_refusal({{"rope_type", "spiral"}}).find("rope kind \"spiral\"") != std::string::npos);
  for (const Json& kind : {Json(7), Json::array(), Json::object()})
    CHECK(rope_refusal({{"rope_type", kind}}).find("\"rope_type\" is") != std::string::npos);
  CHECK(rope_refusal({{"rope_type", nullptr}, {"factor", 2.0}}).find("rope kind default") !=
        std::string::npos);
  CHECK(rope_refusal({{"rope_type", "yarn"}, {"factor", 2.0}, {"truncate", "no"}})
            .find("\"truncate\" is \"no\"") != std::string::npos);
  // transformers stretches from max_position_embeddings, whatever else is said.
  CHECK(rope_refusal({{"rope_type", "dynamic"}, {"factor", 2.0}, {"original_max_position_embeddings", 3}})
            .find("stretch dynamic ropes from \"max_position_embeddings\"") != std::string::npos);
  Json longrope = {{"rope_type", "longrope"}, {"short_factor", {1.0, "x"}}, {"long_factor", {2.0}}};
  CHECK(rope_refusal(longrope).find("\"short_factor\" has \"x\"") != std::string::npos);
  longrope["short_factor"] = {1.0};
  CHECK(rope_refusal(longrope).find("\"original_max_position_embeddings\" is missing") != std::string::npos);
  longrope["original_max_position_embeddings"] = 8,
  longrope["short_factor"] = {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0};
  CHECK(rope_refusal(longrope).find("model.rope.short_factor: 7 factors") != std::string::npos);
}

TEST_CASE("config.json: keys that change no number are passed over with a reason, in files of their family") {
  const tokenizer::Tokenizer tokenizer = tiny_tokenizer();
  const auto read = [&](const char* type, const Json& more) {
    Json json = Json::parse(config_json({unusual(type), 260}, tokenizer).value());
    json.update(more);
    return read_config_json(json.dump(), "config.json");
  };
  const auto plain = read("llama", Json::object());
  REQUIRE(plain.ok());
  CHECK(plain->passed_over.empty());
  const auto published = read("llama", {{"unsloth_fixed", true},
                                        {"unsloth_version", "2025.1"},
                                        {"transformers.js_config", {{"dtype", "q4"}}},
                                        {"max_sequence_length", 77},
                                        {"gradient_checkpointing", true},
                                        {"temperature", 0.6},
                                        {"pruned_heads", Json::object()},
                                        {"hidden_dropout", 0.5},
                                        {"torch_dtype", "bfloat16"}});
  REQUIRE(published.ok());
  CHECK(published->options.signature() == plain->options.signature());
  CHECK(published->passed_over.size() == 8);
  CHECK(published->passed_over[0] == "\"unsloth_fixed\" names a class, a program or a version");
  CHECK(read("starcoder2", {{"activation_function", "gelu"}}).value().passed_over.size() == 1);
  CHECK(read("gpt2", {{"n_ctx", 1024}, {"summary_type", "cls_index"}}).value().passed_over.empty());
  // Of another family, or with a value that says something.
  for (const auto& [type, more] : {std::pair<const char*, Json>{"llama", {{"activation_function", "gelu"}}},
                                   {"llama", {{"pruned_heads", {{"0", {1}}}}}},
                                   {"llama", {{"is_encoder_decoder", true}}},
                                   {"llama", {{"hidden_dropout_scale", 2}}},
                                   {"qwen3", {{"num_mtp_layers", 1}}}}) {
    CAPTURE(more.dump());
    const auto refused = read(type, more);
    REQUIRE(!refused.ok());
    CHECK(refused.error().message().find(more.items().begin().key()) != std::string::npos);
  }
  CHECK(read("llama", {{"quantization", {{"bits", 4}}}}).error().message().find("quantized") !=
        std::string::npos);
}

TEST_CASE("config.json: the text part of a model that sees images, and other names of a family") {
  const Json text = {{"hidden_size", 24},
                     {"intermediate_size", 20},
                     {"num_hidden_layers", 2},
                     {"model_type", "gemma3_text"},
                     {"sliding_window", 8}};
  const Json whole = {{"model_type", "gemma3"},
                      {"text_config", text},
                      {"vision_config", {{"depth", 3}}},
                      {"mm_tokens", 256},
                      {"tie_word_embeddings", false}};
  const auto gemma = read_config_json(whole.dump(), "config.json");
  REQUIRE(gemma.ok());
  CHECK(gemma->is_text_part);
  CHECK(gemma->options.type() == "gemma3");
  CHECK(gemma->vocab == 262208);
  CHECK(gemma->options.num_heads == 8);
  CHECK_FALSE(gemma->options.tie_word_embeddings);
  Json wrong = whole;
  wrong["text_config"]["clip_qkv"] = 8;
  CHECK(read_config_json(wrong.dump(), "c").error().message().find("\"clip_qkv\" is 8") != std::string::npos);
  wrong.erase("text_config");
  CHECK(read_config_json(wrong.dump(), "c").error().message().find("no \"text_config\"") !=
        std::string::npos);

  const tokenizer::Tokenizer tokenizer = tiny_tokenizer();
  Json kimi = Json::parse(config_json({unusual("deepseek_v3"), 260}, tokenizer).value());
  kimi["model_type"] = "kimi_k2";
  CHECK(read_config_json(kimi.dump(), "c").value().options.type() == "deepseek_v3");
  Json old_gemma = Json::parse(config_json({unusual("gemma"), 260}, tokenizer).value());
  old_gemma["hidden_act"] = "gelu";
  CHECK(read_config_json(old_gemma.dump(), "c").value().options.activation_function ==
        models::Activation::kGeluTanh);
  old_gemma["hidden_activation"] = "silu";
  CHECK(read_config_json(old_gemma.dump(), "c").error().message().find("differ") != std::string::npos);
}

TEST_CASE("config.json: biases of a Llama, and heads of odd width where nothing turns") {
  const Json sizes = {{"vocab_size", 260},      {"hidden_size", 24},        {"intermediate_size", 20},
                      {"num_hidden_layers", 2}, {"num_attention_heads", 6}, {"model_type", "llama"}};
  Json json = sizes;
  json.update({{"attention_bias", true}, {"mlp_bias", true}});
  const auto llama = read_config_json(json.dump(), "config.json");
  REQUIRE(llama.ok());
  CHECK((llama->options.qkv_bias && llama->options.out_bias && llama->options.mlp_bias));
  const Json gpt2 = {{"model_type", "gpt2"}, {"vocab_size", 260}, {"n_embd", 21},
                     {"n_layer", 2},         {"n_head", 3},       {"n_positions", 16}};
  const auto odd = read_config_json(gpt2.dump(), "config.json");
  REQUIRE(odd.ok());
  CHECK(*odd->options.head_dim == 7);
  json = sizes;
  json["hidden_size"] = 42;
  CHECK(read_config_json(json.dump(), "config.json").error().message().find("rotary position codes") !=
        std::string::npos);
  // Of a head of seven, four elements turn.
  json.update({{"model_type", "gpt_neox"}, {"rotary_pct", 0.6}});
  CHECK(read_config_json(json.dump(), "config.json").value().options.rotary_dim() == 4);
}

TEST_CASE("config.json: what programs would read in two ways is refused") {
  const tokenizer::Tokenizer tokenizer = tiny_tokenizer();
  const Json sizes = {{"vocab_size", 260},
                      {"hidden_size", 24},
                      {"intermediate_size", 20},
                      {"num_hidden_layers", 4},
                      {"num_attention_heads", 6}};
  const auto refusal = [&](const Json& more) {
    Json json = sizes;
    json.update(more);
    const auto read = read_config_json(json.dump(), "config.json");
    REQUIRE(!read.ok());
    return read.error().message();
  };
  const auto says = [](const std::string& text, const char* what) {
    return text.find(what) != std::string::npos;
  };
  const Json neox = {{"model_type", "gpt_neox"}, {"rotary_emb_base", 500}, {"rotary_pct", 0.5}};
  Json twice = neox;
  twice.update({{"rope_theta", 10000}});
  CHECK(says(refusal(twice), "\"rotary_emb_base\" is 500, but \"rope_theta\" 10000"));
  twice = neox;
  twice.update({{"partial_rotary_factor", 1.0}});
  CHECK(says(refusal(twice), "\"rotary_pct\" is 0.5, but \"partial_rotary_factor\" 1"));
  CHECK(says(refusal({{"model_type", "olmo3"}, {"rope_theta", 10000.0}}), "say it by kind of layer"));
  const Json linear = {{"rope_type", "linear"}, {"factor", 2.0}, {"rope_theta", 10000.0}};
  CHECK(says(refusal({{"model_type", "phi3"}, {"rope_parameters", linear}}), "default and longrope"));
  const Json part = {{"rope_theta", 1e6}, {"partial_rotary_factor", 0.5}};
  CHECK(says(refusal({{"model_type", "gemma3_text"},
                      {"num_key_value_heads", 2},
                      {"rope_parameters", {{"full_attention", part}}}}),
             "turn whole"));

  // A dynamic rope has one length for both in Hugging Face's files.
  models::DecoderOptions o = unusual("llama");
  o.rope = models::RopeDynamicOptions{500, 2.0, o.seq_len - 1};
  const auto written = config_json({o, 260}, tokenizer);
  REQUIRE(!written.ok());
  CHECK(says(written.error().message(), "set seq_len to"));
  o.rope = models::RopeDynamicOptions{500, 2.0, o.seq_len + 7};
  const auto longer = read_config_json(config_json({o, 260}, tokenizer).value(), "config.json");
  REQUIRE(longer.ok());
  CHECK(std::get<models::RopeDynamicOptions>(longer->options.rope).original_max_position_embeddings ==
        o.seq_len + 7);

  Json helium = sizes;
  helium.update({{"model_type", "helium"}, {"num_key_value_heads", 6}, {"head_dim", 4}});
  CHECK(models::rope_theta(read_config_json(helium.dump(), "config.json").value().options.rope) == 100000);
}

TEST_CASE("mixtures: the experts of a file have numbers, and what it has no tensor for is refused") {
  models::DecoderOptions o = unusual("mixtral");
  const TinyModel m(o);
  const auto weights = NamedWeights::create(o, m.functions.paths, m.values);
  REQUIRE(weights.ok());
  const auto find = [&](std::string_view name) {
    const io::SafetensorsEntry* found = nullptr;
    for (const io::SafetensorsEntry& e : weights->entries())
      if (e.name == name) found = &e;
    REQUIRE(found != nullptr);
    return found;
  };
  const io::SafetensorsEntry* up = find("model.layers.3.block_sparse_moe.experts.4.w3.weight");
  CHECK(up->shape == std::vector<int64_t>{20, 24});
  // Row 7, column 11 is [layer 3, expert 4, embed 11, up, mlp 7] of [5, 5, 24, 2, 20].
  size_t k = 0;
  while (m.functions.paths[k] != "model/layers/moe/gate_up") ++k;
  float value = 0;
  std::memcpy(&value, up->bytes.data() + (7 * 24 + 11) * sizeof(float), sizeof(float));
  CHECK(value == m.values[k].as<float>()[((3 * 5 + 4) * 24 + 11) * 2 * 20 + 20 + 7]);
  CHECK(find("model.layers.0.block_sparse_moe.gate.weight")->shape == std::vector<int64_t>{5, 24});

  o.track_expert_load = true, o.router_bias_update_rate = 0.001;
  const auto refused = family_weights(o);
  REQUIRE(!refused.ok());
  CHECK(refused.error().message().find("model.router_bias_update_rate is 0.001") != std::string::npos);
}

TEST_CASE("config.json: older forms mean the same") {
  const auto read = [](const Json& json) {
    const auto model = read_config_json(json.dump(), "config.json");
    if (!model.ok()) FAIL(model.error().message());
    return model->options;
  };
  const Json sizes = {{"vocab_size", 260},      {"hidden_size", 24},        {"intermediate_size", 20},
                      {"num_hidden_layers", 7}, {"num_attention_heads", 6}, {"use_cache", true}};
  Json llama = sizes;
  llama.update({{"model_type", "llama"},
                {"rope_theta", 5e5},
                {"max_position_embeddings", 64},
                {"rope_scaling", {{"type", "linear"}, {"factor", 4.0}}}});
  const auto o = read(llama);
  CHECK(o.num_kv_heads == 6);
  CHECK(o.layer_norm_epsilon == 1e-6);
  CHECK(std::get<models::RopeLinearOptions>(o.rope).factor == 4);
  CHECK(models::rope_theta(o.rope) == 5e5);

  // Phi-3's first configurations: the length before stretching stands beside the rope.
  Json phi = sizes;
  phi.update({{"model_type", "phi3"},
              {"max_position_embeddings", 4096},
              {"original_max_position_embeddings", 64},
              {"rope_scaling", {{"type", "su"}, {"short_factor", {1.0, 1.5}}, {"long_factor", {4.0, 5.0}}}}});
  const auto p = std::get<models::RopeLongOptions>(read(phi).rope);
  CHECK(p.long_factor == std::vector<double>{4, 5});
  CHECK(p.original_max_position_embeddings == 64);
  CHECK(p.attention_factor == doctest::Approx(std::sqrt(2.0)));  // 1 + ln 64 / ln 64

  Json gemma = sizes;
  gemma.update({{"model_type", "gemma3_text"},
                {"num_key_value_heads", 2},
                {"rope_theta", 2e6},
                {"rope_local_base_freq", 5e3},
                {"sliding_window_pattern", 6},
                {"sliding_window", 512}});
  const auto g = read(gemma);
  CHECK(g.rope_local_theta == 5e3);
  CHECK(g.layer_pattern.size() == 6);
  CHECK(g.layer(5).window == 0);
  CHECK(g.layer(6).window == 512);
  CHECK(g.head_dim == 256);

  Json neox = sizes;
  neox.update({{"model_type", "gpt_neox"}, {"rotary_pct", 0.5}, {"rotary_emb_base", 25000}});
  CHECK(read(neox).partial_rotary_factor == 0.5);
  CHECK(models::rope_theta(read(neox).rope) == 25000);

  Json qwen = sizes;
  qwen.update({{"model_type", "qwen2"},
               {"num_key_value_heads", 2},
               {"use_sliding_window", true},
               {"sliding_window", 9},
               {"max_window_layers", 3}});
  const auto q = read(qwen);
  CHECK(q.layer(2).window == 0);
  CHECK(q.layer(3).window == 9);
}

TEST_CASE("a config.json of another shape is refused by name") {
  for (const auto& [text, says] : {std::pair{"[]", "c.json: not a JSON object"},
                                   {R"({"model_type": 5})", "c.json: \"model_type\" is not a string"}})
    CHECK_MESSAGE(read_config_json(text, "c.json").error().message().find(says) != std::string::npos,
                  read_config_json(text, "c.json").error().message());
}

}  // namespace
}  // namespace ostro::hf
