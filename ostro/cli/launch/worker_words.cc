#include "ostro/cli/launch/worker_words.h"

#include <fmt/format.h>

#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"
#include "ostro/objects/s3/routing_file_system.h"
#include "ostro/train/options/config.h"

namespace ostro::cli {

std::vector<std::string> worker_words(const std::vector<std::string>& typed, const std::set<std::string>& own,
                                      const std::set<std::string>& flags) {
  std::vector<std::string> words;
  for (size_t i = 1; i < typed.size(); ++i) {
    const size_t equals = typed[i].find('=');
    const std::string name = typed[i].substr(0, equals);
    if (flags.contains(name)) continue;
    if (own.contains(name)) {
      if (equals == std::string::npos) ++i;
      continue;
    }
    words.push_back(typed[i]);
    // An override or --config takes the next word, whatever it looks like.
    const bool takes_next =
        name == "--config" || (name.starts_with("--") && name.find('.') != std::string::npos);
    if (takes_next && equals == std::string::npos && i + 1 < typed.size()) words.push_back(typed[++i]);
  }
  return words;
}

namespace {

// Where the name of the file is, in which word; nothing: there is none.
std::optional<std::pair<size_t, size_t>> place_of_config(const std::vector<std::string>& words) {
  constexpr std::string_view kOption = "--config";
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == kOption && i + 1 < words.size()) return std::pair(i + 1, size_t{0});
    if (words[i].starts_with("--config=")) return std::pair(i, kOption.size() + 1);
    // The value of an override may look like an option.
    if (words[i].starts_with("--") && words[i].find('.') != std::string::npos &&
        words[i].find('=') == std::string::npos)
      ++i;
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> with_config(std::vector<std::string> words, const std::string& file) {
  if (const auto at = place_of_config(words)) words[at->first].replace(at->second, std::string::npos, file);
  return words;
}

std::string kept_config_text(train::TrainConfig config) {
  if (config.numerics.leaf_is_default) config.numerics.leaf_examples.reset();  // an amend keeps the run's own
  return config::resolved_yaml(config);
}

std::vector<std::string> naming_kept_config(const train::TrainConfig& config,
                                            const std::vector<std::string>& words) {
  return with_config(words, io::join_path(train::run_directory(config), kLaunchFile));
}

Result<std::vector<std::string>> with_kept_config(const train::TrainConfig& config,
                                                  const std::vector<std::string>& words) {
  if (!place_of_config(words)) return words;
  io::FileSystem& fs = objects::default_file_system();
  const std::string directory = train::run_directory(config);
  RETURN_IF_ERROR(fs.make_dirs(directory));
  const std::string kept = io::join_path(directory, kLaunchFile);
  RETURN_IF_ERROR(io::write_file_atomically(fs, kept, kept_config_text(config)));
  return naming_kept_config(config, words);
}

std::vector<std::string> shared_folders(const train::TrainConfig& config) {
  std::set<std::string> out = {config.trainer.log_dir};
  for (const data::Component& component : data::components_of(config.data)) out.insert(component.cache_dir);
  std::vector<std::string> folders;
  for (const std::string& folder : out)
    if (!folder.empty() && io::path_scheme(folder).empty()) folders.push_back(io::absolute_path(folder));
  return folders;
}

Status check_worker_count(int64_t workers, const std::string& of, const train::TrainConfig& config) {
  if (workers > kMostWorkers)
    return invalid_argument(fmt::format("{}: {} workers; {} at most in one run", of, workers, kMostWorkers));
  if (const Status mesh = train::check_workers(config, workers); !mesh.ok())
    return mesh.error().with_context(fmt::format("the {} workers of {}", workers, of));
  return {};
}

Status check_workers(int64_t min_workers, int64_t max_workers, const train::TrainConfig& config) {
  if (min_workers < 1 || min_workers > max_workers || max_workers > kMostWorkers)
    return invalid_argument(
        fmt::format("--min_workers {} --max_workers {}: 1 <= min_workers <= max_workers <= {} must hold",
                    min_workers, max_workers, kMostWorkers));
  if (const Status mesh = train::check_workers(config, max_workers); !mesh.ok())
    return mesh.error().with_context(fmt::format("--max_workers {}", max_workers));
  return Status();
}

}  // namespace ostro::cli
