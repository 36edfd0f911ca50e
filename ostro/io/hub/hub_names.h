// find_on_hub: names of Hugging Face's hub ("org/model") as folders of this machine.
//
// A name is looked for in the hub's local cache, where huggingface_hub, transformers and `hf download` put
// files. What is not there is fetched by `hf download`, where that program is installed and the environment
// does not say HF_HUB_OFFLINE. Thread-safe.
#pragma once

#include <string>

#include "ostro/base/error.h"

namespace ostro::io {

// Whether a path that does not exist may be a name of the hub: "gpt2", "org/model" or "org/model@revision".
bool is_hub_name(const std::string& path);

// HF_HUB_CACHE, or hub/ in HF_HOME, or ~/.cache/huggingface/hub.
std::string hub_cache_folder();

enum class HubFiles { kTokenizer, kModel };

// The snapshot of the name's newest revision, refs/main, or of the one behind "@", if it holds the files that
// are wanted. Errors: kNotFound, with the folder that was looked into and the command that fetches them.
Result<std::string> find_on_hub(const std::string& name, HubFiles wanted);

// A path that a user gave for a tokenizer or a model: itself if something is there or it has a scheme, else
// the folder of the name. Errors: as find_on_hub(); for a path that is no name kNotFound, which says that
// paths are relative to the working directory. `key` begins each error.
Result<std::string> local_or_hub(const std::string& path, HubFiles wanted, const std::string& key);

}  // namespace ostro::io
