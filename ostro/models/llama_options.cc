#include "ostro/models/llama_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "ostro/ir/program/attention_limits.h"

namespace ostro::models {

using config::Effect;
using config::option_error;

namespace {

// Why a run cannot go on with another value.
constexpr const char* kLayout = "the shapes of the trained parameters follow from it";

Status check_positive(const char* key, int64_t value) {
  if (value >= 1) return {};
  return option_error(key, fmt::format("{} is not positive; use 1 or more", value));
}

Status check_rope(const RopeOptions& rope) {
  const double theta = std::visit([](const auto& r) { return r.theta; }, rope);
  if (!(theta > 0)) return option_error("model.rope.theta", fmt::format("{} is not positive", theta));
  const auto* llama3 = std::get_if<RopeLlama3Options>(&rope);
  if (!llama3) return {};
  if (!(llama3->factor >= 1))
    return option_error("model.rope.factor",
                        fmt::format("{} is below 1; it stretches wavelengths", llama3->factor));
  if (!(llama3->low_freq_factor > 0 && llama3->low_freq_factor < llama3->high_freq_factor))
    return option_error("model.rope.low_freq_factor",
                        fmt::format("{} must be above 0 and below high_freq_factor, which is {}",
                                    llama3->low_freq_factor, llama3->high_freq_factor));
  return check_positive("model.rope.original_max_position_embeddings",
                        llama3->original_max_position_embeddings);
}

}  // namespace

std::vector<std::string> option_names(Activation) { return {"silu", "gelu", "gelu_new"}; }

void RopeDefaultOptions::visit_options(config::OptionTable& t) {
  t.add(&theta, "theta", Effect::kBits, "", "base of the rotary frequencies");
}

void RopeLlama3Options::visit_options(config::OptionTable& t) {
  t.add(&theta, "theta", Effect::kBits, "", "base of the rotary frequencies");
  t.add(&factor, "factor", Effect::kBits, "", "by how much the longest wavelengths are stretched");
  t.add(&low_freq_factor, "low_freq_factor", Effect::kBits, "",
        "wavelengths above original_max_position_embeddings / this are stretched fully");
  t.add(&high_freq_factor, "high_freq_factor", Effect::kBits, "",
        "wavelengths below original_max_position_embeddings / this are left alone");
  t.add(&original_max_position_embeddings, "original_max_position_embeddings", Effect::kBits, "tokens",
        "context length before stretching")
      .other("64");
}

void LlamaOptions::visit_options(config::OptionTable& t) {
  t.add(&seq_len, "seq_len", Effect::kBits, "tokens", "length of a training sequence")
      .other("128")
      .fixed("the data is cut into sequences of it, so text that was seen would come again");
  t.add(&hidden_dim, "hidden_dim", Effect::kBits, "", "width of the residual stream")
      .other("128")
      .fixed(kLayout);
  t.add(&intermediate_dim, "intermediate_dim", Effect::kBits, "", "width of the MLP")
      .other("512")
      .fixed(kLayout);
  t.add(&num_layers, "num_layers", Effect::kBits, "", "number of layers").other("3").fixed(kLayout);
  t.add(&num_heads, "num_heads", Effect::kBits, "", "query heads; a multiple of num_kv_heads")
      .other("8")
      .fixed(kLayout);
  t.add(&num_kv_heads, "num_kv_heads", Effect::kBits, "", "key and value heads").other("1").fixed(kLayout);
  t.add(&head_dim, "head_dim", Effect::kBits, "",
        fmt::format("width of a head, even, at most {}; null: hidden_dim / num_heads", ir::kMaxHeadDim))
      .other("32")
      .fixed(kLayout);
  t.add(&activation_function, "activation_function", Effect::kBits, "",
        "activation of the MLP's gate; gelu_new is the tanh form")
      .other("gelu");
  t.add(&layer_norm_epsilon, "layer_norm_epsilon", Effect::kBits, "", "added to the mean square in RMSNorm")
      .other("0.001");
  t.add(&tie_word_embeddings, "tie_word_embeddings", Effect::kBits, "",
        "use the embedding as the head's weight")
      .fixed(kLayout);
  t.section(&rope, "rope", "kind of rotary position embedding");
  t.add(&gradient_checkpointing, "gradient_checkpointing", Effect::kPlan, "",
        fmt::format(
            "what the backward pass computes again; false: values that cost less than their memory; "
            "everything: no value, all are kept; true or nothing: each layer, from its input; or names of "
            "the values to keep, separated by commas: {}",
            fmt::join(std::begin(kCheckpointNames), std::end(kCheckpointNames), ", ")));
  t.add(&initializer_range, "initializer_range", Effect::kBits, "",
        "standard deviation of the initial weights")
      .fixed("the initial weights were drawn with it");
  t.add(&z_loss_weight, "z_loss_weight", Effect::kBits, "",
        "weight of the squared log normaliser in the loss")
      .other("0.0001");
  for (const char* key : {"use_flash_attention", "flash_attention_block_size", "attn_backend", "upcast_attn"})
    t.refuse(key, "there is one attention, whose arithmetic is fixed (docs/numerics.md, N9)");
  t.refuse("scan_layers", "layers are always a loop");
  t.refuse("use_bias", "this Llama has no biases");
  t.refuse("use_layer_norm_weight", "the norms always have weights");
}

Status LlamaOptions::resolve() {
  RETURN_IF_ERROR(check_positive("model.seq_len", seq_len));
  RETURN_IF_ERROR(check_positive("model.hidden_dim", hidden_dim));
  RETURN_IF_ERROR(check_positive("model.intermediate_dim", intermediate_dim));
  RETURN_IF_ERROR(check_positive("model.num_layers", num_layers));
  RETURN_IF_ERROR(check_positive("model.num_heads", num_heads));
  RETURN_IF_ERROR(check_positive("model.num_kv_heads", num_kv_heads));
  if (num_heads % num_kv_heads != 0)
    return option_error("model.num_heads",
                        fmt::format("{} is not a multiple of model.num_kv_heads, which is {}; each "
                                    "key head serves the same number of query heads",
                                    num_heads, num_kv_heads));
  if (!head_dim) {
    if (hidden_dim % num_heads != 0)
      return option_error("model.hidden_dim",
                          fmt::format("{} is not a multiple of model.num_heads, which is {}; "
                                      "change one of them or set model.head_dim",
                                      hidden_dim, num_heads));
    head_dim = hidden_dim / num_heads;
  }
  if (*head_dim < 2 || *head_dim % 2 != 0)
    return option_error("model.head_dim",
                        fmt::format("{} is not a positive even number; rotary position codes turn "
                                    "pairs (null means hidden_dim / num_heads = {} / {})",
                                    *head_dim, hidden_dim, num_heads));
  if (*head_dim > ir::kMaxHeadDim)
    return option_error(
        "model.head_dim",
        fmt::format("{} is above {}, the widest head that attention takes; use more and narrower heads "
                    "(null means hidden_dim / num_heads = {} / {})",
                    *head_dim, ir::kMaxHeadDim, hidden_dim, num_heads));
  if (!(layer_norm_epsilon > 0))
    return option_error("model.layer_norm_epsilon", fmt::format("{} is not positive", layer_norm_epsilon));
  if (!(initializer_range > 0))
    return option_error("model.initializer_range", fmt::format("{} is not positive", initializer_range));
  if (!(z_loss_weight >= 0))
    return option_error("model.z_loss_weight", fmt::format("{} is negative", z_loss_weight));
  RETURN_IF_ERROR(check_rope(rope));
  RETURN_IF_ERROR(remat_policy());
  return {};
}

LlamaOptions LlamaOptions::for_evaluation() const {
  LlamaOptions copy = *this;
  copy.z_loss_weight = 0;
  return copy;
}

Result<RematPolicy> LlamaOptions::remat_policy() const {
  using Kind = RematPolicy::Kind;
  if (const bool* on = std::get_if<bool>(&gradient_checkpointing.value))
    return RematPolicy{*on ? Kind::kNothing : Kind::kDear, {}};
  const auto& text = std::get<std::string>(gradient_checkpointing.value);
  if (text == "everything") return RematPolicy{Kind::kEverything, {}};
  if (text == "nothing") return RematPolicy{Kind::kNothing, {}};
  RematPolicy policy{Kind::kNamed, {}};
  for (size_t begin = 0; begin <= text.size();) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    const std::string name = text.substr(begin, comma - begin);
    if (std::find(std::begin(kCheckpointNames), std::end(kCheckpointNames), name) ==
        std::end(kCheckpointNames))
      return option_error(
          "model.gradient_checkpointing",
          fmt::format("unknown name \"{}\"; use true, false, nothing, everything, or some of {}", name,
                      fmt::join(std::begin(kCheckpointNames), std::end(kCheckpointNames), ",")));
    policy.names.push_back(name);
    begin = comma + 1;
  }
  return policy;
}

Result<std::string> LlamaOptions::remat() const {
  ASSIGN_OR_RETURN(const RematPolicy policy, remat_policy());
  switch (policy.kind) {
    case RematPolicy::Kind::kDear:
      return std::string("none");
    case RematPolicy::Kind::kEverything:
      return std::string("keep");
    case RematPolicy::Kind::kNothing:
      return std::string("all");
    case RematPolicy::Kind::kNamed:
      return fmt::format("save:{}", fmt::join(policy.names, ","));
  }
  return std::string("none");
}

std::string LlamaOptions::signature() const {
  LlamaOptions copy = *this;  // declaring options binds to fields that could be written
  config::OptionTable table;
  copy.visit_options(table);
  return config::flow_text(table.write(config::Write::kAll));
}

config::IntMap LlamaOptions::leaf_axes() const {
  return {{"kv_heads", num_kv_heads}, {"mlp", intermediate_dim}, {"vocab", 0}, {"pos", seq_len}};
}

config::IntMap LlamaOptions::cell_axes() const {
  return {{"vocab", 0},
          {"embed", hidden_dim},
          {"kv_heads", num_kv_heads},
          {"head_dim", head_dim.value_or(0)},
          {"mlp", intermediate_dim}};
}

}  // namespace ostro::models
