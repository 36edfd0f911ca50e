// Adapters in PEFT's format, read.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "ostro/hf/adapter.h"
#include "ostro/hf/elements.h"
#include "ostro/io/files/path.h"
#include "ostro/io/json/json_fields.h"
#include "ostro/numerics/arrays.h"

namespace ostro::hf {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kAdapterConfig = "adapter_config.json";
constexpr int64_t kMaxAdapterBytes = 1 << 20;

// Keys that change nothing of a finished adapter of linear layers: names, and how it was begun and trained.
const std::set<std::string> kHarmless = {"auto_mapping",
                                         "base_model_name_or_path",
                                         "bias_dtype",
                                         "corda_config",
                                         "ensure_weight_tying",
                                         "eva_config",
                                         "exclude_modules",
                                         "fan_in_fan_out",
                                         "inference_mode",
                                         "layers_pattern",
                                         "loftq_config",
                                         "lora_dropout",
                                         "lora_ga_config",
                                         "megatron_config",
                                         "megatron_core",
                                         "peft_version",
                                         "qalora_group_size",
                                         "revision",
                                         "runtime_config",
                                         "target_modules",
                                         "task_type"};

// Nothing, however it is said.
bool is_nothing(const Json& value) {
  return value.is_null() || value == false || ((value.is_object() || value.is_array()) && value.empty());
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

// "q_proj" of "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight", or nothing.
std::string module_word(const std::string& tensor) {
  for (const char* end : {".lora_A.weight", ".lora_B.weight"}) {
    if (!tensor.ends_with(end)) continue;
    const std::string module = tensor.substr(0, tensor.size() - std::string_view(end).size());
    return module.substr(module.rfind('.') + 1);
  }
  return {};
}

std::string list(const io::Extents& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

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
    const std::string word = module_word(tensor.name);
    if (word.empty())
      return unsupported(
          fmt::format("{}: {} is not a lora_A or lora_B of a linear layer", weights, tensor.name));
    if (!is_weight_dtype(tensor.dtype))
      return unsupported(
          fmt::format("{}: {} is {}; F32, BF16 and F16 are read", weights, tensor.name, tensor.dtype));
    modules.insert(word);
  }
  if (modules.empty()) return corrupt(fmt::format("{}: no tensor", weights));
  const auto& metadata = tensors.metadata();
  const auto hash = metadata.find("ostro_base");
  return LoraFiles{config,
                   {modules.begin(), modules.end()},
                   hash == metadata.end() ? "" : hash->second,
                   weights,
                   std::move(tensors)};
}

Status take_lora(const LoraFiles& files, const std::vector<WeightPart>& parts,
                 const std::vector<std::string>& paths, std::span<runtime::Buffer> values) {
  std::set<std::string> wanted;
  for (const WeightPart& part : parts) wanted.insert(part.name);
  for (const io::SafetensorsInfo& tensor : files.tensors.tensors())
    if (!wanted.contains(tensor.name))
      return invalid_argument(
          fmt::format("{}: {} belongs to a matrix that the model does not have; is it of another model?",
                      files.path, tensor.name));
  for (const WeightPart& part : parts) {
    const auto k = static_cast<size_t>(std::find(paths.begin(), paths.end(), part.path) - paths.begin());
    OSTRO_CHECK(k < paths.size(), "no parameter {}", part.path);
    const std::vector<int64_t> shape = part_shape(part, values[k].shape());
    const io::SafetensorsInfo* tensor = files.tensors.find(part.name);
    if (tensor == nullptr)
      return invalid_argument(
          fmt::format("{}: {} {} is missing; an adapter has a matrix in all layers or in none", files.path,
                      part.name, list(shape)));
    if (tensor->shape != shape)
      return invalid_argument(fmt::format("{}: {} is {}, but {} in the model; is it of another model?",
                                          files.path, part.name, list(tensor->shape), list(shape)));
    std::vector<std::byte> bytes(static_cast<size_t>(tensor->bytes()));
    RETURN_IF_ERROR(files.tensors.read(part.name, bytes));
    const PartPlaces places = part_places(part, values[k].shape());
    std::vector<float> elements(places.rows.size() * places.columns.size());
    elements_to_f32(tensor->dtype, bytes, elements);
    if (const auto bad = numerics::first_from(elements))
      return corrupt(not_finite(files.tensors.file_of(*tensor), tensor->name, static_cast<int64_t>(*bad)));
    const auto to = values[k].mutable_as<float>();
    size_t at = 0;
    for (const int64_t row : places.rows)
      for (const int64_t column : places.columns) to[static_cast<size_t>(row + column)] = elements[at++];
  }
  return {};
}

}  // namespace ostro::hf
