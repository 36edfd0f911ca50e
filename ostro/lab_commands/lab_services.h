// lab_services: what this program gives to the steps of a lab.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ostro/context/context.h"
#include "ostro/lab/steps/work.h"

namespace ostro::cli {

// Trainings are those of train_here(), with `argv` for run.json, and with so many workers in this process
// (nothing: those that the plan says). The context and `argv` must outlive the result.
lab::Services lab_services(const Context& context, const data::BuildSettings& build,
                           const std::vector<std::string>& argv, std::optional<int64_t> workers = {});

}  // namespace ostro::cli
