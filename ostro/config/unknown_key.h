// unknown_key: what the reader says of a key that is no option of its section. Private to the room.
#pragma once

#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/config/node.h"

namespace ostro::config {

// Ok, with a line in the log, if the key has no effect here (foreign_keys.h). Else an error with the name
// that it has here, the place where an option of this name is, or the nearest names. `names` are the keys of
// the section; `all` the paths of all options of the configuration, which may be empty.
Status unknown_key(const Node& item, const std::string& path, const std::vector<std::string>& names,
                   const std::vector<std::string>& all);

}  // namespace ostro::config
