#include "ostro/grok/layout/names.h"

#include <fmt/core.h>

#include <charconv>

namespace ostro::grok {
namespace {

// "#" stands for the layer, "@" for the expert.
struct NameRow {
  Part part;
  const char* names[3];  // by Naming
};

constexpr NameRow kNames[] = {
    {Part::kEmbedding, {"transformer.in_out_embed.weight", "model.embed_tokens.weight", "token_embd.weight"}},
    {Part::kFinalNorm, {"transformer.rms_norm.weight", "model.norm.scale", "output_norm.weight"}},
    {Part::kExpertGate,
     {"transformer.decoder_layer.#.moe.@.linear.weight", "model.layers.#.moe_block.experts.@.linear.weight",
      "blk.#.ffn_gate_exps.weight"}},
    {Part::kExpertDown,
     {"transformer.decoder_layer.#.moe.@.linear_1.weight",
      "model.layers.#.moe_block.experts.@.linear_1.weight", "blk.#.ffn_down_exps.weight"}},
    {Part::kExpertUp,
     {"transformer.decoder_layer.#.moe.@.linear_v.weight",
      "model.layers.#.moe_block.experts.@.linear_v.weight", "blk.#.ffn_up_exps.weight"}},
    {Part::kKey,
     {"transformer.decoder_layer.#.multi_head_attention.key.weight", "model.layers.#.attn.k_proj.weight",
      "blk.#.attn_k.weight"}},
    {Part::kAttentionOut,
     {"transformer.decoder_layer.#.multi_head_attention.linear.weight", "model.layers.#.attn.o_proj.weight",
      "blk.#.attn_output.weight"}},
    {Part::kQuery,
     {"transformer.decoder_layer.#.multi_head_attention.query.weight", "model.layers.#.attn.q_proj.weight",
      "blk.#.attn_q.weight"}},
    {Part::kValue,
     {"transformer.decoder_layer.#.multi_head_attention.value.weight", "model.layers.#.attn.v_proj.weight",
      "blk.#.attn_v.weight"}},
    {Part::kPreAttentionNorm,
     {"transformer.decoder_layer.#.rms_norm.weight", "model.layers.#.pre_attn_norm.scale",
      "blk.#.attn_norm.weight"}},
    {Part::kPostAttentionNorm,
     {"transformer.decoder_layer.#.rms_norm_1.weight", "model.layers.#.post_attn_norm.scale",
      "blk.#.attn_output_norm.weight"}},
    {Part::kPreMoeNorm,
     {"transformer.decoder_layer.#.rms_norm_2.weight", "model.layers.#.pre_moe_norm.scale",
      "blk.#.ffn_norm.weight"}},
    {Part::kPostMoeNorm,
     {"transformer.decoder_layer.#.rms_norm_3.weight", "model.layers.#.post_moe_norm.scale",
      "blk.#.layer_output_norm.weight"}},
    {Part::kRouter,
     {"transformer.decoder_layer.#.router.weight", "model.layers.#.moe_block.gate.weight",
      "blk.#.ffn_gate_inp.weight"}},
};

constexpr const char* kOutputs[] = {"lm_head.weight", "lm_head.weight", "output.weight"};

// Names of gguf files of other ages; only read.
constexpr std::pair<Part, const char*> kOtherGgufNames[] = {
    {Part::kPostMoeNorm, "blk.#.post_ffw_norm.weight"},
    {Part::kExpertGate, "blk.#.ffn_gate.@.weight"},
    {Part::kExpertUp, "blk.#.ffn_up.@.weight"},
    {Part::kExpertDown, "blk.#.ffn_down.@.weight"}};

bool is_expert(Part part) {
  return part == Part::kExpertGate || part == Part::kExpertUp || part == Part::kExpertDown;
}

bool is_matrix(Part part) {
  return is_expert(part) || part == Part::kKey || part == Part::kValue || part == Part::kQuery ||
         part == Part::kAttentionOut || part == Part::kRouter;
}

// A number as names have it: no sign, no leading zeros.
bool take_number(std::string_view& text, int64_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  const auto digits = static_cast<size_t>(end - text.data());
  if (error != std::errc() || out < 0 || text[0] == '-' || (text[0] == '0' && digits > 1)) return false;
  text.remove_prefix(digits);
  return true;
}

bool matches(std::string_view pattern, std::string_view name, NamedTensor& out) {
  for (; !pattern.empty(); pattern.remove_prefix(1)) {
    int64_t number = 0;
    if (pattern[0] == '#') {
      if (!take_number(name, out.layer)) return false;
    } else if (pattern[0] == '@') {
      if (!take_number(name, number)) return false;
      out.expert = number;
    } else {
      if (name.empty() || name[0] != pattern[0]) return false;
      name.remove_prefix(1);
    }
  }
  return name.empty();
}

std::optional<NamedTensor> match(Part part, std::string_view pattern, std::string_view name) {
  NamedTensor found{.part = part, .layer = -1, .expert = std::nullopt, .is_transposed = is_matrix(part)};
  if (!matches(pattern, name, found)) return std::nullopt;
  return found;
}

}  // namespace

bool splits_experts(Naming naming) { return naming != Naming::kGguf; }

std::string tensor_name(Naming naming, Part part, int64_t layer, std::optional<int64_t> expert) {
  std::string out;
  for (const NameRow& row : kNames) {
    if (row.part != part) continue;
    for (const char* c = row.names[static_cast<size_t>(naming)]; *c != '\0'; ++c) {
      OSTRO_CHECK(*c != '@' || expert.has_value(), "a name of an expert without its number");
      out += *c == '#'   ? fmt::format("{}", layer)
             : *c == '@' ? fmt::format("{}", *expert)
                         : std::string(1, *c);
    }
  }
  return out;
}

std::string output_name(Naming naming) { return kOutputs[static_cast<size_t>(naming)]; }

std::optional<NamedTensor> find_tensor(Naming naming, std::string_view name) {
  if (name == kOutputs[static_cast<size_t>(naming)])
    return NamedTensor{.part = Part::kEmbedding, .layer = -1, .expert = std::nullopt, .is_output = true};
  for (const NameRow& row : kNames) {
    if (auto found = match(row.part, row.names[static_cast<size_t>(naming)], name)) return found;
  }
  if (naming != Naming::kGguf) return std::nullopt;
  for (const auto& [part, pattern] : kOtherGgufNames) {
    if (auto found = match(part, pattern, name)) return found;
  }
  return std::nullopt;
}

}  // namespace ostro::grok
