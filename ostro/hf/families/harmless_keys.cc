#include "ostro/hf/families/harmless_keys.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace ostro::hf {
namespace {

constexpr bool kUsual = true;
constexpr std::string_view kName = "names a class, a program or a version";
constexpr std::string_view kToken = "names tokens, which the files of the tokenizer say";
constexpr std::string_view kOutput = "says what a call of transformers returns";
constexpr std::string_view kSpeed = "says how transformers computes, not what";
constexpr std::string_view kTraining = "has an effect in training alone";
constexpr std::string_view kDropout = "is a dropout, which a trained model does not apply";
constexpr std::string_view kSampling = "is a default for sampling, which generation_config.json says";
constexpr std::string_view kLabels = "is of heads that classify";
constexpr std::string_view kLength = "is a length that a program may use, not one that positions follow";

constexpr HarmlessKey kKeys[] = {
    // transformers writes these for any model.
    {"architectures", "", "", kName, kUsual},
    {"model_type", "", "", kName, kUsual},
    {"transformers_version", "", "", kName, kUsual},
    {"_name_or_path", "", "", kName, kUsual},
    {"name_or_path", "", "", kName, kUsual},
    {"auto_map", "", "", kName, kUsual},
    {"tokenizer_class", "", "", kName, kUsual},
    {"use_cache", "", "", kSpeed, kUsual},
    {"cache_implementation", "", "", kSpeed, kUsual},
    {"_attn_implementation", "", "", kSpeed, kUsual},
    {"_attn_implementation_autoset", "", "", kSpeed, kUsual},
    {"attn_implementation", "", "", kSpeed, kUsual},
    {"chunk_size_feed_forward", "", "", kSpeed, kUsual},
    {"pretraining_tp", "", "", kSpeed, kUsual},
    {"dtype", "", "", "says the type of the weights, which the weights say", kUsual},
    {"torch_dtype", "", "", "says the type of the weights, which the weights say", kUsual},
    {"bos_token_id", "", "", kToken, kUsual},
    {"eos_token_id", "", "", kToken, kUsual},
    {"pad_token_id", "", "", kToken, kUsual},
    {"sep_token_id", "", "", kToken, kUsual},
    {"decoder_start_token_id", "", "", kToken, kUsual},
    {"return_dict", "", "", kOutput, kUsual},
    {"output_attentions", "", "", kOutput, kUsual},
    {"output_hidden_states", "", "", kOutput, kUsual},
    {"id2label", "", "", kLabels, kUsual},
    {"label2id", "", "", kLabels, kUsual},
    {"problem_type", "", "", kLabels, kUsual},
    {"task_specific_params", "", "", kSampling, kUsual},
    {"is_encoder_decoder", "", "false", "says that there is no encoder", kUsual},

    // Other programs leave these.
    {"unsloth_fixed", "", "", kName},
    {"unsloth_version", "", "", kName},
    {"transformers.js_config", "", "", kSpeed},
    {"_commit_hash", "", "", kName},
    {"bos_token", "", "", kToken},
    {"eos_token", "", "", kToken},
    {"pad_token", "", "", kToken},
    {"unk_token", "", "", kToken},
    {"unk_token_id", "", "", kToken},
    {"cls_token_id", "", "", kToken},
    {"mask_token_id", "", "", kToken},
    {"finetuning_task", "", "", kLabels},
    {"num_labels", "", "", kLabels},
    {"_num_labels", "", "", kLabels},
    {"prefix", "", "", kSampling},
    {"output_scores", "", "", kOutput},
    {"output_past", "", "", kOutput},
    {"output_router_logits", "", "", kOutput},
    {"return_dict_in_generate", "", "", kOutput},
    {"use_return_dict", "", "", kOutput},
    {"torchscript", "", "", kOutput},
    {"remove_invalid_values", "", "", kOutput},
    {"use_bfloat16", "", "", "is read by programs for TPUs alone"},
    {"tf_legacy_loss", "", "", kTraining},
    {"is_decoder", "", "", "changes only models with attention to an encoder"},
    {"tie_encoder_decoder", "", "", "changes only models with an encoder"},
    {"add_cross_attention", "", "false", "says that there is no encoder"},
    {"pruned_heads", "", "{}", "says that no head was cut out"},
    {"_flash_attn_2_enabled", "", "", kSpeed},
    {"use_flash_attn", "", "", kSpeed},
    {"use_flash_attention", "", "", kSpeed},
    {"use_flash_attention_2", "", "", kSpeed},
    {"flash_attention", "", "", kSpeed},
    {"use_sdpa", "", "", kSpeed},
    {"attn_impl", "", "", kSpeed},
    {"low_cpu_mem_usage", "", "", kSpeed},
    {"max_sequence_length", "", "", kLength},
    {"model_max_length", "", "", kLength},

    // Training and what begins it.
    {"gradient_checkpointing", "", "", kTraining},
    {"use_gradient_checkpointing", "", "", kTraining},
    {"neftune_noise_alpha", "", "", kTraining},
    {"label_smoothing", "", "", kTraining},
    {"router_aux_loss_coef", "", "", kTraining},
    {"router_jitter_noise", "", "", kTraining},
    {"aux_loss_alpha", "", "", kTraining},
    {"seq_aux", "", "", kTraining},
    {"initializer_factor", "", "", kTraining},
    {"initializer_cutoff_factor", "", "", kTraining},
    {"init_std", "", "", kTraining},
    {"dropout", "", "", kDropout},
    {"attn_dropout", "", "", kDropout},
    {"attn_pdrop", "", "", kDropout},
    {"attention_dropout", "", "", kDropout},
    {"attention_probs_dropout_prob", "", "", kDropout},
    {"resid_pdrop", "", "", kDropout},
    {"residual_dropout", "", "", kDropout},
    {"hidden_dropout", "", "", kDropout},
    {"hidden_dropout_prob", "", "", kDropout},
    {"embd_pdrop", "", "", kDropout},
    {"embedding_dropout", "", "", kDropout},
    {"ffn_dropout", "", "", kDropout},
    {"mlp_dropout", "", "", kDropout},
    {"classifier_dropout", "", "", kDropout},
    {"layerdrop", "", "", kDropout},

    // Older versions of transformers wrote these into config.json.
    {"max_length", "", "", kSampling},
    {"min_length", "", "", kSampling},
    {"max_new_tokens", "", "", kSampling},
    {"do_sample", "", "", kSampling},
    {"early_stopping", "", "", kSampling},
    {"num_beams", "", "", kSampling},
    {"num_beam_groups", "", "", kSampling},
    {"diversity_penalty", "", "", kSampling},
    {"temperature", "", "", kSampling},
    {"top_k", "", "", kSampling},
    {"top_p", "", "", kSampling},
    {"typical_p", "", "", kSampling},
    {"repetition_penalty", "", "", kSampling},
    {"length_penalty", "", "", kSampling},
    {"no_repeat_ngram_size", "", "", kSampling},
    {"encoder_no_repeat_ngram_size", "", "", kSampling},
    {"bad_words_ids", "", "", kSampling},
    {"num_return_sequences", "", "", kSampling},
    {"forced_bos_token_id", "", "", kSampling},
    {"forced_eos_token_id", "", "", kSampling},
    {"exponential_decay_length_penalty", "", "", kSampling},
    {"suppress_tokens", "", "", kSampling},
    {"begin_suppress_tokens", "", "", kSampling},

    // Of one family.
    {"hidden_act", "gemma2 gemma3", "", "is of the first files; programs read hidden_activation", kUsual},
    {"_sliding_window_pattern", "gemma3", "", "is what layer_types was made of", kUsual},
    {"activation_function", "starcoder2", "", "is not read; programs read hidden_act"},
    {"attention_softmax_in_fp32", "starcoder2", "", kSpeed, kUsual},
    {"scale_attention_softmax_in_fp32", "starcoder2", "", kSpeed, kUsual},
    {"original_max_position_embeddings", "phi3", "", "is the length of a longrope, and there is none",
     kUsual},
    {"max_window_layers", "smollm3 qwen3_moe", "", "is not read by the family's programs", kUsual},
    {"num_nextn_predict_layers", "deepseek_v3", "", "is of layers that predict further tokens", kUsual},
    {"num_mtp_layers", "deepseek_v3", "", "is of layers that predict further tokens", kUsual},
    {"reorder_and_upcast_attn", "gpt2", "", kSpeed, kUsual},
    {"n_ctx", "gpt2", "", "is an older name of n_positions, which the file must have", kUsual},
    {"predict_special_tokens", "gpt2", "", "is not read by any program"},
    {"summary_type", "gpt2", "", kLabels, kUsual},
    {"summary_use_proj", "gpt2", "", kLabels, kUsual},
    {"summary_activation", "gpt2", "", kLabels, kUsual},
    {"summary_proj_to_labels", "gpt2", "", kLabels, kUsual},
    {"summary_first_dropout", "gpt2", "", kLabels, kUsual},
};

// Whether the list of words has this one.
bool has_word(std::string_view list, std::string_view word) {
  for (size_t at = 0; at < list.size();) {
    const size_t end = std::min(list.find(' ', at), list.size());
    if (list.substr(at, end - at) == word) return true;
    at = end + 1;
  }
  return false;
}

}  // namespace

const HarmlessKey* find_harmless(std::string_view key, const nlohmann::ordered_json& value,
                                 std::string_view family) {
  for (const HarmlessKey& one : kKeys)
    if (one.key == key && (one.families.empty() || has_word(one.families, family)) &&
        (one.only.empty() || value == nlohmann::ordered_json::parse(one.only)))
      return &one;
  return nullptr;
}

}  // namespace ostro::hf
