#include "ostro/cli/launch/brought_run.h"

#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "ostro/base/run_program.h"
#include "ostro/base/sha256.h"
#include "ostro/base/units.h"
#include "ostro/cli/launch/worker_words.h"
#include "ostro/io/files/file_hash.h"
#include "ostro/io/files/path.h"
#include "ostro/shell/shared/progress.h"
#include "ostro/train/step/batches.h"

namespace ostro::cli {
namespace {

constexpr int64_t kMostBringMebibytes = 1024 * 1024;
constexpr const char *kProgram = "bin/ostro", *kLibraries = "lib", *kWork = cluster::kWorkOfCopy;
// What a tokenizer reads beside its own file.
constexpr const char* kBesideTokenizer[] = {"tokenizer.json",
                                            "tokenizer.model",
                                            "tokenizer_config.json",
                                            "special_tokens_map.json",
                                            "added_tokens.json",
                                            "generation_config.json",
                                            "config.json",
                                            "chat_template.jinja",
                                            "chat_template.json",
                                            "tokenizer_training.json",
                                            "vocab.json",
                                            "merges.txt"};
constexpr const char* kFoldersOfStore[] = {"train", "validation", "packs"};

class Packer {
 public:
  Packer(const Context& context, const BringOptions& options)
      : context_(context), options_(options), here_(io::absolute_path(".")) {}

  // Packs the data of the configuration, and has its paths as they are in the copy.
  Status data(train::TrainConfig& config) {
    if (auto& from = config.trainer.initialize_from; from && is_local(*from)) {
      if (below_here(*from))
        return invalid_argument(fmt::format(
            "trainer.initialize_from: {} is below the current folder, and --bring carries no models: "
            "put it in a folder that all machines share, or in an object store",
            *from));
      *from = io::absolute_path(*from);
      copy_.elsewhere.push_back(*from);
    }
    if (auto& notice = config.trainer.notice_file) *notice = io::absolute_path(*notice);
    if (auto& scratch = config.trainer.scratch_dir) *scratch = io::absolute_path(*scratch);
    if (is_local(config.trainer.log_dir)) config.trainer.log_dir = io::absolute_path(config.trainer.log_dir);
    BuildProgressLine line;
    ASSIGN_OR_RETURN(const data::BuildSettings settings, build_settings(line));
    const auto opened = train::open_data(context_.fs, config, settings);
    line.end();
    if (!opened.ok()) return opened.error();
    for (const batches::DataSet::Part& part : opened->stores->parts()) RETURN_IF_ERROR(store(part));
    RETURN_IF_ERROR(tokenizer(config.data.tokenizer_path()));
    if (config.data.tokenizer) *config.data.tokenizer = in_copy(*config.data.tokenizer);
    config.data.cache_dir = in_copy(config.data.cache_dir);
    for (auto& [name, component] : config.data.components)
      if (component.cache_dir) *component.cache_dir = in_copy(*component.cache_dir);
    return {};
  }

  // This program, and the libraries beside it that it was loaded with.
  Status program() {
    ASSIGN_OR_RETURN(const std::string path, own_path());
    RETURN_IF_ERROR(add(path, kProgram));
    copy_.program = kProgram;
    std::error_code error;
    const auto folder =
        std::filesystem::canonical(std::filesystem::path(path).parent_path() / ".." / kLibraries, error);
    if (error) return {};  // it has none
    std::vector<std::string> loaded;
    ::dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void* out) {
          static_cast<std::vector<std::string>*>(out)->emplace_back(info->dlpi_name);
          return 0;
        },
        &loaded);
    for (const std::string& library : loaded) {
      if (library.find('/') == std::string::npos) continue;
      const auto parent = std::filesystem::canonical(std::filesystem::path(library).parent_path(), error);
      if (error || parent != folder) continue;
      RETURN_IF_ERROR(add(library, io::join_path(kLibraries, io::base_name(library))));
    }
    return {};
  }

  void text(const std::string& name, std::string text) {
    cluster::BroughtFile& file = files_[name];
    file.name = name;
    file.size = static_cast<int64_t>(text.size());
    file.sha256 = sha256_hex(text);
    file.text = std::move(text);
  }

  // Reads the files for their sums.
  Result<cluster::BroughtCopy> done() {
    int64_t bytes = 0, read = 0;
    for (const auto& [name, file] : files_) bytes += file.size;
    for (auto& [name, file] : files_) {
      context_.progress.show("reading what is brought",
                             static_cast<double>(read) / static_cast<double>(bytes));
      if (!file.from.empty()) {
        ASSIGN_OR_RETURN(file.sha256, io::file_sha256(context_.fs, file.from));
      }
      read += file.size;
      copy_.files.push_back(std::move(file));
    }
    context_.progress.end();
    copy_.folder = options_.to.value_or(kCopies);
    RETURN_IF_ERROR(cluster::check_copy(copy_));
    return std::move(copy_);
  }

 private:
  static bool is_local(const std::string& path) { return io::path_scheme(path).empty(); }

  // The path relative to the current folder, where it is below it.
  std::optional<std::string> below_here(const std::string& path) const {
    const std::string whole = io::absolute_path(path);
    const std::string front = here_ == "/" ? here_ : here_ + "/";
    return whole.starts_with(front) ? std::optional(whole.substr(front.size())) : std::nullopt;
  }
  std::string in_copy(const std::string& path) const {
    return is_local(path) ? below_here(path).value_or(io::absolute_path(path)) : path;
  }

