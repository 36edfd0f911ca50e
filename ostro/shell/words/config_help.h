// short_keys_help, keys_help: the part of --help that is about the keys of the configuration. Pure functions.
#pragma once

#include <string>

#include "ostro/models/model_choices.h"

namespace ostro::cli {

// The keys that most users need first, a line each: those of trainer, data, model, optimizer and numerics, in
// this order; then how to see the others. `command` is the command of the examples ("ostro train").
std::string short_keys_help(const std::string& command, const models::ModelChoices& models);

// The full description of the keys that `word` names: a key, a section, the beginning or a part of a key's
// last name. An empty word names all. Returns "" if it names none.
std::string keys_help(const std::string& word, const models::ModelChoices& models);

// The hint about an option that no command has ("--lr", "--learning-rate"): "; it is
// --optimizer.learning_rate here". Empty when there is none.
std::string key_for_option(const std::string& word, const models::ModelChoices& models);

}  // namespace ostro::cli
