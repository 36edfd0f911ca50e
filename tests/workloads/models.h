// Weights: a small decoder, and how it is served: the settings of which no answer may depend.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ostro/infer/layer_rows.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/models/decoder/decoder_options.h"
#include "ostro/serve/model/served_model.h"

namespace ostro::workloads {

inline constexpr int64_t kContext = 3200;  // 25 pages

enum class Numbers { kF32, kBf16, kInt8 };
const char* word_of(Numbers numbers);

// A decoder that differs from the others in how its layers run.
struct Kind {
  std::string name;
  models::DecoderOptions options;
  std::vector<Numbers> numbers;                          // in which it can be served
  std::optional<std::vector<std::string>> adapted = {};  // matrices with adapters; nothing: all but the head
};
// Dense, with values that no family has, with windows, a mixture, latent attention, and a family whose
// programs gather pages.
const std::vector<Kind>& kinds();

struct Setting {
  std::string isa;  // as isa.h names them; empty: the best one
  int threads = 1;
  bool interpreted = false;  // by the interpreter, without instruction set and threads
  bool streamed = false;     // the weights are read from a checkpoint
  int64_t keep_bytes = 0;    // of a streamed model's weights
  infer::RowLimits limits = {kContext, 1, 64};
};

// Random parameters, also where a model begins with 0 or 1. `adapter`: 0, none; 1, 2, ...: others, of one
// shape, whose products are not zero, on the same base. The tokens are those of serve::test_tokenizer().
// Thread-safe; outlives what it serves.
class Weights {
 public:
  Weights(const Kind& kind, Numbers numbers, int adapter);

  // `change` may plant a fault into the layers.
  serve::ServedModel served(const Setting& setting,
                            const std::function<void(models::LayerFunctions&)>& change = {}) const;
  // The base, then the model with each of these adapters, whose rows go through the layers together.
  static std::vector<serve::ServedModel> served_together(const std::vector<const Weights*>& adapted,
                                                         const Setting& setting);

 private:
  models::LayerFunctions layers(int64_t adapters) const;
  void save();

  Kind kind_;
  nn::Precision precision_;
  std::optional<nn::LoraSpec> lora_;
  models::ModelFunctions functions_;
  models::LayerFunctions layers_;
  std::vector<runtime::Buffer> values_;
  mutable io::MemoryFileSystem fs_;
  std::string checkpoint_;  // in fs_
};

// The engine of a setting; those of one name are the same one, so that programs are built once.
std::shared_ptr<runtime::Engine> engine_of(const Setting& setting);

}  // namespace ostro::workloads
