#include "ostro/serve/model/adapters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <map>

#include "ostro/base/sha256.h"
#include "ostro/convert/import/made_model.h"
#include "ostro/convert/import/peft_model.h"
#include "ostro/infer/weights/resident_weights.h"
#include "ostro/io/files/path.h"
#include "ostro/nn/adapters.h"
#include "ostro/numerics/arrays.h"
#include "ostro/trained/opened_model.h"

namespace ostro::serve {
namespace {

using runtime::Buffer;

// As the command line has it.
std::string words_of(const NamedAdapter& adapter) {
  return fmt::format("--adapter {}{}{}", adapter.name, adapter.name.empty() ? "" : "=", adapter.path);
}

Error not_named(const std::string& option, const std::string& word) {
  return invalid_argument(
      fmt::format("{} {}: write NAME=DIR; a name has letters, digits, \".\", \"_\" and \"-\"", option, word));
}

Result<trained::LoadedModel> with_peft(const Context& context, const NamedAdapter& adapter,
                                       const trained::LoadedModel& base) {
  ASSIGN_OR_RETURN(const hf::LoraFiles files, hf::open_lora(context.fs, adapter.path));
  ASSIGN_OR_RETURN(convert::PeftModel made,
                   convert::peft_model(files, base, convert::made_config(base, adapter.path),
                                       train::ModelUse::kEvaluation));
  return trained::LoadedModel{
      std::move(made.config),
      base.tokenizer,
      base.tokenizer_path,
      std::move(made.functions),
      {std::move(made.values), base.parameters.step, adapter.path, base.parameters.name}};
}

// A parameter of the base as a model with an adapter holds it: what is not trained is in the compute dtype
// (numerics.md N1), also where the base has its integers from f32.
Result<Buffer> as_frozen(Buffer of_base, ir::DType held) {
  if (held != ir::DType::bf16) return of_base;
  return infer::narrowed(std::move(of_base));
}

// The parameters beside the adapter have to be those of the base, as programs read them.
Status check_base(const NamedAdapter& adapter, const trained::LoadedModel& with,
                  const trained::LoadedModel& base) {
  const auto layers = trained::layers_of(with), base_layers = trained::layers_of(base);
  if (!layers || !base_layers)
    return unsupported(fmt::format("{}: only decoders can have one", words_of(adapter)));
  const auto other = [&](const std::string& what) {
    return invalid_argument(fmt::format("{}: it is of another base: {}", words_of(adapter), what));
  };
  std::map<std::string, size_t> places;
  for (size_t k = 0; k < base.functions.paths.size(); ++k) places[base.functions.paths[k]] = k;
  size_t shared = 0;
  for (size_t k = 0; k < with.functions.paths.size(); ++k) {
    const std::string& path = with.functions.paths[k];
    if (nn::is_adapter(path)) continue;
    ++shared;
    const auto at = places.find(path);
    if (at == places.end()) return other(fmt::format("it has {}, {} has not", path, base.parameters.path));
    ASSIGN_OR_RETURN(const Buffer here, infer::as_read(*layers, k, with.parameters.values[k]));
    ASSIGN_OR_RETURN(Buffer there,
                     infer::as_read(*base_layers, at->second, base.parameters.values[at->second]));
    ASSIGN_OR_RETURN(there, as_frozen(std::move(there), here.shape().dtype));
    if (here.shape() != there.shape())
      return other(fmt::format("{} is {}, that of {} is {}", path, here.shape().str(), base.parameters.path,
                               there.shape().str()));
    if (std::memcmp(here.bytes().data(), there.bytes().data(), here.bytes().size()) != 0)
      return other(fmt::format("{} has other values than that of {}", path, base.parameters.path));
  }
  if (shared == with.functions.paths.size())
    return invalid_argument(
        fmt::format("{}: this model has no adapter (adapter.type: none)", words_of(adapter)));
  if (shared != places.size())
    return other(
        fmt::format("it has {} of the {} parameters of {}", shared, places.size(), base.parameters.path));
  return {};
}

}  // namespace

Result<std::vector<NamedAdapter>> parse_adapters(const std::vector<std::string>& words,
                                                 const std::string& option) {
  std::vector<NamedAdapter> out;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos) return not_named(option, word);
    out.push_back({word.substr(0, equals), word.substr(equals + 1)});
  }
  RETURN_IF_ERROR(check_adapters(out, option));
  return out;
}

