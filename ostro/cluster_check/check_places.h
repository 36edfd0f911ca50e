// check_places: whether all machines can use the places of a run: the folders that they share, its object
// store, and what each reads and writes on its own disks.
#pragma once

#include "ostro/base/error.h"
#include "ostro/cluster_check/machines.h"

namespace ostro::cluster_check {

// What is wrong goes to the report of `machines`. Errors: a shared folder of this machine that cannot be
// written.
Status check_places(Machines& machines);

}  // namespace ostro::cluster_check
