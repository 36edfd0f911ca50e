// Adapters in PEFT's format, read.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "ostro/hf/adapter.h"
#include "ostro/hf/elements.h"
#include "ostro/io/files/path.h"
#include "ostro/io/json/json_fields.h"

namespace ostro::hf {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kAdapterConfig = "adapter_config.json";
constexpr int64_t kMaxAdapterBytes = 1 << 20;

// Keys that change nothing of a finished adapter of linear layers: names, and how it was begun and trained.
const std::set<std::string> kHarmless = {"auto_mapping",        "base_model_name_or_path",
                                         "bias_dtype",          "corda_config",
                                         "ensure_weight_tying", "eva_config",
                                         "exclude_modules",     "fan_in_fan_out",
                                         "inference_mode",      "layers_pattern",
                                         "loftq_config",        "lora_dropout",
                                         "lora_ga_config",      "megatron_config",
                                         "megatron_core",       "peft_version",
                                         "qalora_group_size",   "revision",
                                         "runtime_config",      "task_type"};

// Nothing, however it is said.
bool is_nothing(const Json& value) {
  return value.is_null() || value == false || ((value.is_object() || value.is_array()) && value.empty());
}

// Whether a key of rank_pattern or alpha_pattern is about a module: it is the end of its name, by whole
// words.
bool is_end_of(const std::string& key, const std::string& module) {
  return module == key || module.ends_with("." + key);
}

Status read_pattern(const std::string& name, const Json& value, const std::string& where, LoraConfig& out) {
  if (is_nothing(value)) return {};
  const auto bad = [&](const std::string& what) {
    return unsupported(fmt::format("{}: \"{}\" is {}; {}", where, name, value.dump(), what));
  };
  if (!value.is_object()) return bad("an object is needed");
  constexpr std::string_view kWord = "._";
  for (const auto& [key, number] : value.items()) {
    for (const char c : key)
      if (std::isalnum(static_cast<unsigned char>(c)) == 0 && kWord.find(c) == std::string_view::npos)
        return bad(fmt::format("\"{}\" is no name of a module, and expressions are not read", key));
    if (name == "rank_pattern") {
      if (!number.is_number_integer() || number.get<int64_t>() < 1)
        return bad("ranks are whole numbers above 0");
      out.rank_pattern.emplace_back(key, number.get<int64_t>());
    } else {
      if (!number.is_number()) return bad("alphas are numbers");
      out.alpha_pattern.emplace_back(key, number.get<double>());
    }
  }
  return {};
}

Status read_layers(const Json& value, const std::string& where, LoraConfig& out) {
  if (is_nothing(value)) return {};
  std::vector<int64_t> layers;
  for (const Json& layer : value.is_array() ? value : Json::array({value})) {
    if (!layer.is_number_integer())
      return unsupported(fmt::format("{}: \"layers_to_transform\" is {}; numbers of layers are needed", where,
                                     value.dump()));
    layers.push_back(layer.get<int64_t>());
  }
  out.layers = std::move(layers);
  return {};
}

Result<LoraConfig> read_config(const Json& json, const std::string& where) {
  LoraConfig out;
  const auto refuse = [&](const std::string& key, const char* only) {
    return unsupported(fmt::format("{}: \"{}\" is {}; {}", where, key, json[key].dump(), only));
  };
  if (!json.is_object()) return corrupt(fmt::format("{}: an object is needed", where));
  if (json.value("peft_type", Json("LORA")) != "LORA") return refuse("peft_type", "only LORA is read");
  for (const auto& [key, value] : json.items()) {
    if (key == "peft_type" || kHarmless.contains(key)) continue;
    if (key == "target_modules") {
      // A pattern, or whole names, may leave some modules of a name out.
      out.some_modules = value.is_string() && value != "all-linear";
      for (const Json& word : value.is_array() ? value : Json::array())
        out.some_modules |=
            word.is_string() && word.get_ref<const std::string&>().find('.') != std::string::npos;
      continue;
    }
    if (key == "r") {
      if (!value.is_number_integer() || value.get<int64_t>() < 1)
        return refuse(key, "a whole number above 0 is needed");
      out.rank = value.get<int64_t>();
    } else if (key == "lora_alpha") {
      if (!value.is_number()) return refuse(key, "a number is needed");
      out.alpha = value.get<double>();
    } else if (key == "use_rslora") {
      if (!value.is_boolean() && !value.is_null()) return refuse(key, "true or false is needed");
      out.use_rslora = value == true;
    } else if (key == "rank_pattern" || key == "alpha_pattern") {
      RETURN_IF_ERROR(read_pattern(key, value, where, out));
    } else if (key == "layers_to_transform") {
      RETURN_IF_ERROR(read_layers(value, where, out));
    } else if (key == "bias") {
      if (value != "none" && !value.is_null()) return refuse(key, "adapters here have no biases");
    } else if (key == "init_lora_weights") {
      // Others change the base's weights, of which the adapter is then the rest.
      if (!value.is_boolean() && value != "gaussian" && value != "eva" && value != "orthogonal")
        return refuse(key, "the base that it is of is not the one that it names; merge it in PEFT");
    } else if (!is_nothing(value)) {
      return refuse(key,
                    "no adapter here has that; merge it in PEFT (merge_and_unload) and import the model");
    }
  }
  for (const char* key : {"r", "lora_alpha"})
    if (!json.contains(key)) return corrupt(fmt::format("{}: \"{}\" is missing", where, key));
  return out;
}

// "model.layers.0.self_attn.q_proj" of "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight", or
// nothing.
std::string module_of_factor(const std::string& tensor) {
  constexpr std::string_view kBegin = "base_model.model.";
  for (const std::string_view end : {".lora_A.weight", ".lora_B.weight"})
    if (tensor.starts_with(kBegin) && tensor.ends_with(end))
      return tensor.substr(kBegin.size(), tensor.size() - kBegin.size() - end.size());
  return {};
}

}  // namespace

