// user_cache_folder: where programs of this user keep what can be made again, by the rules of XDG.
#pragma once

#include <filesystem>

namespace ostro {

// The folder that XDG_CACHE_HOME names, or .cache in that of HOME; empty when neither names one.
std::filesystem::path user_cache_folder();

}  // namespace ostro
