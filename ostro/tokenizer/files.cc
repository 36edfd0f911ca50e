#include "ostro/tokenizer/files.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>

#include "ostro/io/atomic_file.h"
#include "ostro/io/path.h"

namespace ostro::tokenizer {
namespace {

constexpr int64_t kMaxFile = int64_t{1} << 30;  // a tokenizer.json of 256k tokens is about 30 MB

// "eos_token": "x" or {"content": "x"}; empty when the file does not say.
Result<std::string> token_name(const nlohmann::json& config, const char* key) {
  const auto it = config.find(key);
  if (it == config.end() || it->is_null()) return std::string();
  if (it->is_string()) return it->get<std::string>();
  if (it->is_object() && it->contains("content") && (*it)["content"].is_string()) {
    return (*it)["content"].get<std::string>();
  }
  return corrupt(fmt::format("\"{}\" is neither a token nor an object with \"content\"", key));
}

Status read_config(std::string_view text, Tokenizer& tokenizer) {
  const auto config = nlohmann::json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!config.is_object()) return corrupt("not a JSON object");
  ASSIGN_OR_RETURN(const std::string eos, token_name(config, "eos_token"));
  if (!eos.empty()) RETURN_IF_ERROR(tokenizer.set_eos_token(eos));
  ASSIGN_OR_RETURN(const std::string bos, token_name(config, "bos_token"));
  if (!bos.empty()) RETURN_IF_ERROR(tokenizer.set_bos_token(bos));
  return {};
}

}  // namespace

Result<Tokenizer> load_tokenizer(io::FileSystem& files, const std::string& path) {
  ASSIGN_OR_RETURN(const io::FileInfo info, files.stat(path));
  const std::string directory = info.is_directory ? path : io::parent_path(path);
  const std::string file = info.is_directory ? io::join_path(path, "tokenizer.json") : path;
  ASSIGN_OR_RETURN(const std::string text, files.read_file(file, kMaxFile));
  ASSIGN_OR_RETURN(Tokenizer tokenizer, Tokenizer::from_json(text, file));

  const std::string config = io::join_path(directory, "tokenizer_config.json");
  ASSIGN_OR_RETURN(const bool has_config, files.exists(config));
  if (has_config) {
    ASSIGN_OR_RETURN(const std::string config_text, files.read_file(config, kMaxFile));
    const Status status = read_config(config_text, tokenizer);
    if (!status.ok()) return status.error().with_context(config);
  }
  return tokenizer;
}

Status save_tokenizer(io::FileSystem& files, const Tokenizer& tokenizer, const std::string& path) {
  return io::write_file_atomically(files, path, tokenizer.to_json());
}

namespace {

// Reads files one after another, a long one in parts.
class FileReader {
 public:
  FileReader(io::FileSystem& files, std::vector<std::string> paths, size_t part_bytes)
      : files_(files), paths_(std::move(paths)), part_bytes_(part_bytes) {}

  Result<bool> next(std::string& document) {
    document.clear();
    while (!file_) {
      if (next_ == paths_.size()) return false;
      ASSIGN_OR_RETURN(file_, files_.open(paths_[next_++]));
      offset_ = 0;
      if (file_->size() == 0) file_.reset();
    }
    document.swap(rest_);
    for (size_t want = part_bytes_;; want *= 2) {
      const size_t had = document.size();
      const int64_t left = file_->size() - offset_;
      const auto take = std::min(static_cast<size_t>(left), want > had ? want - had : 0);
      document.resize(had + take);
      RETURN_IF_ERROR(file_->read(offset_, std::as_writable_bytes(std::span(document).subspan(had))));
      offset_ += static_cast<int64_t>(take);
      if (offset_ == file_->size()) {
        file_.reset();
        return true;
      }
      if (const size_t cut = last_cut(document); cut != 0) {
        rest_ = document.substr(cut);
        document.resize(cut);
        return true;
      }
    }
  }

 private:
  io::FileSystem& files_;
  std::vector<std::string> paths_;
  size_t part_bytes_;
  size_t next_ = 0;
  std::unique_ptr<io::RandomAccessFile> file_;
  int64_t offset_ = 0;
  std::string rest_;  // of the open file, read but not given out
};

}  // namespace

DocumentSource documents_of_files(io::FileSystem& files, std::vector<std::string> paths, size_t part_bytes) {
  return [reader = std::make_shared<FileReader>(files, std::move(paths), part_bytes)](std::string& document) {
    return reader->next(document);
  };
}

}  // namespace ostro::tokenizer