Result<LoraFiles> open_lora(io::FileSystem& fs, const std::string& directory) {
  const std::string where = io::join_path(directory, kAdapterConfig),
                    weights = io::join_path(directory, "adapter_model.safetensors");
  ASSIGN_OR_RETURN(const bool there, fs.exists(where));
  if (!there) return not_found(fmt::format("{} is missing: {} is not an adapter of PEFT", where, directory));
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(where, kMaxAdapterBytes));
  ASSIGN_OR_RETURN(const auto json, io::parse_json(text, where));
  ASSIGN_OR_RETURN(const LoraConfig config, read_config(Json(json), where));
  ASSIGN_OR_RETURN(const bool has_weights, fs.exists(weights));
  ASSIGN_OR_RETURN(const bool pickled, fs.exists(io::join_path(directory, "adapter_model.bin")));
  if (!has_weights && pickled)
    return unsupported(
        fmt::format("{} is missing, and adapter_model.bin is a pickle, which may run any program; load "
                    "and save the adapter in PEFT, which writes safetensors",
                    weights));
  ASSIGN_OR_RETURN(io::SafetensorsReader tensors, io::SafetensorsReader::open(fs, weights));
  std::set<std::string> modules;
  for (const io::SafetensorsInfo& tensor : tensors.tensors()) {
    const std::string module = module_of_factor(tensor.name);
    if (module.empty() && lora_base_tensor(tensor.name).empty())
      return unsupported(
          fmt::format("{}: {} is not a lora_A or lora_B of a linear layer", weights, tensor.name));
    if (!is_weight_dtype(tensor.dtype))
      return unsupported(
          fmt::format("{}: {} is {}; F32, BF16 and F16 are read", weights, tensor.name, tensor.dtype));
    if (!module.empty()) modules.insert(module);
  }
  if (modules.empty()) return corrupt(fmt::format("{}: no tensor of an adapter", weights));
  const auto& metadata = tensors.metadata();
  const auto hash = metadata.find("ostro_base");
  return LoraFiles{config,
                   {modules.begin(), modules.end()},
                   hash == metadata.end() ? "" : hash->second,
                   weights,
                   std::move(tensors)};
}

int64_t LoraConfig::rank_of(const std::string& module) const {
  for (const auto& [key, value] : rank_pattern)
    if (is_end_of(key, module)) return value;
  return rank;
}

double LoraConfig::scale_of(const std::string& module) const {
  double a = alpha;
  for (const auto& [key, value] : alpha_pattern)
    if (is_end_of(key, module)) {
      a = value;
      break;
    }
  const auto r = static_cast<double>(rank_of(module));
  return a / (use_rslora ? std::sqrt(r) : r);
}

int64_t LoraFiles::rank() const {
  int64_t largest = 1;
  for (const std::string& module : modules) largest = std::max(largest, config.rank_of(module));
  return largest;
}

double LoraFiles::alpha() const {
  const double stretch = static_cast<double>(rank()) / static_cast<double>(config.rank);
  return config.alpha * (config.use_rslora ? std::sqrt(stretch) : stretch);
}

}  // namespace ostro::hf
