#include "ostro/tokenizer/files/files.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>

#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"

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

Result<nlohmann::json> parse_config(std::string_view text) {
  auto config = nlohmann::json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!config.is_object()) return corrupt("not a JSON object");
  return config;
}

Status read_config(const nlohmann::json& config, Tokenizer& tokenizer) {
  ASSIGN_OR_RETURN(const std::string eos, token_name(config, "eos_token"));
  if (!eos.empty()) RETURN_IF_ERROR(tokenizer.set_eos_token(eos));
  ASSIGN_OR_RETURN(const std::string bos, token_name(config, "bos_token"));
  if (!bos.empty()) RETURN_IF_ERROR(tokenizer.set_bos_token(bos));
  return {};
}

// The tokenizer file: `path` itself, or in a directory the first of the usual names that exists.
Result<std::string> find_file(io::FileSystem& files, const std::string& path) {
  ASSIGN_OR_RETURN(const io::FileInfo info, files.stat(path));
  if (!info.is_directory) return path;
  const std::string model = io::join_path(path, "tokenizer.model"),
                    json = io::join_path(path, "tokenizer.json");
  ASSIGN_OR_RETURN(const bool has_json, files.exists(json));
  if (has_json) return json;
  ASSIGN_OR_RETURN(const bool has_model, files.exists(model));
  return has_model ? model : json;
}

}  // namespace

Result<Tokenizer> load_tokenizer(io::FileSystem& files, const std::string& path) {
  ASSIGN_OR_RETURN(const std::string file, find_file(files, path));
  ASSIGN_OR_RETURN(std::string text, files.read_file(file, kMaxFile));
  const std::string config_file = io::join_path(io::parent_path(file), "tokenizer_config.json");
  ASSIGN_OR_RETURN(const bool has_config, files.exists(config_file));
  nlohmann::json config = nlohmann::json::object();
  if (has_config) {
    ASSIGN_OR_RETURN(const std::string config_text, files.read_file(config_file, kMaxFile));
    auto parsed = parse_config(config_text);
    if (!parsed.ok()) return parsed.error().with_context(config_file);
    config = std::move(parsed).value();
  }
  const auto adds = [&config](const char* key) { return config.contains(key) && config[key] == true; };
  ASSIGN_OR_RETURN(
      Tokenizer tokenizer,
      file.ends_with(".model")
          ? Tokenizer::from_sentencepiece(std::move(text), file, adds("add_bos_token"), adds("add_eos_token"))
          : Tokenizer::from_json(text, file));
  const Status status = read_config(config, tokenizer);
  if (!status.ok()) return status.error().with_context(config_file);
  return tokenizer;
}

Status save_tokenizer(io::FileSystem& files, const Tokenizer& tokenizer, const std::string& path) {
  return io::write_file_atomically(files, path, tokenizer.to_json());
}

namespace {

// Reads files one after another. A long file is read in parts.
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
  std::string rest_;  // bytes of the open file that were read but not returned yet
};

}  // namespace

DocumentSource documents_of_files(io::FileSystem& files, std::vector<std::string> paths, size_t part_bytes) {
  return [reader = std::make_shared<FileReader>(files, std::move(paths), part_bytes)](std::string& document) {
    return reader->next(document);
  };
}

}  // namespace ostro::tokenizer
