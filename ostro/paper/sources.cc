#include "ostro/paper/sources.h"

#include <fmt/format.h>

#include <filesystem>

#include "ostro/io/files/below.h"
#include "ostro/io/files/path.h"

namespace ostro::paper {
namespace {

constexpr size_t kLongestName = 300;

// A path of a document as one from the folder; empty: it leads out of it, or is none.
std::string path_in_folder(const std::string& document, const std::string& text) {
  if (text.empty() || text.size() > kLongestName || text.find_first_of("\n\\:@") != std::string::npos)
    return "";
  const std::string joined =
      text.front() == '/' ? text.substr(1) : io::join_path(io::parent_path(document), text);
  const std::string path = std::filesystem::path(joined).lexically_normal().generic_string();
  return io::stays_below(path) ? path : "";
}

}  // namespace

std::vector<std::string> quoted_texts(const std::string& document) {
  std::vector<std::string> out;
  for (size_t begin = document.find('"'); begin != std::string::npos;) {
    size_t end = begin + 1;
    while (end < document.size() && document[end] != '"') end += document[end] == '\\' ? 2 : 1;
    if (end >= document.size()) break;
    out.push_back(document.substr(begin + 1, end - begin - 1));
    // A quotation mark of the text may stand alone, so each ends a text and may begin one.
    begin = end;
  }
  return out;
}

Result<std::vector<lab::ReportFile>> gather_sources(io::FileSystem& fs, const std::string& folder,
                                                    const std::string& main,
                                                    const std::set<std::string>& generated) {
  if (generated.contains(main))
    return invalid_argument(fmt::format("{}: a report writes a file of this name; give the paper another one",
                                        io::join_path(folder, main)));
  ASSIGN_OR_RETURN(std::string text, fs.read_file(io::join_path(folder, main)));
  std::vector<lab::ReportFile> out = {{main, std::move(text)}};
  std::set<std::string> seen = generated;
  seen.insert(main);
  for (size_t i = 0; i < out.size(); ++i) {
    if (!io::has_extension(out[i].name, ".typ")) continue;
    for (const std::string& quoted : quoted_texts(out[i].bytes)) {
      const std::string name = path_in_folder(out[i].name, quoted);
      if (name.empty() || !seen.insert(name).second) continue;
      const std::string path = io::join_path(folder, name);
      const auto info = fs.stat(path);
      if (!info.ok() || info->is_directory) continue;
      ASSIGN_OR_RETURN(std::string bytes, fs.read_file(path));
      out.push_back({name, std::move(bytes)});
    }
  }
  return out;
}

}  // namespace ostro::paper
