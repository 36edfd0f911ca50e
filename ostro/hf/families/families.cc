#include <fmt/ranges.h>

#include "ostro/hf/families/family.h"

namespace ostro::hf {
namespace {

// Names under which models of a family are published, beside its own.
constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {{"kimi_k2", "deepseek_v3"}};

Error unknown_family(const std::string& what, std::string_view HfFamily::* name) {
  std::vector<std::string_view> known;
  for (const HfFamily& family : hf_families()) known.push_back(family.*name);
  return unsupported(fmt::format("{}; known are {}", what, fmt::join(known, ", ")));
}

const HfFamily* find_by(std::string_view HfFamily::* field, std::string_view name) {
  for (const HfFamily& family : hf_families())
    if (family.*field == name) return &family;
  return nullptr;
}

}  // namespace

const std::vector<HfFamily>& hf_families() {
  static const std::vector<HfFamily> all = {
      hf_llama(),    hf_mistral(),   hf_qwen2(),       hf_qwen3(),       hf_gemma2(),   hf_gemma3(),
      hf_olmo2(),    hf_olmo3(),     hf_phi3(),        hf_gpt2(),        hf_gpt_neox(), hf_starcoder2(),
      hf_granite(),  hf_smollm3(),   hf_helium(),      hf_glm4(),        hf_mixtral(),  hf_qwen3_moe(),
      hf_olmoe(),    hf_qwen2_moe(), hf_deepseek_v2(), hf_deepseek_v3(), hf_gemma(),    hf_glm(),
      hf_seed_oss(), hf_ernie4_5(),  hf_stablelm()};
  return all;
}

Result<const HfFamily*> hf_family(std::string_view type) {
  if (const HfFamily* found = find_by(&HfFamily::type, type)) return found;
  return unknown_family(fmt::format("model.type {} is not written as a Hugging Face directory", type),
                        &HfFamily::type);
}

Result<const HfFamily*> hf_family_of_model_type(std::string_view model_type, const std::string& where) {
  for (const auto& [other, known] : kOtherNames)
    if (model_type == other) model_type = known;
  if (const HfFamily* found = find_by(&HfFamily::model_type, model_type)) return found;
  return unknown_family(fmt::format("{}: \"model_type\" is \"{}\", an unknown family", where, model_type),
                        &HfFamily::model_type);
}

}  // namespace ostro::hf
