// HfFamily: the form of the Hugging Face directories of a family. A family is one description: a function
// that names the keys of its config.json, and a table of its tensors. Both are used for reading and for
// writing.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/hf/families/config_fields.h"
#include "ostro/hf/families/names.h"

namespace ostro::hf {

// The content of a config.json.
struct HfModel {
  models::DecoderOptions options;
  int64_t vocab = 0;  // rows of the embedding
  // Of a file that was read: keys without effect that not every file has, each with its reason.
  std::vector<std::string> passed_over = {};
  bool is_text_part = false;  // of a model that also sees images, of which nothing else is read
};

struct HfFamily {
  std::string_view type;          // our model.type
  std::string_view model_type;    // "model_type" of config.json
  std::string_view architecture;  // the class that loads it
  void (*config)(ConfigFields&, HfModel&);
  FamilyNames names;
  // The class that AutoTokenizer of transformers makes of every directory with this model_type, whatever
  // tokenizer_config.json says; empty: the class that it names.
  std::string_view tokenizer_class = "";
};

const std::vector<HfFamily>& hf_families();
// The family of our model.type, or of the model_type of a config.json. Error: kUnsupported, with the known
// ones.
Result<const HfFamily*> hf_family(std::string_view type);
Result<const HfFamily*> hf_family_of_model_type(std::string_view model_type, const std::string& where);

// The families, one file each.
HfFamily hf_llama();
HfFamily hf_mistral();
HfFamily hf_qwen2();
HfFamily hf_qwen3();
HfFamily hf_gemma2();
HfFamily hf_gemma3();
HfFamily hf_olmo2();
HfFamily hf_olmo3();
HfFamily hf_phi3();
HfFamily hf_gpt2();
HfFamily hf_gpt_neox();
HfFamily hf_starcoder2();
HfFamily hf_granite();
HfFamily hf_smollm3();
HfFamily hf_helium();
HfFamily hf_glm4();
HfFamily hf_mixtral();
HfFamily hf_qwen3_moe();
HfFamily hf_olmoe();
HfFamily hf_qwen2_moe();
HfFamily hf_deepseek_v2();
HfFamily hf_deepseek_v3();
HfFamily hf_gemma();
HfFamily hf_glm();
HfFamily hf_seed_oss();
HfFamily hf_ernie4_5();
HfFamily hf_stablelm();

// Parts that descriptions share.
// vocab_size, hidden_size, intermediate_size, num_hidden_layers, num_attention_heads. `vocab` and `heads`:
// where the file does not say them, which the text parts of larger models leave out.
void size_fields(ConfigFields& f, HfModel& m, std::optional<int64_t> vocab = {},
                 std::optional<int64_t> heads = {});
// num_key_value_heads: `missing`, or as many as there are heads.
void kv_head_field(ConfigFields& f, HfModel& m, std::optional<int64_t> missing = {});
// head_dim: `missing`, or hidden_size / num_attention_heads.
void head_dim_field(ConfigFields& f, HfModel& m, std::optional<int64_t> missing = {});
// A key whose value follows from others. It is compared and not written. `from` names the others in an error.
void derived_field(ConfigFields& f, const char* key, int64_t value, const char* from);
// head_dim in files of a family whose heads divide hidden_size.
void derived_head_dim_field(ConfigFields& f, HfModel& m);
// One key for several options: a model in which they differ is refused.
struct NamedFlag {
  const char* name;
  bool* value;
};
void shared_flag(ConfigFields& f, const char* key, bool missing, std::initializer_list<NamedFlag> options);
// attention_bias, for qkv_bias and out_bias.
void attention_bias_field(ConfigFields& f, HfModel& m, bool missing);
// max_position_embeddings, which is also the number of rows of a table of learned positions.
void length_field(ConfigFields& f, HfModel& m, const char* key, int64_t missing);
// What a file means that does not say it.
struct LlamaDefaults {
  std::optional<int64_t> kv_heads = {}, head_dim = {};  // as kv_head_field() and head_dim_field() have them
  int64_t positions;
  double epsilon;
};
// size_fields(), kv_head_field(), head_dim_field() and llama_inner_fields().
void llama_first_fields(ConfigFields& f, HfModel& m, const LlamaDefaults& missing);
// hidden_act (silu), max_position_embeddings, rms_norm_eps.
void llama_inner_fields(ConfigFields& f, HfModel& m, int64_t positions, double epsilon);
// attention_dropout, tie_word_embeddings (missing: `tied`), initializer_range.
void last_fields(ConfigFields& f, HfModel& m, bool tied = false);
// layer_types, a word for each layer. Where the file has none: `sliding` says of a layer whether it has the
// window. Sets layer_pattern to the shortest one that gives these layers.
void layer_type_field(ConfigFields& f, HfModel& m, bool (*sliding)(int64_t layer));
// sliding_window for all layers, or null.
void window_field(ConfigFields& f, HfModel& m, std::optional<int64_t> missing);
// use_sliding_window, sliding_window, max_window_layers, layer_types (Qwen).
void switched_window_fields(ConfigFields& f, HfModel& m);
// The shortest beginning of a list of which the list is a repetition; the last one may be cut.
template <class T>
std::vector<T> shortest_period(const std::vector<T>& list) {
  for (size_t n = 1; n < list.size(); ++n) {
    bool fits = true;
    for (size_t i = n; i < list.size() && fits; ++i) fits = list[i] == list[i - n];
    if (fits) return {list.begin(), list.begin() + static_cast<std::ptrdiff_t>(n)};
  }
  return list;
}

}  // namespace ostro::hf
