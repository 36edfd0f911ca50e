// read_slurm_environment, write_slurm_environment, slurm_environment_text: the file from which the workers of
// Slurm's jobs learn how to reach their coordinator (slurm_worker_script). It stays when a launcher is
// killed, and tells the next one what the jobs know.
#pragma once

#include <string>

#include "ostro/base/error.h"

namespace ostro::cluster {

struct SlurmEnvironment {
  std::string address;  // of the coordinator
  int port = 0;
  std::string secret;
  bool operator==(const SlurmEnvironment&) const = default;
};

// What workers read: the coordinator's address and port, then lines NAME=VALUE with variables of
// `environment` (as of `environ`) and the secret, and an empty line.
std::string slurm_environment_text(const SlurmEnvironment& told, const char* const* environment);
// Replaces the file, which only its user can read, by one with that text. Errors: kIo.
Status write_slurm_environment(const std::string& path, const SlurmEnvironment& told,
                               const char* const* environment);
// What stands there; the port 0 and the secret "" where the file is missing, is not this user's alone, or
// lacks them.
SlurmEnvironment read_slurm_environment(const std::string& path);

}  // namespace ostro::cluster
