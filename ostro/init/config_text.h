// The configuration that `ostro init` writes, and what it says about it.
#pragma once

#include <string>

#include "ostro/init/hold_out.h"
#include "ostro/init/machine.h"
#include "ostro/init/sizes.h"
#include "ostro/init/survey.h"

namespace ostro::init {

// Where the run will write.
struct RunPlaces {
  std::string id, log_dir = "runs", cache_dir = "cache";
};

// A word for trainer.id out of a place as it was typed: "my texts/" gives "my_texts", "." and globs "run".
std::string run_id(const std::string& place);

// YAML in which every chosen key says why behind it. `command` is what wrote it.
std::string config_text(const Survey& survey, const HoldOut& held_out, const Sizes& sizes,
                        const Machine& machine, const RunPlaces& places, const std::string& command);

// The same choices for a person: a line each, and how long training will take.
std::string choices_text(const Survey& survey, const HoldOut& held_out, const Sizes& sizes,
                         const Machine& machine);

}  // namespace ostro::init
