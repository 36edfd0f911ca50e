// MadeModel: a model that an import made of another checkpoint of Ostro. write_made_model() writes it as a
// directory like any import's.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ostro/checkpoint/save.h"
#include "ostro/trained/loaded_model.h"

namespace ostro::convert {

struct MadeModel {
  const char* format;                               // what origin.json calls it
  const std::map<std::string, std::string>& files;  // of another program, that it was made of, too: SHA-256
  const std::string& made_of;                       // the checkpoint, as it was named
  const std::string& out;
  const train::TrainConfig& config;
  const std::vector<std::string>& paths;
  const std::vector<runtime::Buffer>& values;  // of the paths
};

// A configuration with the defaults of a run, but the compute type of `source` and the tokenizer of `out`;
// the caller sets the model, the reader of train.yaml the texts.
train::TrainConfig made_config(const trained::LoadedModel& source, const std::string& out);

// Makes the directory: checkpoints/step-00000000, the tokenizer and the chat template of `source`,
// origin.json, which names the state of `source`, and train.yaml. If anything fails, there is no such
// directory.
Result<checkpoint::Saved> write_made_model(io::FileSystem& fs, const trained::LoadedModel& source,
                                           const MadeModel& model);

}  // namespace ostro::convert
