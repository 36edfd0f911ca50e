// config_file: the file of a run directory that has the run's resolved configuration, after a kill at any
// moment of an amend, too (docs/reference/formats/chain.md, "Amends").
//
// An amend is two writes, its entry in the chain and config.yaml. So the new configuration is written to a
// file of its own first, which says of which entry it is. From the entry on that file is in force, until
// config.yaml has its content and it is removed, or the next amend needs its place. Any thread may call these
// functions.
#pragma once

#include <string>
#include <string_view>

#include "ostro/chain/chain_entry.h"
#include "ostro/io/files/file_system.h"

namespace ostro::chain {

inline constexpr const char* kConfigFile = "config.yaml";
inline constexpr const char* kAmendedConfigFile = "config.amended.yaml";

// The path of the file in the run directory: kAmendedConfigFile if it is there and of the chain's last amend,
// and otherwise kConfigFile, also where the chain cannot be read. The file need not exist.
std::string config_file(io::FileSystem& fs, const std::string& directory);

// The same for the path of a configuration that a user names: the path of a config.yaml leads to the file
// that is in force in its directory. Any other path is returned as it is.
std::string config_in_force(io::FileSystem& fs, const std::string& path);

// Makes kConfigFile the file that is in force, before kAmendedConfigFile is written for another amend: a
// process may have died before it renewed kConfigFile after the last one. Errors: those of reading and
// writing.
Status settle_config(io::FileSystem& fs, const std::string& directory);

// The content of kAmendedConfigFile: `yaml` under a comment that names the amend.
std::string amended_config_text(const AmendEntry& amend, std::string_view yaml);

}  // namespace ostro::chain
