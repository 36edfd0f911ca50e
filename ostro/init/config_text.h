// config_text, choices_text: the configuration that `ostro init` writes, and its summary of the choices. Pure
// functions.
#pragma once

#include <string>

#include "ostro/init/hold_out.h"
#include "ostro/init/machine.h"
#include "ostro/init/sizes.h"
#include "ostro/init/survey.h"

namespace ostro::init {

// The places that the run will write to.
struct RunPlaces {
  std::string id, log_dir = "runs", cache_dir = "cache";
};

// A word for trainer.id, made from a place as it was typed: "my texts/" gives "my_texts", "." and globs
// "run".
std::string run_id(const std::string& place);

// The configuration as YAML, with the reason for each chosen key in a comment after it. `command` is the
// command line that wrote it.
std::string config_text(const Survey& survey, const HoldOut& held_out, const Sizes& sizes,
                        const Machine& machine, const RunPlaces& places, const std::string& command);

// The choices as text for the terminal: a line each, and the estimated time of training.
std::string choices_text(const Survey& survey, const HoldOut& held_out, const Sizes& sizes,
                         const Machine& machine);

}  // namespace ostro::init
