#include "ostro/tokenizer/files/files.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <span>

#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"
#include "ostro/tokenizer/files/companions.h"

namespace ostro::tokenizer {
namespace {

constexpr int64_t kMaxFile = int64_t{1} << 30;  // a tokenizer.json of 256k tokens is about 30 MB

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
  const bool is_model = file.ends_with(".model");
  ASSIGN_OR_RETURN(const Companions beside, read_companions(files, io::parent_path(file)));
  ASSIGN_OR_RETURN(Tokenizer tokenizer, is_model ? Tokenizer::from_sentencepiece(
                                                       std::move(text), file, beside.add_bos, beside.add_eos)
                                                 : Tokenizer::from_json(text, file));
  const Status status = apply(beside, is_model, tokenizer);
  if (!status.ok()) return status.error().with_context(beside.place);
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
