#include "ostro/init/folder_globs.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <span>

#include "ostro/config/utf8.h"
#include "ostro/data/sources/row_reader.h"
#include "ostro/io/files/path.h"

namespace ostro::init {
namespace {

constexpr int64_t kLook = 64 << 10;  // bytes at the beginning of a file that are looked at
constexpr size_t kLooks = 200;       // files of a kind that are looked at
constexpr size_t kShown = 3;         // files left out that are named
constexpr size_t kMostListed = 100;  // files that are listed by name where no glob fits
constexpr const char* kUsualFields[] = {"text", "content", "body", "document", "raw_content", "markdown"};

// The reach of one glob: the files of a folder, or also those of all folders below it.
struct Place {
  std::string folder;
  bool is_deep = true;
};

// Files of one kind in one place, which one glob names.
struct Kind {
  Place place;
  std::string extension;  // empty: no glob names them
  std::vector<std::string> texts;
  size_t others = 0;
};

// The names of folders and files are literal in it, also where they hold a wildcard.
std::string glob_of(const Place& place, const std::string& extension) {
  return io::join_path(io::glob_literal(place.folder),
                       (place.is_deep ? "**/*" : "*") + io::glob_literal(extension));
}

std::string extension_of(const std::string& path) {
  const std::string name = io::base_name(path);
  const size_t dot = name.rfind('.');
  if (dot == std::string::npos || dot == 0) return "";
  for (const char* packing : {".gz", ".zst"})
    if (name.ends_with(packing)) {
      const size_t before = name.rfind('.', dot - 1);
      if (before != std::string::npos && before != 0) return name.substr(before);
    }
  return name.substr(dot);
}

// True if `path` is `place` or lies in it.
bool is_in(const std::string& path, const std::string& place) {
  const std::string a = io::absolute_path(path), b = io::absolute_path(place);
  return a == b || a.starts_with(b.ends_with('/') ? b : b + "/");
}

// The reason why a file cannot be read as a text; empty if it can.
std::string problem(io::FileSystem& fs, const std::string& path, bool look) {
  if (!config::is_utf8(path)) return kNotUtf8;
  const auto found = data::find_sources(fs, {{io::glob_literal(path)}, {}});
  if (!found.ok()) {
    const std::string& message = found.error().message();
    const size_t at = message.find(path + ": ");
    return at == std::string::npos ? message : message.substr(at + path.size() + 2);
  }
  if (found->files.empty()) return "it is gone, or its name cannot be matched";
  const data::SourceFile& file = found->files.front();
  if (file.size == 0) return "it is empty";
  if (file.format != data::FileFormat::kText) {
    if (!look) return "";
    const auto field = text_field(fs, file);
    return field.ok() ? "" : field.error().message();
  }
  if (!look) return "";
  const auto opened = fs.open(path);
  if (!opened.ok()) return opened.error().message();
  std::string head(static_cast<size_t>(std::min(kLook, (*opened)->size())), '\0');
  if (const Status read = (*opened)->read(0, std::as_writable_bytes(std::span(head))); !read.ok())
    return read.error().message();
  if (const size_t nul = head.find('\0'); nul != std::string::npos)
    return data::not_a_text(static_cast<int64_t>(nul));
  return "";
}

}  // namespace

// Groups the files by folder and extension. A group whose files are all texts gets one glob, unless that glob
// would also match an output. Of any other group the texts are listed by name, or left out when they are too
// many.
Result<FolderTexts> folder_texts(io::FileSystem& fs, const std::string& folder,
                                 const std::vector<std::string>& outputs) {
  const std::string root = io::clean_path(folder);
  const auto holds_outputs = [&](const std::string& place) {
    return std::any_of(outputs.begin(), outputs.end(), [&](const std::string& o) { return is_in(o, place); });
  };
  const auto is_output = [&](const std::string& path) {
    return std::any_of(outputs.begin(), outputs.end(), [&](const std::string& o) { return is_in(path, o); });
  };
  ASSIGN_OR_RETURN(const auto found,
                   fs.find_files(io::join_path(io::glob_literal(root), "**"),
                                 [&](const std::string& path) { return !is_output(path); }));
  FolderTexts out;
  std::map<std::string, Kind> kinds;
  std::map<std::string, size_t> looks;
  const std::string top = root == "." ? "" : root;
  const size_t below = top.empty() || top.ends_with('/') ? top.size() : top.size() + 1;
  std::map<std::string, bool> known;  // which folders hold what a run writes
  for (const io::FoundFile& file : found) {
    const std::string path = io::clean_path(file.path), extension = extension_of(path);
    // One glob for all below the folder. But a folder that holds the run's own files, however deep, gets one
    // for itself and one for each of its folders.
    Place place{top, true};
    for (size_t from = below; place.is_deep;) {
      const auto [entry, is_new] = known.emplace(place.folder, false);
      if (is_new) entry->second = holds_outputs(place.folder);
      if (!entry->second) break;
      const size_t slash = path.find('/', from);
      place = slash == std::string::npos ? Place{place.folder, false} : Place{path.substr(0, slash), true};
      from = slash + 1;
    }
    Kind& kind = kinds[glob_of(place, extension)];
    kind.place = place;
    kind.extension = extension;
    if (const std::string why = problem(fs, path, ++looks[extension] <= kLooks); !why.empty()) {
      ++kind.others;
      if (out.left_out_count++ < static_cast<int64_t>(kShown)) out.left_out.push_back(path + ": " + why);
      continue;
    }
    kind.texts.push_back(path);
  }
  for (const auto& [name, kind] : kinds) {
    if (kind.texts.empty()) continue;
    const std::string whole =
        glob_of({io::absolute_path(kind.place.folder), kind.place.is_deep}, kind.extension);
    const bool names_an_output = std::any_of(outputs.begin(), outputs.end(), [&](const std::string& o) {
      return io::glob_match(whole, io::absolute_path(o));
    });
    if (!kind.extension.empty() && kind.others == 0 && !names_an_output) {
      out.globs.push_back(name);
    } else if (kind.texts.size() <= kMostListed) {
      for (const std::string& text : kind.texts) out.globs.push_back(io::glob_literal(text));
    } else {
      out.left_out_count += static_cast<int64_t>(kind.texts.size());
      out.left_out.push_back(fmt::format("{} files {}: no glob names them without others", kind.texts.size(),
                                         kind.extension.empty() ? "without an extension" : name));
      continue;
    }
    out.files.insert(out.files.end(), kind.texts.begin(), kind.texts.end());
  }
  return out;
}

Result<std::string> text_field(io::FileSystem& fs, const data::SourceFile& file) {
  if (file.format == data::FileFormat::kParquet) {
    Error first = invalid_argument("");
    for (const char* name : kUsualFields) {
      const auto rows = data::open_rows(fs, file.path, file.format, {.fields = {{name}}});
      if (rows.ok()) return std::string(name);
      if (name == kUsualFields[0]) first = rows.error();
    }
    return first;
  }
  ASSIGN_OR_RETURN(const auto rows, data::open_rows(fs, file.path, file.format, {.fields = {{"text"}}}));
  data::Row row;
  do {
    ASSIGN_OR_RETURN(const bool more, rows->next(row));
    if (!more) return invalid_argument("it holds no row");
  } while (row.is_blank());
  const auto json = nlohmann::json::parse(row.bytes, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    return invalid_argument(
        fmt::format("line {} is not a JSON object; .json and .jsonl files have one per line", row.number));
  std::string longest;
  size_t bytes = 0;
  for (const char* name : kUsualFields)
    if (json.contains(name) && json[name].is_string()) return std::string(name);
  for (const auto& [name, value] : json.items())
    if (value.is_string() && value.get_ref<const std::string&>().size() > bytes) {
      longest = name;
      bytes = value.get_ref<const std::string&>().size();
    }
  if (longest.empty())
    return invalid_argument(
        fmt::format("line {} has no string; for conversations and ids see docs/guide/data.md and "
                    "docs/guide/chat.md",
                    row.number));
  return longest;
}

}  // namespace ostro::init
