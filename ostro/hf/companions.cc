// The companions of imported weights: hashes of their files, and copies of the files beside them.
#include <fmt/format.h>

#include "ostro/base/parallel.h"
#include "ostro/hf/import.h"
#include "ostro/hf/model_files.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/file_hash.h"
#include "ostro/io/files/path.h"
#include "ostro/tokenizer/files/files.h"

namespace ostro::hf {
namespace {

constexpr const char* kCompanions[] = {"tokenizer.json",
                                       "tokenizer.model",
                                       "tokenizer_config.json",
                                       kPlainTokenizerFile,
                                       "special_tokens_map.json",
                                       "added_tokens.json",
                                       "vocab.json",
                                       "merges.txt",
                                       "generation_config.json",
                                       "chat_template.jinja",
                                       "LICENSE",
                                       "LICENSE.txt",
                                       "README.md"};
constexpr const char* kTemplates = "additional_chat_templates";

Status copy_file(io::FileSystem& fs, const std::string& from, const std::string& to) {
  ASSIGN_OR_RETURN(const std::string content, fs.read_file(from));
  return io::write_file_atomically(fs, to, content);
}

}  // namespace

Result<std::map<std::string, std::string>> source_hashes(io::FileSystem& fs, const std::string& directory,
                                                         int threads) {
  ASSIGN_OR_RETURN(const auto entries, fs.list(directory));
  std::vector<std::string> names;
  for (const io::DirEntry& entry : entries)
    if (!entry.is_directory && (entry.name == "config.json" || io::glob_match("*.safetensors", entry.name) ||
                                entry.name == "model.safetensors.index.json"))
      names.push_back(entry.name);
  std::vector<std::string> hashes(names.size());
  RETURN_IF_ERROR(parallel_for(static_cast<int64_t>(names.size()), threads, [&](int64_t i) -> Status {
    const auto k = static_cast<size_t>(i);
    ASSIGN_OR_RETURN(hashes[k], io::file_sha256(fs, io::join_path(directory, names[k])));
    return {};
  }));
  std::map<std::string, std::string> files;
  for (size_t i = 0; i < names.size(); ++i) files[names[i]] = hashes[i];
  return files;
}

Status copy_companions(io::FileSystem& fs, const std::string& from, const std::string& to,
                       const std::string& but) {
  for (const char* name : kCompanions) {
    if (name == but) continue;
    const std::string path = io::join_path(from, name);
    ASSIGN_OR_RETURN(const bool exists, fs.exists(path));
    if (exists) RETURN_IF_ERROR(copy_file(fs, path, io::join_path(to, name)));
  }
  const std::string templates = io::join_path(from, kTemplates), copies = io::join_path(to, kTemplates);
  ASSIGN_OR_RETURN(const bool has_templates, fs.exists(templates));
  if (!has_templates) return {};
  RETURN_IF_ERROR(fs.make_dirs(copies));
  ASSIGN_OR_RETURN(const auto entries, fs.list(templates));
  for (const io::DirEntry& entry : entries)
    if (!entry.is_directory)
      RETURN_IF_ERROR(copy_file(fs, io::join_path(templates, entry.name), io::join_path(copies, entry.name)));
  return {};
}

Status copy_companions(io::FileSystem& fs, const Source& source, const std::string& to) {
  RETURN_IF_ERROR(copy_companions(fs, source.directory, to));
  const std::string tokenizer = io::join_path(to, "tokenizer.json");
  ASSIGN_OR_RETURN(const bool has_tokenizer, fs.exists(tokenizer));
  if (!has_tokenizer) RETURN_IF_ERROR(tokenizer::save_tokenizer(fs, *source.tokenizer, tokenizer));
  const std::string ends = io::join_path(to, "generation_config.json");
  ASSIGN_OR_RETURN(const bool has_ends, fs.exists(ends));
  if (!has_ends && !source.tokenizer->more_stops().empty())
    RETURN_IF_ERROR(io::write_file_atomically(fs, ends, source.tokenizer->generation_config_json()));
  const std::string words = io::join_path(to, "tokenizer_config.json");
  ASSIGN_OR_RETURN(const bool has_words, fs.exists(words));
  if (has_words) return {};
  ASSIGN_OR_RETURN(const HfFamily* family, hf_family(source.model.options.family->name));
  return write_tokenizer_config(fs, to, *family, *source.tokenizer, source.model.options.seq_len);
}

}  // namespace ostro::hf
