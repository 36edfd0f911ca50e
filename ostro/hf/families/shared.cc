// Parts of descriptions that several families have.
#include <algorithm>

#include "ostro/hf/families/family.h"

namespace ostro::hf {

using models::LayerKind;

FamilyNames names_with_layer(std::vector<NameRow> layer) {
  return {"model.",
          "model.layers.",
          {{"model.embed_tokens", Role::kEmbedding}},
          std::move(layer),
          {{"model.norm", Role::kFinalNorm}, {"lm_head", Role::kHead}}};
}

FamilyNames llama_names() {
  return names_with_layer({{"input_layernorm", Role::kAttentionNorm},
                           {"self_attn.q_proj", Role::kQ},
                           {"self_attn.k_proj", Role::kK},
                           {"self_attn.v_proj", Role::kV},
                           {"self_attn.q_norm", Role::kQNorm},
                           {"self_attn.k_norm", Role::kKNorm},
                           {"self_attn.o_proj", Role::kO},
                           {"post_attention_layernorm", Role::kMlpNorm},
                           {"mlp.gate_proj", Role::kGate},
                           {"mlp.up_proj", Role::kUpOfGate},
                           {"mlp.down_proj", Role::kDown}});
}

FamilyNames mixture_names() {
  FamilyNames names = llama_names();
  names.layer.insert(names.layer.end(), {{"mlp.gate", Role::kRouter},
                                         {"mlp.experts.*.gate_proj", Role::kExpertGate},
                                         {"mlp.experts.*.up_proj", Role::kExpertUp},
                                         {"mlp.experts.*.down_proj", Role::kExpertDown}});
  return names;
}

void size_fields(ConfigFields& f, HfModel& m, std::optional<int64_t> vocab, std::optional<int64_t> heads) {
  f.integer("vocab_size", &m.vocab, vocab);
  f.integer("hidden_size", &m.options.hidden_dim);
  f.integer("intermediate_size", &m.options.intermediate_dim);
  f.integer("num_hidden_layers", &m.options.num_layers);
  f.integer("num_attention_heads", &m.options.num_heads, heads);
}

void kv_head_field(ConfigFields& f, HfModel& m, std::optional<int64_t> missing) {
  f.integer("num_key_value_heads", &m.options.num_kv_heads, missing.value_or(m.options.num_heads));
}

void head_dim_field(ConfigFields& f, HfModel& m, std::optional<int64_t> missing) {
  f.integer("head_dim", &m.options.head_dim, missing);
}

void derived_field(ConfigFields& f, const char* key, int64_t value, const char* from) {
  if (!f.reading() || !f.has(key)) return;
  int64_t given = 0;
  f.integer(key, &given);
  if (f.status().ok() && given != value)
    f.fail(
        unsupported(fmt::format("{}: \"{}\" is {}; here it is {}, {}", f.where(), key, given, value, from)));
}

void derived_head_dim_field(ConfigFields& f, HfModel& m) {
  derived_field(f, "head_dim", m.options.hidden_dim / std::max<int64_t>(1, m.options.num_heads),
                "\"hidden_size\" divided by \"num_attention_heads\"");
}

void shared_flag(ConfigFields& f, const char* key, bool missing, std::initializer_list<NamedFlag> options) {
  bool flag = *options.begin()->value;
  f.boolean(key, &flag, missing);
  for (const NamedFlag& o : options) {
    if (f.reading()) *o.value = flag;
    if (*o.value != flag)
      f.fail(unsupported(
          fmt::format("{} {} and {} {} differ; Hugging Face directories have one key for them, \"{}\"",
                      options.begin()->name, flag, o.name, *o.value, key)));
  }
}

void attention_bias_field(ConfigFields& f, HfModel& m, bool missing) {
  shared_flag(f, "attention_bias", missing,
              {{"model.qkv_bias", &m.options.qkv_bias}, {"model.out_bias", &m.options.out_bias}});
}

void length_field(ConfigFields& f, HfModel& m, const char* key, int64_t missing) {
  const bool learned = m.options.positions == models::Positions::kLearned;
  f.integer(key, learned ? &m.options.max_position_embeddings : &m.options.seq_len, missing);
  if (f.reading() && learned) m.options.seq_len = m.options.max_position_embeddings;
}

void llama_first_fields(ConfigFields& f, HfModel& m, const LlamaDefaults& missing) {
  size_fields(f, m);
  kv_head_field(f, m, missing.kv_heads);
  head_dim_field(f, m, missing.head_dim);
  llama_inner_fields(f, m, missing.positions, missing.epsilon);
}

void llama_inner_fields(ConfigFields& f, HfModel& m, int64_t positions, double epsilon) {
  f.activation("hidden_act", &m.options.activation_function, models::Activation::kSilu);
  length_field(f, m, "max_position_embeddings", positions);
  f.number("rms_norm_eps", &m.options.layer_norm_epsilon, epsilon);
}

void last_fields(ConfigFields& f, HfModel& m, bool tied) {
  f.harmless("attention_dropout", 0.0);
  f.boolean("tie_word_embeddings", &m.options.tie_word_embeddings, tied);
  f.number("initializer_range", &m.options.initializer_range, 0.02);
}

void layer_type_field(ConfigFields& f, HfModel& m, bool (*sliding)(int64_t layer)) {
  models::DecoderOptions& o = m.options;
  std::vector<std::string> types;
  if (!f.reading())
    for (int64_t i = 0; i < o.num_layers; ++i)
      types.emplace_back(o.layer(i).window > 0 ? "sliding_attention" : "full_attention");
  f.words("layer_types", &types);
  if (!f.reading() || !f.status().ok()) return;
  std::vector<LayerKind> kinds;
  if (!types.empty() && static_cast<int64_t>(types.size()) != o.num_layers)
    return f.fail(corrupt(fmt::format("{}: \"layer_types\" has {} entries for \"num_hidden_layers\" {}",
                                      f.where(), types.size(), o.num_layers)));
  for (const std::string& type : types) {
    if (type != "full_attention" && type != "sliding_attention")
      return f.fail(unsupported(
          fmt::format("{}: \"layer_types\" has \"{}\"; known are full_attention and sliding_attention",
                      f.where(), type)));
    kinds.push_back(type == "full_attention" ? LayerKind::kFull : LayerKind::kSliding);
  }
  if (types.empty())
    for (int64_t i = 0; i < o.num_layers; ++i)
      kinds.push_back(sliding != nullptr && sliding(i) ? LayerKind::kSliding : LayerKind::kFull);
  if (!o.sliding_window) kinds.assign(kinds.size(), LayerKind::kFull);
  o.layer_pattern = shortest_period(kinds);
}

void window_field(ConfigFields& f, HfModel& m, std::optional<int64_t> missing) {
  f.integer("sliding_window", &m.options.sliding_window, missing);
}

void switched_window_fields(ConfigFields& f, HfModel& m) {
  models::DecoderOptions& o = m.options;
  bool used = false;
  int64_t full_layers = 28;
  for (int64_t i = 0; i < o.num_layers; ++i) used |= o.layer(i).window > 0;
  f.boolean("use_sliding_window", &used, false);
  std::optional<int64_t> window = used ? o.sliding_window : std::nullopt;
  f.integer("sliding_window", &window, 4096);
  if (f.reading()) o.sliding_window = used ? window : std::nullopt;
  if (!f.reading()) full_layers = used ? full_layers : o.num_layers;
  f.integer("max_window_layers", &full_layers, 28);
  layer_type_field(f, m, nullptr);
  // Without layer_types the layers from max_window_layers on have the window.
  if (!f.reading() || f.has("layer_types") || !o.sliding_window) return;
  std::vector<LayerKind> kinds;
  for (int64_t i = 0; i < o.num_layers; ++i)
    kinds.push_back(i >= full_layers ? LayerKind::kSliding : LayerKind::kFull);
  o.layer_pattern = shortest_period(kinds);
}

}  // namespace ostro::hf
