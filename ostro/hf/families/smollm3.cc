// SmolLM3: a Llama of which some layers do not turn queries and keys.
#include "ostro/hf/families/family.h"

namespace ostro::hf {
namespace {

void no_rope_fields(ConfigFields& f, models::DecoderOptions& o) {
  using models::LayerRope;
  int64_t interval = 4;
  if (f.reading()) f.integer("no_rope_layer_interval", &interval, 4);
  std::vector<int64_t> turns;  // 1: this layer turns
  if (!f.reading())
    for (int64_t i = 0; i < o.num_layers; ++i) turns.push_back(o.layer(i).rope ? 1 : 0);
  f.integers("no_rope_layers", &turns);
  if (!f.reading() || !f.status().ok()) return;
  if (turns.empty() && interval > 0)
    for (int64_t i = 0; i < o.num_layers; ++i) turns.push_back((i + 1) % interval == 0 ? 0 : 1);
  if (static_cast<int64_t>(turns.size()) != o.num_layers)
    return f.fail(corrupt(fmt::format("{}: \"no_rope_layers\" has {} entries for \"num_hidden_layers\" {}",
                                      f.where(), turns.size(), o.num_layers)));
  std::vector<LayerRope> ropes;
  for (const int64_t turn : turns) ropes.push_back(turn != 0 ? LayerRope::kRope : LayerRope::kNone);
  o.rope_pattern = shortest_period(ropes);
}

// Without layer_types in the file, layers that do not turn have the window.
void smollm3_window_fields(ConfigFields& f, HfModel& m) {
  models::DecoderOptions& o = m.options;
  bool used = false;
  for (int64_t i = 0; i < o.num_layers; ++i) used |= o.layer(i).window > 0;
  std::optional<int64_t> window = used ? o.sliding_window : std::nullopt;
  f.boolean("use_sliding_window", &used, false);
  f.integer("sliding_window", &window);
  const bool told = f.has("layer_types");
  if (f.reading()) o.sliding_window = used || told ? window : std::nullopt;
  layer_type_field(f, m, nullptr);
  if (!f.reading() || told || !o.sliding_window) return;
  std::vector<models::LayerKind> kinds;
  for (int64_t i = 0; i < o.num_layers; ++i)
    kinds.push_back(o.layer(i).rope ? models::LayerKind::kFull : models::LayerKind::kSliding);
  o.layer_pattern = shortest_period(kinds);
}

void smollm3_config(ConfigFields& f, HfModel& m) {
  models::DecoderOptions& o = m.options;
  llama_first_fields(f, m, {.kv_heads = 4, .positions = 32768, .epsilon = 1e-6});
  f.rope(&o.rope, 2000000, o.seq_len);
  no_rope_fields(f, o);
  smollm3_window_fields(f, m);
  attention_bias_field(f, m, false);
  f.boolean("mlp_bias", &o.mlp_bias, false);
  last_fields(f, m, /*tied=*/true);
}

}  // namespace

HfFamily hf_smollm3() { return {"smollm3", "smollm3", "SmolLM3ForCausalLM", smollm3_config, llama_names()}; }

}  // namespace ostro::hf
