// take_foreign, put_path: the functions that the imports of configurations share. Private to the room.
#pragma once

#include <string>

#include "ostro/init/import_config.h"

namespace ostro::init {

// Puts a value at a dotted path of a tree. Replaces an older value, and makes the missing sections.
void put_path(config::Node& tree, const std::string& path, config::Node value);
bool has_path(const config::Node& tree, const std::string& path);

// "c.yaml:3: trainer.ray: {address: null}".
std::string said(const config::Node& item, const std::string& path);

// Treats a key as its row in the table of foreign keys says: renames it, or lists it as left out or as
// missing. Returns false if it has no row.
bool take_foreign(const config::Node& item, const std::string& path, Imported& out);

}  // namespace ostro::init
