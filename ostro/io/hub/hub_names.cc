#include "ostro/io/hub/hub_names.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "ostro/base/log.h"
#include "ostro/base/object_cache.h"
#include "ostro/base/run_program.h"
#include "ostro/base/user_cache.h"
#include "ostro/io/files/path.h"

namespace ostro::io {
namespace {

namespace stdfs = std::filesystem;

bool is_there(const stdfs::path& path) {
  std::error_code ignored;
  return stdfs::exists(path, ignored);
}

struct HubName {
  std::string repository, revision;
};

HubName parts_of(const std::string& name) {
  const size_t at = name.find('@');
  return {name.substr(0, at), at == std::string::npos ? "main" : name.substr(at + 1)};
}

bool holds(const stdfs::path& folder, HubFiles wanted) {
  if (wanted == HubFiles::kTokenizer)
    return is_there(folder / "tokenizer.json") || is_there(folder / "tokenizer.model");
  const bool weights = is_there(folder / "model.safetensors") ||
                       is_there(folder / "model.safetensors.index.json") ||
                       is_there(folder / "adapter_model.safetensors");
  return weights && (is_there(folder / "config.json") || is_there(folder / "adapter_config.json"));
}

// models--org--name/snapshots/<commit>, by refs/<revision> or by the commit itself.
std::optional<std::string> cached(const HubName& name, HubFiles wanted) {
  std::string folder = "models--" + name.repository;
  if (const size_t slash = folder.find('/'); slash != std::string::npos) folder.replace(slash, 1, "--");
  const stdfs::path place = stdfs::path(hub_cache_folder()) / folder;
  std::string commit = name.revision;
  if (std::ifstream ref(place / "refs" / name.revision); ref) ref >> commit;
  const stdfs::path snapshot = place / "snapshots" / commit;
  return !commit.empty() && holds(snapshot, wanted) ? std::optional(snapshot.string()) : std::nullopt;
}

std::vector<std::string> download_command(const HubName& name, HubFiles wanted) {
  std::vector<std::string> words = {"hf", "download", name.repository};
  if (name.revision != "main") words.insert(words.end(), {"--revision", name.revision});
  words.emplace_back("--include");
  for (const char* pattern : {"tokenizer*", "*.model", "*.json", "*.jinja"}) words.emplace_back(pattern);
  if (wanted == HubFiles::kModel) words.emplace_back("*.safetensors");
  return words;
}

bool is_offline() {
  const std::string value = environment_variable("HF_HUB_OFFLINE");
  return !value.empty() && value != "0" && value != "false";
}

}  // namespace

bool is_hub_name(const std::string& path) {
  const HubName name = parts_of(path);
  if (name.repository.empty() || name.revision.empty() || name.revision.find("..") != std::string::npos)
    return false;
  if (std::count(name.repository.begin(), name.repository.end(), '/') > 1) return false;
  for (const char* end : {".json", ".model", ".yaml", ".txt", ".safetensors", ".gguf"})
    if (name.repository.ends_with(end)) return false;
  for (size_t begin = 0; begin <= name.repository.size();) {
    const size_t end = std::min(name.repository.find('/', begin), name.repository.size());
    const std::string part = name.repository.substr(begin, end - begin);
    const bool letters = std::all_of(part.begin(), part.end(), [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
    });
    if (part.empty() || part[0] == '.' || !letters) return false;
    begin = end + 1;
  }
  return true;
}

std::string hub_cache_folder() {
  if (const std::string cache = environment_variable("HF_HUB_CACHE"); !cache.empty()) return cache;
  if (const std::string home = environment_variable("HF_HOME"); !home.empty()) return join_path(home, "hub");
  return join_path(user_cache_folder().string(), "huggingface/hub");
}

Result<std::string> find_on_hub(const std::string& given, HubFiles wanted) {
  const HubName name = parts_of(given);
  if (const auto folder = cached(name, wanted)) return *folder;
  std::string why = "HF_HUB_OFFLINE is set";
  static std::mutex mutex;
  static std::map<std::string, std::string> failed;  // names that could not be fetched, and why
  const std::lock_guard lock(mutex);
  if (const auto before = failed.find(given); before != failed.end()) {
    why = before->second;
  } else if (!is_offline()) {
    log_info(fmt::format("{}: fetching it from the hub with hf download", given));
    const auto fetched = run_program(download_command(name, wanted));
    if (const auto folder = cached(name, wanted)) return *folder;
    why = failed[given] = fetched.ok() ? "hf download brought other files" : fetched.error().message();
  }
  return not_found(fmt::format(
      "{} is no path, and the hub's cache {} does not hold {} of this name ({}); fetch it with: hf download "
      "{}{}",
      given, hub_cache_folder(), wanted == HubFiles::kTokenizer ? "a tokenizer" : "a model in safetensors",
      why, name.repository, name.revision == "main" ? "" : " --revision " + name.revision));
}

Result<std::string> local_or_hub(const std::string& path, HubFiles wanted, const std::string& key) {
  if (path.empty() || !path_scheme(path).empty() || is_there(path)) return path;
  if (is_hub_name(path)) {
    auto found = find_on_hub(path, wanted);
    if (!found.ok()) return found.error().with_context(key);
    return found;
  }
  std::error_code ignored;
  return not_found(
      fmt::format("{}: {} does not exist; paths are relative to the folder that you are in ({}), not to the "
                  "configuration",
                  key, path, stdfs::current_path(ignored).string()));
}

}  // namespace ostro::io
