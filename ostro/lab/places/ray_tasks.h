// RayTasks: steps on a Ray cluster, an actor for each, which runs `ostro lab step`
// (python/ostro_ray/step.py). The actor and its process end with the driver that asked for them.
#pragma once

#include <memory>
#include <string>

#include "ostro/lab/places/elsewhere.h"

namespace ostro::lab {

struct RayOptions {
  std::string address = "auto";  // of the cluster
  int cpus = 1;                  // of a step
  std::string resources;         // JSON: further ones of a step, as {"GPU": 1}; may be empty
};

// Errors: no Python with the packages, resources that are none.
Result<std::unique_ptr<Cluster>> ray_tasks(io::FileSystem& fs, const RayOptions& options);

}  // namespace ostro::lab
