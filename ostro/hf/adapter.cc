#include "ostro/hf/adapter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "ostro/base/sha256.h"
#include "ostro/io/arrays/safetensors.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"

namespace ostro::hf {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kWeight = "weight";

bool is_one_of(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

// "model.layers.0.self_attn.q_proj" of its weight's name.
std::string module_of(const WeightPart& part) {
  return part.name.substr(0, part.name.size() - kWeight.size() - 1);
}

std::string last_word(const std::string& module) { return module.substr(module.rfind('.') + 1); }

bool has_experts(const std::vector<WeightPart>& base) {
  return std::any_of(base.begin(), base.end(),
                     [](const WeightPart& part) { return part.name.find(".experts.") != std::string::npos; });
}

Json number(double value) {
  return value == std::floor(value) && std::abs(value) < 1e15 ? Json(static_cast<int64_t>(value))
                                                              : Json(value);
}

Json config_json(const LoraConfig& config, const std::vector<std::string>& modules, const std::string& base) {
  return {{"peft_type", "LORA"},
          {"task_type", "CAUSAL_LM"},
          {"base_model_name_or_path", base},
          {"r", config.rank},
          {"lora_alpha", number(config.alpha)},
          {"use_rslora", config.use_rslora},
          {"target_modules", modules},
          {"lora_dropout", 0.0},
          {"bias", "none"},
          {"fan_in_fan_out", false},
          {"init_lora_weights", true},
          {"inference_mode", true},
          {"modules_to_save", nullptr},
          {"rank_pattern", Json::object()},
          {"alpha_pattern", Json::object()}};
}

}  // namespace

// An adapter of a matrix is two parts: A has the columns of the matrix's part, B has its rows, and the rank
// axis is the other side of both. Cuts of stacked axes (layers) stay; a cut of a row or column axis falls
// away, since each part of a fused weight has adapters of its own.
std::vector<WeightPart> lora_weights(const std::vector<WeightPart>& base,
                                     const std::vector<nn::AdaptedMatrix>& matrices) {
  std::vector<WeightPart> out;
  for (const WeightPart& part : base) {
    if (part.columns.empty()) continue;
    const std::string module = module_of(part), name = last_word(module);
    for (const nn::AdaptedMatrix& m : matrices) {
      if (!m.has_adapter || m.name != name || part.path != m.linear + "/weight") continue;
      WeightPart a{"base_model.model." + module + ".lora_A.weight",
                   nn::adapter_path(m.linear, name, 'a'),
                   {},
                   {nn::kRankAxis},
                   part.columns};
      for (const Cut& cut : part.cuts)  // of the layers; an adapter is of one part of a fused weight
        if (!is_one_of(part.rows, cut.axis) && !is_one_of(part.columns, cut.axis)) a.cuts.push_back(cut);
      WeightPart b{"base_model.model." + module + ".lora_B.weight",
                   nn::adapter_path(m.linear, name, 'b'),
                   a.cuts,
                   part.rows,
                   {nn::kRankAxis}};
      out.push_back(std::move(a));
      out.push_back(std::move(b));
    }
  }
  return out;
}

Status export_lora(io::FileSystem& fs, const std::string& directory, const LoraConfig& config,
                   const std::vector<WeightPart>& base_weights,
                   const std::vector<nn::AdaptedMatrix>& matrices, const std::vector<std::string>& paths,
                   std::span<const runtime::Buffer> values, const std::string& base,
                   const std::string& base_hash) {
  const std::vector<WeightPart> parts = lora_weights(base_weights, matrices);
  std::vector<std::string> modules;
  for (const nn::AdaptedMatrix& m : matrices) {
    if (!m.has_adapter) continue;
    const std::string path = nn::adapter_path(m.linear, m.name, 'a');
    if (std::none_of(parts.begin(), parts.end(), [&](const WeightPart& p) { return p.path == path; }))
      return unsupported(fmt::format("{} has an adapter, but PEFT has no name for it", m.path()));
    if (has_experts(base_weights) && is_one_of({"gate_proj", "up_proj", "down_proj"}, m.name))
      return unsupported(fmt::format(
          "{} has an adapter; in a mixture, PEFT takes {} for the experts' matrix and would not load it: "
          "add --merge_lora, or train adapters of attention alone (adapter.target_modules)",
          m.path(), m.name));
    if (!is_one_of(modules, m.name)) modules.push_back(m.name);
  }
  std::vector<std::vector<std::byte>> storage;
  std::vector<io::SafetensorsEntry> entries;
  storage.reserve(parts.size());
  for (const WeightPart& part : parts) {
    const auto at = std::find(paths.begin(), paths.end(), part.path);
    if (at == paths.end()) return invalid_argument(fmt::format("the model has no {}", part.path));
    const runtime::Buffer& whole = values[static_cast<size_t>(at - paths.begin())];
    storage.push_back(take_part(part, whole));
    entries.push_back({part.name, "F32", part_shape(part, whole.shape()), storage.back()});
  }
  RETURN_IF_ERROR(fs.make_dirs(directory));
  RETURN_IF_ERROR(io::write_safetensors(fs, io::join_path(directory, "adapter_model.safetensors"), entries,
                                        {{"format", "pt"}, {"ostro_base", base_hash}}));
  return io::write_file_atomically(fs, io::join_path(directory, "adapter_config.json"),
                                   config_json(config, modules, base).dump(2) + "\n");
}

std::string parameters_hash(const std::vector<std::string>& paths, std::span<const runtime::Buffer> values) {
  std::vector<size_t> order;
  for (size_t k = 0; k < paths.size(); ++k)
    if (!nn::is_adapter(paths[k])) order.push_back(k);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return paths[a] < paths[b]; });
  Sha256 hash;
  for (const size_t k : order) {
    hash.update(fmt::format("{} {}\n", paths[k], values[k].shape().str()));
    hash.update(values[k].bytes());
  }
  return to_hex(hash.finish());
}

}  // namespace ostro::hf
