#include "ostro/site/site_folder.h"

#include <algorithm>
#include <iterator>
#include <sstream>
#include <string_view>

#include "ostro/io/files/path.h"
#include "ostro/lab/report/report.h"

namespace ostro::site {
namespace {

constexpr const char* kListFile = "site_files.txt";  // the files of the site, a line each
constexpr const char* kDataFolder = "data";

// A list that was edited must not lead out of the folder.
bool is_below(const std::string& name) {
  return !name.empty() && name[0] != '/' && ("/" + name + "/").find("/../") == std::string::npos;
}

// "run-12.html" for "run-" and ".html".
bool is_numbered(std::string_view name, std::string_view begin, std::string_view end) {
  if (!name.starts_with(begin) || !name.ends_with(end) || name.size() <= begin.size() + end.size())
    return false;
  name = name.substr(begin.size(), name.size() - begin.size() - end.size());
  return std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Whether the file can have texts of documents, or samples of a model, which a plan can take back.
bool can_have_texts(const std::string& name) {
  return name.ends_with(std::string(kTexts) + ".js") || is_numbered(name, "run-", ".html");
}

// Whether a site of a version without the list has written the file, one of those whose names have a number.
bool is_of_a_site(const std::string& folder, const std::string& name) {
  if (folder.empty()) return is_numbered(name, "run-", ".html") || is_numbered(name, "batches-", ".html");
  return is_numbered(name, "run-", ".js") || is_numbered(name, "batches-", ".js") ||
         is_numbered(name, "batches-", std::string(kTexts) + ".js");
}

}  // namespace

Status SiteFolder::find_known() {
  const auto list = fs_.read_file(io::join_path(path_, kListFile));
  if (!list.ok() && list.error().code() != ErrorCode::kNotFound) return list.error();
  std::istringstream lines(list.ok() ? *list : "");
  for (std::string name; std::getline(lines, name) && !lines.eof();)  // without an end it is not whole
    if (is_below(name)) known_.insert(name);
  if (list.ok()) return {};
  for (const std::string folder : {"", kDataFolder}) {
    const auto entries = fs_.list(io::join_path(path_, folder));
    if (!entries.ok() && entries.error().code() != ErrorCode::kNotFound) return entries.error();
    if (entries.ok())
      for (const io::DirEntry& entry : *entries)
        if (!entry.is_directory && is_of_a_site(folder, entry.name))
          known_.insert(folder.empty() ? entry.name : io::join_path(folder, entry.name));
  }
  return {};
}

Status SiteFolder::begin() {
  RETURN_IF_ERROR(find_known());
  for (auto name = known_.begin(); name != known_.end();) {
    const bool goes = can_have_texts(*name);
    if (goes) RETURN_IF_ERROR(remove(*name));
    name = goes ? known_.erase(name) : std::next(name);
  }
  RETURN_IF_ERROR(write_list(known_));
  ASSIGN_OR_RETURN(list_, fs_.open_append(io::join_path(path_, kListFile)));
  return {};
}

Status SiteFolder::put(const std::string& name, std::string bytes) {
  written_.insert(name);
  if (known_.insert(name).second) RETURN_IF_ERROR(list_->append(name + "\n"));
  return lab::write_files(fs_, path_, {{name, std::move(bytes)}});
}

Status SiteFolder::end() {
  list_.reset();
  for (const std::string& name : known_)
    if (!written_.contains(name)) RETURN_IF_ERROR(remove(name));
  return write_list(written_);
}

Status SiteFolder::remove(const std::string& name) {
  const Status removed = fs_.remove(io::join_path(path_, name));
  return removed.ok() || removed.error().code() == ErrorCode::kNotFound ? Status() : removed;
}

Status SiteFolder::write_list(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += name + "\n";
  return lab::write_files(fs_, path_, {{kListFile, std::move(text)}});
}

}  // namespace ostro::site
