#include "ostro/hf/adapter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "ostro/base/sha256.h"
#include "ostro/io/arrays/safetensors.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"

namespace ostro::hf {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) {
  return value == std::floor(value) && std::abs(value) < 1e15 ? Json(static_cast<int64_t>(value))
                                                              : Json(value);
}

// An adapter of a module, as PEFT has it: A is [rank, inputs], B is [rows, rank].
struct Factors {
  int64_t rank = 0;
  std::vector<float> a, b;
};

std::vector<float> floats_of(const WeightPart& part, const std::vector<std::string>& paths,
                             std::span<const runtime::Buffer> values) {
  const std::vector<std::byte> bytes = take_part(part, values[parameter_of(paths, part.path)]);
  std::vector<float> out(bytes.size() / sizeof(float));
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

bool equal_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// The factors of a module's shares; `apart`: although their A may be equal, each has ranks of its own.
Factors join_shares(const LoraModule& module, int64_t rank, const std::vector<std::vector<float>>& a,
                    const std::vector<std::vector<float>>& b, bool apart) {
  const auto shares = static_cast<int64_t>(module.shares.size());
  Factors out;
  out.rank = apart ? shares * rank : rank;
  for (size_t k = 0; k < (apart ? a.size() : 1); ++k) out.a.insert(out.a.end(), a[k].begin(), a[k].end());
  out.b.resize(static_cast<size_t>(module.rows * out.rank));
  for (size_t k = 0; k < b.size(); ++k) {
    const int64_t first = apart ? static_cast<int64_t>(k) * rank : 0;
    for (size_t i = 0; i < module.shares[k].rows.size(); ++i)
      std::copy_n(b[k].begin() + static_cast<int64_t>(i) * rank, rank,
                  out.b.begin() + module.shares[k].rows[i] * out.rank + first);
  }
  return out;
}

Json config_json(const LoraConfig& config, const std::vector<std::string>& words, bool columns,
                 const std::string& base) {
  Json ranks = Json::object(), alphas = Json::object();
  for (const auto& [word, rank] : config.rank_pattern) ranks[word] = rank;
  for (const auto& [word, alpha] : config.alpha_pattern) alphas[word] = number(alpha);
  return {{"peft_type", "LORA"},
          {"task_type", "CAUSAL_LM"},
          {"base_model_name_or_path", base},
          {"r", config.rank},
          {"lora_alpha", number(config.alpha)},
          {"use_rslora", config.use_rslora},
          {"target_modules", words},
          {"lora_dropout", 0.0},
          {"bias", "none"},
          {"fan_in_fan_out", columns},
          {"init_lora_weights", true},
          {"inference_mode", true},
          {"modules_to_save", nullptr},
          {"rank_pattern", std::move(ranks)},
          {"alpha_pattern", std::move(alphas)}};
}

}  // namespace

// First the factors of every share are read. The modules of one word have one rank in PEFT's file, so the
// shares of all of them are joined in one way.
Status export_lora(io::FileSystem& fs, const std::string& directory, const LoraConfig& config,
                   const std::vector<WeightPart>& base_weights,
                   const std::vector<nn::AdaptedMatrix>& matrices, const std::vector<std::string>& paths,
                   std::span<const runtime::Buffer> values, const std::string& base,
                   const std::string& base_hash) {
  std::vector<ir::Shape> shapes;
  for (const runtime::Buffer& value : values) shapes.push_back(value.shape());
  const std::vector<LoraModule> modules = lora_modules(base_weights, matrices, paths, shapes);
  RETURN_IF_ERROR(check_lora_names(base_weights, matrices, modules));
  const std::vector<std::string> words = module_words(base_weights, modules);
  std::vector<std::vector<std::vector<float>>> a(modules.size()), b(modules.size());
  std::map<std::string, size_t> apart;  // how many shares a module of this word has, where their A differ
  for (size_t i = 0; i < modules.size(); ++i)
    for (const LoraShare& share : modules[i].shares) {
      a[i].push_back(floats_of(share.a, paths, values));
      b[i].push_back(floats_of(share.b, paths, values));
      if (!equal_bits(a[i].front(), a[i].back())) apart[words[i]] = modules[i].shares.size();
    }
  LoraConfig written = config;
  for (const auto& [word, shares] : apart) {
    const auto n = static_cast<double>(shares);
    written.rank_pattern.emplace_back(word, static_cast<int64_t>(shares) * config.rank);
    written.alpha_pattern.emplace_back(word, config.alpha * (config.use_rslora ? std::sqrt(n) : n));
  }
  std::vector<Factors> factors;
  std::vector<std::string> named;
  for (size_t i = 0; i < modules.size(); ++i) {
    factors.push_back(join_shares(modules[i], config.rank, a[i], b[i], apart.contains(words[i])));
    if (std::find(named.begin(), named.end(), words[i]) == named.end()) named.push_back(words[i]);
  }
  std::vector<io::SafetensorsEntry> entries;
  for (size_t i = 0; i < modules.size(); ++i) {
    const Factors& f = factors[i];
    entries.push_back(
        {modules[i].a_name(), "F32", {f.rank, modules[i].inputs}, std::as_bytes(std::span(f.a))});
    entries.push_back({modules[i].b_name(), "F32", {modules[i].rows, f.rank}, std::as_bytes(std::span(f.b))});
  }
  const bool columns =
      std::any_of(modules.begin(), modules.end(), [](const LoraModule& m) { return m.columns; });
  RETURN_IF_ERROR(fs.make_dirs(directory));
  RETURN_IF_ERROR(io::write_safetensors(fs, io::join_path(directory, "adapter_model.safetensors"), entries,
                                        {{"format", "pt"}, {"ostro_base", base_hash}}));
  return io::write_file_atomically(fs, io::join_path(directory, "adapter_config.json"),
                                   config_json(written, named, columns, base).dump(2) + "\n");
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
