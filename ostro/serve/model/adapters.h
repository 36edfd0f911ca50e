// with_adapter, keep_adapter_alone, share_parameters, adapter_hash: adapters (LoRA) of a model that is
// served, as further models.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ostro/context/context.h"
#include "ostro/trained/loaded_model.h"

namespace ostro::serve {

// An adapter and the name by which requests ask for it; empty: of one that is not served beside its base.
struct NamedAdapter {
  std::string name, path;
};

// The words "NAME=DIR" of the option `option`. Errors: a word without "="; those of check_adapters.
Result<std::vector<NamedAdapter>> parse_adapters(const std::vector<std::string>& words,
                                                 const std::string& option);

// Errors: one without a name or a path, a name of other characters than letters, digits, ".", "_" and "-", a
// name twice.
Status check_adapters(const std::vector<NamedAdapter>& adapters, const std::string& option);

struct AdapterOptions {
  std::string tokenizer;
  trained::Trust trust = trained::Trust::kChain;
  trained::UseOptions use = {};
};

// The model `base` with an adapter: that of a directory in PEFT's format, or of a run or checkpoint that
// trained one; then tokenizer, chat template and context are those of the run. Errors: the path is neither;
// it is of another base or has other shapes (with the parameter); its products are computed in another
// precision.
Result<trained::LoadedModel> with_adapter(const Context& context, const NamedAdapter& adapter,
                                          const trained::LoadedModel& base, const AdapterOptions& options);

// Frees the parameters of a model of with_adapter that are not of its adapter.
void keep_adapter_alone(trained::LoadedModel& with);

// Moves the base's parameters to this memory, as programs read them, and lets the models of with_adapter have
// the same ones.
Status share_parameters(trained::LoadedModel& base, std::vector<trained::LoadedModel>& with,
                        runtime::Memory& memory);

// SHA-256 over "scale <scale>\n" and the parameters of an adapter, sorted by path: "<path> <type>\n", then
// the bytes, f32.
std::string adapter_hash(const std::vector<std::string>& paths, std::span<const runtime::Buffer> values,
                         double scale);
// That of a model of with_adapter.
std::string adapter_hash(const trained::LoadedModel& with);

}  // namespace ostro::serve
