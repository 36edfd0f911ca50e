#include "ostro/data/sources/source_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <unordered_map>

#include "ostro/io/files/path.h"

namespace ostro::data {
namespace {

// File names that are known not to be plain text. Any other file is read as text, and refused if it holds a
// NUL byte (row_reader.h).
constexpr const char* kCompressedFiles[] = {".gz",  ".zst", ".zstd", ".xz",   ".bz2",
                                            ".zip", ".lz4", ".lzma", ".br",   ".7z",
                                            ".rar", ".tar", ".tgz",  ".tbz2", ".snappy"};
constexpr const char* kDataFiles[] = {".arrow",   ".feather", ".orc",         ".avro", ".h5",   ".hdf5",
                                      ".npy",     ".npz",     ".bin",         ".idx",  ".mds",  ".tfrecord",
                                      ".pkl",     ".pickle",  ".pt",          ".pth",  ".ckpt", ".sqlite",
                                      ".msgpack", ".gguf",    ".safetensors", ".pdf",  ".docx", ".epub"};

Result<FileFormat> format_of(const std::string& path, const std::string& key) {
  const auto is = [&path](const char* extension) { return io::has_extension(path, extension); };
  for (const char* lines : {".jsonl", ".ndjson", ".json"})
    for (const char* packing : {"", ".gz", ".zst"})
      if (io::has_extension(path, std::string(lines) + packing)) return FileFormat::kJsonl;
  if (is(".parquet")) return FileFormat::kParquet;
  for (const char* extension : kCompressedFiles)
    if (is(extension))
      return unsupported(
          fmt::format("{}: compressed files are read as .jsonl.gz and .jsonl.zst (or .ndjson, .json) only; "
                      "unpack it, or list files by a narrower glob in {}",
                      path, key));
  for (const char* extension : kDataFiles)
    if (is(extension))
      return unsupported(
          fmt::format("{}: a {} is not a text; write its texts to a .jsonl or .parquet, or list files by a "
                      "narrower glob in {}",
                      path, extension, key));
  return FileFormat::kText;
}

Result<std::vector<io::FoundFile>> files_of(io::FileSystem& fs, const std::string& url,
                                            const std::function<bool(const std::string&)>& wanted) {
  const auto below = [&] { return fs.find_files(io::join_path(url, "**"), wanted); };
  const bool is_glob = io::has_wildcard(url);
  if (!is_glob) {
    auto info = fs.stat(url);
    if (info.ok() && info->is_directory) return below();
  }
  ASSIGN_OR_RETURN(std::vector<io::FoundFile> files, fs.find_files(url, wanted));
  if (!is_glob || !files.empty()) return files;
  auto info = fs.stat(url);  // a folder whose name looks like a glob: "v[1]"
  return info.ok() && info->is_directory ? below() : Result<std::vector<io::FoundFile>>(std::move(files));
}

// The prefix of the absolute paths of all files in a folder.
std::string prefix_of(const std::string& folder) {
  std::string prefix = io::absolute_path(folder);
  if (!prefix.ends_with('/')) prefix += '/';
  return prefix;
}

// The folder that contains everything an entry can match. The entry itself if it has no wildcard.
std::string root_of(const std::string& url) {
  if (!io::has_wildcard(url)) return url;
  const size_t end = url.rfind('/', url.find_first_of("*?["));
  return end == std::string::npos ? "." : url.substr(0, end + 1);
}

// Decides which files are left out for one entry of the list.
class LeftOut {
 public:
  LeftOut(const SourcePlaces& places, const std::string& url) : root_(prefix_of(root_of(url))) {
    for (const std::string& folder : places.stores)
      if (!folder.empty()) folders_.push_back(prefix_of(folder));
    if (places.stores_folder.empty()) return;
    const std::string all = prefix_of(places.stores_folder);
    if (root_ == all || !root_.starts_with(all)) folders_.push_back(all);
  }

