// import_levanter, import_training_arguments: configurations of other trainers as ours.
//
// Names come from the one table of foreign_keys.h; what needs more than another name is converted here. What
// a file leaves out has the default that it has there, where that differs from ours.
#pragma once

#include <string>
#include <vector>

#include "ostro/config/node.h"

namespace ostro::init {

struct Imported {
  config::Node tree = config::Node::map();  // ours: sections and keys
  // A sentence each, with the place in the file.
  std::vector<std::string> converted;  // taken over, under another name or in another form
  std::vector<std::string> left_out;   // without effect on the numbers here, or done by a command
  std::vector<std::string> missing;    // has no counterpart, and changes what is trained
};

// The sections of a YAML for `levanter.main.train_lm`: data, trainer, model, optimizer and the keys beside
// them. Keys that no table knows stay in the tree as they are: reading it names them.
Imported import_levanter(const config::Node& file);

// The keys of transformers.TrainingArguments, and of trl's SFTConfig.
Imported import_training_arguments(const config::Node& file);

// Whether a tree looks like TrainingArguments: it has no sections of ours.
bool is_training_arguments(const config::Node& file);

}  // namespace ostro::init