Status check_adapters(const std::vector<NamedAdapter>& adapters, const std::string& option) {
  const auto allowed = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-';
  };
  std::map<std::string, std::string> paths;
  for (const auto& [name, path] : adapters) {
    const std::string word = name + "=" + path;
    if (name.empty() || path.empty() || !std::all_of(name.begin(), name.end(), allowed))
      return not_named(option, word);
    const auto [earlier, is_new] = paths.try_emplace(name, path);
    if (!is_new)
      return invalid_argument(
          fmt::format("{} {}: the name {} is that of {} already", option, word, name, earlier->second));
  }
  return {};
}

Result<trained::LoadedModel> with_adapter(const Context& context, const NamedAdapter& adapter,
                                          const trained::LoadedModel& base, const AdapterOptions& options) {
  const std::string what = words_of(adapter);
  if (train::lora_spec(base.config.adapter))
    return invalid_argument(
        fmt::format("{}: {} has an adapter itself; serve its base with both", what, base.parameters.path));
  ASSIGN_OR_RETURN(const bool is_peft, context.fs.exists(io::join_path(adapter.path, "adapter_config.json")));
  if (is_peft) {
    auto out = with_peft(context, adapter, base);
    if (!out.ok()) return out.error().with_context(what);
    return out;
  }
  auto out = trained::load_model(context.fs, adapter.path, options.tokenizer, context.models, options.trust,
                                 options.use);
  if (!out.ok()) return out.error().with_context(what);
  ASSIGN_OR_RETURN(const train::MixedPrecision here, train::parse_precision(out->config.trainer.mp));
  ASSIGN_OR_RETURN(const train::MixedPrecision there, train::parse_precision(base.config.trainer.mp));
  if (here != there)
    return invalid_argument(
        fmt::format("{}: it was trained with trainer.mp {}, the base with {}; name one for both with --mp",
                    what, out->config.trainer.mp, base.config.trainer.mp));
  RETURN_IF_ERROR(check_base(adapter, *out, base));
  return out;
}

void keep_adapter_alone(trained::LoadedModel& with) {
  for (size_t k = 0; k < with.parameters.values.size(); ++k)
    if (!nn::is_adapter(with.functions.paths[k])) with.parameters.values[k] = {};
}

Status share_parameters(trained::LoadedModel& base, std::vector<trained::LoadedModel>& with,
                        runtime::Memory& memory) {
  const auto layers = trained::layers_of(base);
  OSTRO_CHECK(layers.has_value(), "a model with adapters is a decoder");
  std::map<std::string, Buffer> shared, frozen;
  for (size_t k = 0; k < base.parameters.values.size(); ++k) {
    Buffer& value = base.parameters.values[k];
    ASSIGN_OR_RETURN(value, infer::as_read(*layers, k, std::move(value)));
    ASSIGN_OR_RETURN(value, value.to(memory));
    shared[base.functions.paths[k]] = value;
  }
  for (trained::LoadedModel& model : with)
    for (size_t k = 0; k < model.parameters.values.size(); ++k) {
      const std::string& path = model.functions.paths[k];
      if (nn::is_adapter(path)) continue;
      Buffer& one = frozen[path];
      if (!one.valid()) {
        ASSIGN_OR_RETURN(one, as_frozen(shared.at(path), model.functions.shapes[k].dtype));
        ASSIGN_OR_RETURN(one, one.to(memory));
      }
      model.parameters.values[k] = one;
    }
  return {};
}

std::string adapter_hash(const std::vector<std::string>& paths, std::span<const Buffer> values,
                         double scale) {
  std::map<std::string, const Buffer*> sorted;
  for (size_t k = 0; k < paths.size(); ++k)
    if (nn::is_adapter(paths[k])) sorted[paths[k]] = &values[k];
  Sha256 hash;
  hash.update(fmt::format("scale {}\n", scale));
  for (const auto& [path, value] : sorted) {
    Buffer wide = *value;
    if (wide.shape().dtype == ir::DType::bf16) {
      wide = Buffer::empty(value->shape().with_dtype(ir::DType::f32));
      numerics::widen(value->bytes(), wide.mutable_bytes());
    }
    hash.update(fmt::format("{} {}\n", path, wide.shape().str()));
    hash.update(wide.bytes());
  }
  return to_hex(hash.finish());
}

std::string adapter_hash(const trained::LoadedModel& with) {
  return adapter_hash(with.functions.paths, with.parameters.values,
                      train::lora_spec(with.config.adapter)->scale);
}

}  // namespace ostro::serve
