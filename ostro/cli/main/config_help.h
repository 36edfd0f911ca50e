// short_keys_help, keys_help: the part of --help that is about the keys of the configuration.
#pragma once

#include <string>

#include "ostro/models/model_choices.h"

namespace ostro::cli {

// The keys that are sought first, in this order: trainer, data, model, optimizer, numerics; a line each, and
// how to see the others. `command` stands in the examples ("ostro train").
std::string short_keys_help(const std::string& command, const models::ModelChoices& models);

// All about the keys that `word` names: a key, a section, the beginning or a part of a key's last name. An
// empty word names all. Empty if there are none.
std::string keys_help(const std::string& word, const models::ModelChoices& models);

// "; it is --optimizer.learning_rate here" for an option that no command has ("--lr", "--learning-rate"), or
// an empty text.
std::string key_for_option(const std::string& word, const models::ModelChoices& models);

}  // namespace ostro::cli
