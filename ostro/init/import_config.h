// import_levanter, import_training_arguments: translate configurations of other trainers to ours. Pure
// functions.
//
// Names come from the one table of foreign_keys.h; keys that need more than another name are converted here.
// A key that the file leaves out gets the other trainer's default, if that differs from ours.
#pragma once

#include <string>
#include <vector>

#include "ostro/config/node.h"

namespace ostro::init {

struct Imported {
  config::Node tree = config::Node::map();  // ours: sections and keys
  // A sentence each, with the place in the file.
  std::vector<std::string> converted;  // keys with another name or another form in ours
  std::vector<std::string> left_out;   // keys without effect on the numbers here, or replaced by a command
  std::vector<std::string> missing;    // keys that have no counterpart, and change what is trained
};

// Translates a YAML for `levanter.main.train_lm`: its sections data, trainer, model, optimizer and the keys
// beside them. Keys that no table has stay in the tree as they are; reading the tree then reports them.
Imported import_levanter(const config::Node& file);

// Translates the keys of transformers.TrainingArguments, and of trl's SFTConfig.
Imported import_training_arguments(const config::Node& file);

// Returns true when a tree looks like TrainingArguments: it has no sections of ours.
bool is_training_arguments(const config::Node& file);

}  // namespace ostro::init
