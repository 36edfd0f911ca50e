// ModelChoice, Model, open_model: the model of train_bench and update_bench, with its programs and its
// arrays: the Llama of a file that bench/peers/start_file.py wrote, or another family of its sizes.
#pragma once

#include <string>

#include "ostro/io/arrays/safetensors.h"
#include "ostro/train/step/step.h"

namespace ostro::bench {

struct ModelChoice {
  std::string start;          // the file
  std::string dtype = "f32";  // of compute: f32, bf16, int8 (products on integers), int8a (attention, too)
  int64_t leaf_examples = 0;  // 0: as numerics.leaf_examples null
  std::string optimizer = "adam";  // its type, all other options their defaults; muon_bf16: products in bf16
  std::string family = "llama";    // model.type of a decoder; weights that the file lacks are drawn
  int64_t rank = 0;                // of LoRA on all matrices but the head; 0: the whole model is trained
  bool prints = true;              // false: the update leaves the parameters' fingerprints out
};

struct Model {
  io::SafetensorsReader file;
  train::TrainConfig config;
  train::CanonicalPrograms programs;
  models::ModelFunctions functions;

  const std::string& size() const { return file.metadata().at("size"); }
  // An array of the file. Errors: it is absent or of another size.
  Result<runtime::Buffer> read(const std::string& name, const ir::Shape& shape) const;
  // The weights of the file; those that it has not are drawn, moments zero.
  Result<train::State> state(runtime::Engine& engine) const;
};

Result<Model> open_model(const ModelChoice& choice);

}  // namespace ostro::bench
