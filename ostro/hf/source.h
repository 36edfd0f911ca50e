// Source, open_source: a Hugging Face model directory, opened to be imported. Everything that can be checked
// without reading the weights is checked.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ostro/hf/families/family.h"
#include "ostro/hf/weights.h"
#include "ostro/io/arrays/safetensors.h"
#include "ostro/io/files/file_system.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::hf {

// A part of one of our weights, with the tensor that holds it.
struct SourcePart {
  WeightPart part;
  const io::SafetensorsInfo* tensor = nullptr;
  int64_t first_row = 0;  // of the tensor
};

// An opened directory: the model, its tokenizer, and the tensor of every part of every parameter.
struct Source {
  std::string directory;
  HfModel model;
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer;
  io::SafetensorsReader reader;
  std::vector<std::string> paths;  // our parameters, in the order of models::ModelFunctions
  std::vector<ir::Shape> shapes;
  std::vector<SourcePart> parts;  // all of them; in sum every element of every parameter, once
  std::string dtype;              // "F32", "BF16", "F16": of most of the weights' bytes

  int64_t parameters() const;  // how many numbers they are
};

// Opens `directory`. `tokenizer` is the path of another tokenizer; "" for the directory's own. Errors name
// file, tensor and both values: no config.json, an unknown family or key; pickled weights, which are not
// read; a tensor that is missing, unknown, or of another shape or dtype; an embedding with fewer rows than
// the tokenizer has tokens.
Result<Source> open_source(io::FileSystem& fs, const std::string& directory, const std::string& tokenizer);

}  // namespace ostro::hf
