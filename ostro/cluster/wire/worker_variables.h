// worker_variables: what a worker on another machine gets of this process's environment, and the job's
// secret.
#pragma once

#include <string>
#include <string_view>

namespace ostro::cluster {

inline constexpr std::string_view kSecretVariable = "OSTRO_JOB_SECRET";

// Lines NAME=VALUE and an empty one: of the environment (as of `environ`) the variables OSTRO_* and AWS_*,
// but not OSTRO_ADVERTISE and OSTRO_SLICE, which say where this machine is, nor AWS_CONTAINER_*, which name a
// server that gives keys to this task alone, nor values that have line feeds; and the job's secret, if there
// is one.
std::string worker_variables(const char* const* environment, const std::string& secret = "");

}  // namespace ostro::cluster
