// find_on_hub: names of Hugging Face's hub ("org/model") as folders of this machine.
//
// A name is looked for in the hub's local cache, where huggingface_hub, transformers and `hf download` put
// files. Missing files are fetched by `hf download`, if that program is installed and HF_HUB_OFFLINE is not
// set. Thread-safe.
#pragma once

#include <string>

#include "ostro/base/error.h"

namespace ostro::io {

// Returns true when a path that does not exist may be a name of the hub: "gpt2", "org/model" or
// "org/model@revision".
bool is_hub_name(const std::string& path);

// The folder of the hub's cache: HF_HUB_CACHE, or hub/ in HF_HOME, or ~/.cache/huggingface/hub.
std::string hub_cache_folder();

enum class HubFiles { kTokenizer, kModel };

// Returns the snapshot of the name's newest revision, refs/main, or of the one behind "@", if it has the
// files in `wanted`. Error: kNotFound, with the folder that was searched and the command that fetches them.
Result<std::string> find_on_hub(const std::string& name, HubFiles wanted);

// Resolves a path that a user gave for a tokenizer or a model: returns the path itself if something is there
// or it has a scheme, else the folder of the name. `key` begins each error. Errors: as find_on_hub();
// kNotFound for a path that is no name, which says that paths are relative to the working directory.
Result<std::string> local_or_hub(const std::string& path, HubFiles wanted, const std::string& key);

}  // namespace ostro::io