  // Returns its bytes.
  Result<int64_t> add(const std::string& from, const std::string& name) {
    ASSIGN_OR_RETURN(const io::FileInfo info, context_.fs.stat(from));
    files_[name] = {.name = name, .from = from, .text = {}, .size = info.size, .sha256 = {}};
    return info.size;
  }
  // A file below the current folder, which has the same relative path in the copy.
  Result<int64_t> add_here(const std::string& path) {
    return add(path, io::join_path(kWork, below_here(path).value()));
  }

  Status store(const batches::DataSet::Part& part) {
    const std::string& folder = part.folder;
    const std::string cache = part.component.cache_dir;
    if (!is_local(folder)) return {};
    const std::string key = part.component.key + ".cache_dir";
    for (const std::string& place : {folder, cache})
      if (is_local(place) && !below_here(place)) copy_.elsewhere.push_back(io::absolute_path(place));
    if (!below_here(folder)) return {};
    const data::StoreLedger& ledger = part.store->ledger();
    if (!ledger.parts.empty() || !ledger.levanter_cache.empty())
      return invalid_argument(fmt::format(
          "{}: {} is {}, and --bring carries stores of Ostro with all their rows only: put it where "
          "all machines see it, outside of the current folder, or copy its rows into one store "
          "(ostro data consolidate)",
          key, cache, ledger.parts.empty() ? "a Levanter cache" : "joined of other stores"));
    int64_t bytes = 0;
    RETURN_IF_ERROR(files_of_store(folder, bytes));
    const int64_t most = options_.most_mebibytes.value_or(kMostOfStore);
    if (bytes > most << 20)
      return invalid_argument(
          fmt::format("{}: the token store {} has {:.1f} MiB, and at most {} MiB are brought: raise "
                      "--bring_mib, or put it "
                      "where all machines see it, outside of the current folder",
                      key, folder, mib(bytes), most));
    return {};
  }

  // The files of a store; other things may lie in its folder.
  Status files_of_store(const std::string& folder, int64_t& bytes) {
    ASSIGN_OR_RETURN(const std::vector<io::DirEntry> entries, context_.fs.list(folder));
    for (const io::DirEntry& entry : entries) {
      const std::string path = io::join_path(folder, entry.name);
      if (entry.is_directory) {
        if (std::ranges::find(kFoldersOfStore, entry.name) == std::end(kFoldersOfStore)) continue;
        RETURN_IF_ERROR(all_files(path, bytes));
      } else if (io::has_extension(entry.name, ".json") || entry.name.starts_with("chunks.") ||
                 entry.name.starts_with("rows.")) {
        RETURN_IF_ERROR(one_file(path, bytes));
      }
    }
    return {};
  }
  Status all_files(const std::string& folder, int64_t& bytes) {
    ASSIGN_OR_RETURN(const std::vector<io::DirEntry> entries, context_.fs.list(folder));
    for (const io::DirEntry& entry : entries) {
      const std::string path = io::join_path(folder, entry.name);
      RETURN_IF_ERROR(entry.is_directory ? all_files(path, bytes) : one_file(path, bytes));
    }
    return {};
  }
  Status one_file(const std::string& path, int64_t& bytes) {
    ASSIGN_OR_RETURN(const int64_t size, add_here(path));
    bytes += size;
    return {};
  }

  // A file with what it reads beside it, or a folder.
  Status tokenizer(const std::string& path) {
    if (!is_local(path)) return {};
    if (!below_here(path)) {
      copy_.elsewhere.push_back(io::absolute_path(path));
      return {};
    }
    ASSIGN_OR_RETURN(const io::FileInfo info, context_.fs.stat(path));
    const std::string folder = info.is_directory ? path : io::parent_path(path);
    if (!info.is_directory) RETURN_IF_ERROR(add_here(path));
    for (const char* name : kBesideTokenizer) {
      const std::string beside = io::join_path(folder, name);
      ASSIGN_OR_RETURN(const bool exists, context_.fs.exists(beside));
      if (exists) RETURN_IF_ERROR(add_here(beside));
    }
    return {};
  }

  const Context& context_;
  const BringOptions& options_;
  const std::string here_;
  std::map<std::string, cluster::BroughtFile> files_;  // by name in the copy
  cluster::BroughtCopy copy_;
};

}  // namespace

void take_bring_mib(Args& args, BringOptions& options) {
  args.option("--bring_mib", &options.most_mebibytes, "N",
              fmt::format("the most MiB of a token store that is copied; {} by default", kMostOfStore));
}

Status check_bring(const BringOptions& options) {
  if (!options.on && (options.to || options.most_mebibytes))
    return invalid_argument(fmt::format("{} belongs to --bring: give that too, or leave it out",
                                        options.to ? "--bring_to" : "--bring_mib"));
  if (options.to && options.to->empty()) return invalid_argument("--bring_to: names no folder");
  if (const int64_t most = options.most_mebibytes.value_or(kMostOfStore);
      most < 1 || most > kMostBringMebibytes)
    return invalid_argument(
        fmt::format("--bring_mib: {} is not a number from 1 to {}", most, kMostBringMebibytes));
  return {};
}

std::vector<std::string> brought_words(bool amend) {
  std::vector<std::string> words = {"--config", io::join_path("..", kLaunchFile)};
  if (amend) words.emplace_back("--amend");
  return words;
}

Result<BroughtRun> brought_run(const Context& context, const train::TrainConfig& config,
                               const BringOptions& options) {
  Packer packer(context, options);
  train::TrainConfig there = config;
  RETURN_IF_ERROR(packer.data(there));
  RETURN_IF_ERROR(packer.program());
  packer.text(kLaunchFile, kept_config_text(std::move(there)));
  BroughtRun out;
  ASSIGN_OR_RETURN(out.copy, packer.done());
  out.folder = io::join_path(out.copy.place(), kWork);
  out.program = io::join_path("..", kProgram);
  return out;
}

}  // namespace ostro::cli
