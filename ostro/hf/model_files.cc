#include "ostro/hf/model_files.h"

#include <nlohmann/json.hpp>
#include <optional>

namespace ostro::hf {
namespace {

using Json = nlohmann::ordered_json;

Json id_json(const std::optional<uint32_t>& id) { return id ? Json(*id) : Json(nullptr); }

// rope_parameters as in transformers 5. The older keys rope_theta and rope_scaling are made from it.
Json rope_json(const models::RopeOptions& rope) {
  Json out = {{"rope_theta", models::rope_theta(rope)},
              {"rope_type", std::visit([](const auto& r) { return r.kType; }, rope)}};
  if (const auto* linear = std::get_if<models::RopeLinearOptions>(&rope)) {
    out["factor"] = linear->factor;
  } else if (const auto* llama3 = std::get_if<models::RopeLlama3Options>(&rope)) {
    out["factor"] = llama3->factor;
    out["low_freq_factor"] = llama3->low_freq_factor;
    out["high_freq_factor"] = llama3->high_freq_factor;
    out["original_max_position_embeddings"] = llama3->original_max_position_embeddings;
  } else if (const auto* yarn = std::get_if<models::RopeYarnOptions>(&rope)) {
    out["factor"] = yarn->factor;
    out["original_max_position_embeddings"] = yarn->original_max_position_embeddings;
    out["beta_fast"] = yarn->beta_fast;
    out["beta_slow"] = yarn->beta_slow;
    if (yarn->attention_factor) out["attention_factor"] = *yarn->attention_factor;
    out["truncate"] = yarn->truncate;
  }
  return out;
}

Json rope_scaling(Json rope) {
  if (rope["rope_type"] == "default") return nullptr;
  rope.erase("rope_theta");
  return rope;
}

}  // namespace

std::string llama_config_json(const models::DecoderOptions& o, const tokenizer::Tokenizer& tokenizer) {
  const Json rope = rope_json(o.rope);
  const Json config = {
      {"architectures", Json::array({"LlamaForCausalLM"})},
      {"model_type", "llama"},
      {"vocab_size", tokenizer.vocab_size()},
      {"hidden_size", o.hidden_dim},
      {"intermediate_size", o.intermediate_dim},
      {"num_hidden_layers", o.num_layers},
      {"num_attention_heads", o.num_heads},
      {"num_key_value_heads", o.num_kv_heads},
      {"head_dim", o.head_dim.value()},
      {"hidden_act", models::option_names(o.activation_function)[static_cast<size_t>(o.activation_function)]},
      {"max_position_embeddings", o.seq_len},
      {"rms_norm_eps", o.layer_norm_epsilon},
      {"rope_parameters", rope},
      {"rope_theta", rope["rope_theta"]},
      {"rope_scaling", rope_scaling(rope)},
      {"attention_bias", false},
      {"attention_dropout", 0.0},
      {"mlp_bias", false},
      {"tie_word_embeddings", o.tie_word_embeddings},
      {"initializer_range", o.initializer_range},
      {"use_cache", true},
      {"bos_token_id", id_json(tokenizer.bos_id())},
      {"eos_token_id", id_json(tokenizer.eos_id())},
      {"pad_token_id", nullptr},
      {"dtype", "float32"},
      {"torch_dtype", "float32"},
  };
  return config.dump(2) + "\n";
}

std::string generation_config_json(const tokenizer::Tokenizer& tokenizer) {
  const Json config = {{"bos_token_id", id_json(tokenizer.bos_id())},
                       {"eos_token_id", id_json(tokenizer.eos_id())},
                       {"do_sample", false}};
  return config.dump(2) + "\n";
}

}  // namespace ostro::hf