  // True if the file is left out. Remembers the folder of stores if the entry itself lies in it.
  bool operator()(const std::string& path) {
    const std::string whole = io::absolute_path(path);
    for (const std::string& folder : folders_) {
      if (!whole.starts_with(folder)) continue;
      if (root_.starts_with(folder)) inside_ = folder;
      return true;
    }
    return false;
  }
  const std::string& inside() const { return inside_; }

 private:
  std::string root_, inside_;
  std::vector<std::string> folders_;
};

}  // namespace

const char* split_name(Split split) { return split == Split::kTrain ? "train" : "validation"; }

const char* file_format_name(FileFormat format) {
  return format == FileFormat::kText ? "text" : format == FileFormat::kJsonl ? "jsonl" : "parquet";
}

std::optional<FileFormat> parse_file_format(std::string_view name) {
  for (const FileFormat format : {FileFormat::kText, FileFormat::kJsonl, FileFormat::kParquet})
    if (name == file_format_name(format)) return format;
  return std::nullopt;
}

Result<std::vector<SourceFile>> FoundSources::all() const {
  if (missing.empty()) return files;
  const char* hint =
      missing.find('[') == std::string::npos ? "" : "; a [ that is a part of a name is written [[] in a glob";
  if (files.empty())
    return not_found(fmt::format("{}: names no file; check the path and quote the glob{}", missing, hint));
  return not_found(fmt::format(
      "{}: names no file, while other patterns name {}; check the path and quote the glob, bring its texts "
      "back, or take it out of the list{}",
      missing, files.size(), hint));
}

SourcePlaces source_places(const DataOptions& options, const Component& component) {
  SourcePlaces places{component.train_urls, component.validation_urls, {}, options.cache_dir};
  for (const Component& c : components_of(options)) places.stores.push_back(c.cache_dir);
  return places;
}

// For each entry of the lists: its files without those that LeftOut names. A file that an earlier entry of
// the same list gave is skipped; one that is in both lists is an error.
Result<FoundSources> find_sources(io::FileSystem& fs, const SourcePlaces& places, const SourceKeys& keys) {
  FoundSources sources;
  std::unordered_map<std::string, Split> seen;
  for (const Split list : kSplits) {
    const bool train = list == Split::kTrain;
    const std::string& key = train ? keys.train : keys.validation;
    for (const std::string& url : train ? places.train : places.validation) {
      LeftOut left_out(places, url);
      auto files = files_of(fs, url, [&left_out](const std::string& path) { return !left_out(path); });
      if (!files.ok()) {
        const bool named = files.error().message().starts_with(url);
        const Error error = files.error().with_context(named ? key : fmt::format("{}: {}", key, url));
        if (error.code() != ErrorCode::kNotFound) return error;
        // kIo, since the file is listed; kNotFound would mean that an entry matches nothing.
        return Error(ErrorCode::kIo, error.message() +
                                         "; it is listed: a link to nothing, or removed "
                                         "meanwhile. Bring it back, or take the link away");
      }
      if (files->empty() && !left_out.inside().empty())
        return invalid_argument(fmt::format(
            "{}: {}: all files that it names are in {}, a folder of token stores, whose files are not "
            "texts; give the stores another data.cache_dir",
            key, url, left_out.inside()));
      for (const io::FoundFile& file : *files) {
        const std::string path = io::clean_path(file.path);
        const auto [found, is_new] = seen.emplace(path, list);
        if (!is_new && found->second != list)
          return invalid_argument(
              fmt::format("{}: {} is in {}, too: the model would be scored on what it was trained on; take "
                          "it out of one list",
                          key, path, keys.train));
        if (!is_new) continue;
        ASSIGN_OR_RETURN(const FileFormat format, format_of(path, key));
        sources.files.push_back({path, format, list, file.info.size, file.info.mtime_ns});
      }
      if (files->empty() && sources.missing.empty()) sources.missing = fmt::format("{}: {}", key, url);
    }
  }
  return sources;
}

}  // namespace ostro::data
