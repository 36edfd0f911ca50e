#include "ostro/hf/families/config_fields.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "ostro/hf/families/config_state.h"
#include "ostro/hf/families/harmless_keys.h"

namespace ostro::hf {
namespace {

using Json = nlohmann::ordered_json;

Json number_json(double value, bool whole) {
  return whole && value == std::floor(value) && std::abs(value) < 1e15 ? Json(static_cast<int64_t>(value))
                                                                       : Json(value);
}

}  // namespace

ConfigFields::ConfigFields(std::unique_ptr<State> state) : state_(std::move(state)) {}
ConfigFields::ConfigFields(ConfigFields&&) noexcept = default;
ConfigFields::~ConfigFields() = default;

Result<ConfigFields> ConfigFields::reader(std::string_view json, std::string where) {
  auto state = std::make_unique<State>();
  state->reading = true;
  state->json = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (state->json.is_discarded() || !state->json.is_object())
    return corrupt(fmt::format("{}: not a JSON object", where));
  state->where = std::move(where);
  return ConfigFields(std::move(state));
}

ConfigFields ConfigFields::writer() { return ConfigFields(std::make_unique<State>()); }

bool ConfigFields::reading() const { return state_->reading; }
const std::string& ConfigFields::where() const { return state_->where; }
const Status& ConfigFields::status() const { return state_->status; }
void ConfigFields::fail(Error error) { state_->fail(std::move(error)); }
bool ConfigFields::has(std::string_view key) { return state_->find(key) != nullptr; }

void ConfigFields::integer(std::string_view key, int64_t* field, std::optional<int64_t> missing) {
  if (!state_->reading) {
    state_->json[std::string(key)] = *field;
    return;
  }
  const Json* value = state_->find(key);
  if (value == nullptr && missing)
    *field = *missing;
  else if (value == nullptr)
    fail(corrupt(fmt::format("{}: \"{}\" is missing", state_->where, key)));
  else if (!value->is_number_integer() || (value->is_number_unsigned() && value->get<uint64_t>() > INT64_MAX))
    state_->bad(key, "a whole number is needed");
  else
    *field = value->get<int64_t>();
}

void ConfigFields::number(std::string_view key, double* field, std::optional<double> missing) {
  std::optional<double> value = *field;
  number(key, &value, missing);
  if (value)
    *field = *value;
  else
    fail(corrupt(fmt::format("{}: \"{}\" is missing", state_->where, key)));
}

void ConfigFields::boolean(std::string_view key, bool* field, bool missing) {
  if (!state_->reading) {
    state_->json[std::string(key)] = *field;
    return;
  }
  const Json* value = state_->find(key);
  if (value != nullptr && !value->is_boolean()) return state_->bad(key, "true or false is needed");
  *field = value == nullptr ? missing : value->get<bool>();
}

void ConfigFields::integer(std::string_view key, std::optional<int64_t>* field,
                           std::optional<int64_t> missing) {
  if (!state_->reading) {
    state_->json[std::string(key)] = *field ? Json(**field) : Json(nullptr);
    return;
  }
  *field = state_->there(key) ? std::nullopt : missing;
  if (!has(key)) return;
  int64_t value = 0;
  integer(key, &value);
  *field = value;
}

void ConfigFields::number(std::string_view key, std::optional<double>* field, std::optional<double> missing,
                          bool whole) {
  if (!state_->reading) {
    state_->json[std::string(key)] = *field ? number_json(**field, whole) : Json(nullptr);
    return;
  }
  const Json* value = state_->find(key);
  if (value != nullptr && !value->is_number()) return state_->bad(key, "a number is needed");
  if (value != nullptr)
    *field = value->get<double>();
  else
    *field = state_->there(key) ? std::nullopt : missing;
}

void ConfigFields::activation(std::string_view key, models::Activation* field, models::Activation missing,
                              const char* tanh_name) {
  using models::Activation;
  static const std::pair<std::string_view, Activation> kNames[] = {
      {"silu", Activation::kSilu},          {"swish", Activation::kSilu},
      {"gelu", Activation::kGelu},          {"gelu_python", Activation::kGelu},
      {"gelu_new", Activation::kGeluTanh},  {"gelu_pytorch_tanh", Activation::kGeluTanh},
      {"gelu_fast", Activation::kGeluTanh}, {"relu", Activation::kRelu}};
  if (!state_->reading) {
    const std::string name = models::option_names(*field)[static_cast<size_t>(*field)];
    state_->json[std::string(key)] = *field == Activation::kGeluTanh ? std::string(tanh_name) : name;
    return;
  }
  *field = missing;
  const Json* value = state_->find(key);
  if (value == nullptr) return;
  for (const auto& [name, activation] : kNames)
    if (*value == std::string(name)) {
      *field = activation;
      return;
    }
  state_->bad(key, "known activations are silu, gelu, gelu_new, gelu_pytorch_tanh and relu");
}

void ConfigFields::words(std::string_view key, std::vector<std::string>* field) {
  state_->list(key, field, &Json::is_string, "a list of words is needed");
}

void ConfigFields::integers(std::string_view key, std::vector<int64_t>* field) {
  state_->list(key, field, &Json::is_number_integer, "a list of whole numbers is needed");
}

std::string ConfigFields::word(std::string_view key, std::string_view value,
                               std::initializer_list<std::string_view> known) {
  if (!state_->reading) {
    state_->json[std::string(key)] = value;
    return std::string(value);
  }
  const Json* given = state_->find(key);
  if (given == nullptr) return std::string(*known.begin());
  for (const std::string_view one : known)
    if (*given == std::string(one)) return std::string(one);
  state_->bad(key, fmt::format("known is {}", fmt::join(known, ", ")));
  return std::string(*known.begin());
}

void ConfigFields::must(std::string_view key, bool wanted) {
  if (!state_->reading) {
    state_->json[std::string(key)] = wanted;
    return;
  }
  const Json* value = state_->find(key);
  if (value != nullptr && *value != wanted) state_->bad(key, fmt::format("only {} is known", wanted));
}

void ConfigFields::must_be(std::string_view key, int64_t wanted) {
  if (!state_->reading) {
    state_->json[std::string(key)] = wanted;
    return;
  }
  const Json* value = state_->find(key);
  if (value != nullptr && *value != wanted) state_->bad(key, fmt::format("only {} is known", wanted));
}

void ConfigFields::must_say(std::string_view key, std::string_view wanted) {
  const Json* value = state_->find(key);
  if (value != nullptr && *value != std::string(wanted))
    state_->bad(key, fmt::format("only \"{}\" is known", wanted));
}

void ConfigFields::must_be_null(std::string_view key) {
  if (state_->reading && state_->find(key) != nullptr) state_->bad(key, "only null is known");
}

void ConfigFields::harmless(std::string_view key, double value) {
  state_->known.emplace(key);
  if (!state_->reading) state_->json[std::string(key)] = value;
}

void ConfigFields::harmless(std::string_view key, bool value) {
  state_->known.emplace(key);
  if (!state_->reading) state_->json[std::string(key)] = value;
}

void ConfigFields::text(std::string_view key, std::string_view value) {
  state_->json[std::string(key)] = value;
}

void ConfigFields::list_of(std::string_view key, std::string_view only) {
  state_->json[std::string(key)] = Json::array({std::string(only)});
}

void ConfigFields::id(std::string_view key, const std::optional<uint32_t>& value) {
  state_->json[std::string(key)] = value ? Json(*value) : Json(nullptr);
}

std::string ConfigFields::written() const { return state_->json.dump(2) + "\n"; }

Status ConfigFields::finish(std::string_view family, std::vector<std::string>* passed_over) const {
  RETURN_IF_ERROR(state_->status);
  for (const auto& [key, value] : state_->json.items()) {
    if (value.is_null() || state_->known.contains(key)) continue;
    if (const HarmlessKey* harmless = find_harmless(key, value, family)) {
      if (!harmless->usual) passed_over->push_back(fmt::format("\"{}\" {}", key, harmless->reason));
      continue;
    }
    if (key == "quantization_config" || key == "quantization" || key == "compression_config")
      return unsupported(
          fmt::format("{}: \"{}\": quantized weights are not read; take the directory of the "
                      "model in bf16, f16 or f32",
                      state_->where, key));
    return unsupported(
        fmt::format("{}: \"{}\" is {}, which the family {} does not know; if it says nothing about what the "
                    "model computes, remove it from the file",
                    state_->where, key, value.dump(), family));
  }
  return {};
}

}  // namespace ostro::hf
