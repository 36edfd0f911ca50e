// MadeModel: a model that an import made from another checkpoint of Ostro. write_made_model() writes it as a
// directory like that of any import.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ostro/checkpoint/save.h"
#include "ostro/trained/loaded_model.h"

namespace ostro::convert {

struct MadeModel {
  const char* format;                               // Origin::format
  const std::map<std::string, std::string>& files;  // files of another program that went into it: SHA-256
  const std::string& made_of;                       // the checkpoint, as it was named
  const std::string& out;
  const train::TrainConfig& config;
  const std::vector<std::string>& paths;
  const std::vector<runtime::Buffer>& values;  // of the paths
};

// Returns a configuration with the defaults of a run, but with the compute type of `source` and the tokenizer
// in `out`. The caller sets the model; the user who reads train.yaml sets the texts.
train::TrainConfig made_config(const trained::LoadedModel& source, const std::string& out);

// Makes the directory: checkpoints/step-00000000, the tokenizer and the chat template of `source`,
// origin.json, which names the state of `source`, and train.yaml. If anything fails, there is no such
// directory. Errors: those of reading and writing.
Result<checkpoint::Saved> write_made_model(io::FileSystem& fs, const trained::LoadedModel& source,
                                           const MadeModel& model);

}  // namespace ostro::convert
