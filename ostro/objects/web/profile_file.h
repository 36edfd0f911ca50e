// profile_section, profile_keys: the sections of AWS's credentials and configuration files. Pure functions.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "ostro/base/error.h"
#include "ostro/objects/web/key_servers.h"

namespace ostro::objects {

// "[NAME]" begins the section of a profile in a credentials file, "[profile NAME]" or "[default]" in a
// configuration file.
enum class ProfileFile { kCredentials, kConfiguration };

using ProfileValues = std::map<std::string, std::string, std::less<>>;

// The settings of a profile; none where the file has no such section. Settings that are nested below another
// one, and comments, are left out.
ProfileValues profile_section(std::string_view text, ProfileFile kind, const std::string& profile);
// "it has the profiles a, b", for errors.
std::string profiles_text(std::string_view text, ProfileFile kind);

// The keys among the settings; no keys where there are none. kCorrupt: only one of the two is there.
Result<S3Keys> profile_keys(const ProfileValues& values, const std::string& path, const std::string& profile);
// Both, of the text of a credentials file.
Result<S3Keys> parse_credentials_file(std::string_view text, const std::string& path,
                                      const std::string& profile);

}  // namespace ostro::objects
