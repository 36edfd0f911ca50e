// take_foreign, put_path: what the imports of configurations share. Private to the room.
#pragma once

#include <string>

#include "ostro/init/import_config.h"

namespace ostro::init {

// Puts a value at a dotted path of a tree, in the place of an older one; sections are made on the way.
void put_path(config::Node& tree, const std::string& path, config::Node value);
bool has_path(const config::Node& tree, const std::string& path);

// "c.yaml:3: trainer.ray: {address: null}".
std::string said(const config::Node& item, const std::string& path);

// Does with the key what its row of the table of foreign keys says: renames it, lists it as left out or as
// missing. False if there is no row.
bool take_foreign(const config::Node& item, const std::string& path, Imported& out);

}  // namespace ostro::init
