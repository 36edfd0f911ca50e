#include "ostro/config/unknown_key.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ostro/base/log.h"
#include "ostro/config/foreign_keys.h"
#include "ostro/config/options.h"

namespace ostro::config {
namespace {

std::string last_name(const std::string& path) { return path.substr(path.rfind('.') + 1); }

std::string parent(const std::string& path) {
  const size_t dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

// Whether a misspelling of `name` may have given `written`: a third of the letters differ at most.
bool is_near(const std::string& written, const std::string& name) {
  return edit_distance(written, name) <= std::max<size_t>(2, std::min(written.size(), name.size()) / 3);
}

// Paths of other sections that end with this name; those at the top of the configuration first. `own`: the
// key itself, which another type of its section may have.
std::vector<std::string> elsewhere(const std::string& name, const std::string& own,
                                   const std::vector<std::string>& all) {
  std::vector<std::string> found;
  for (const std::string& path : all)
    if (path != own && last_name(path) == name && std::find(found.begin(), found.end(), path) == found.end())
      found.push_back(path);
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return std::count(a.begin(), a.end(), '.') < std::count(b.begin(), b.end(), '.');
  });
  if (found.size() > 3) found.resize(3);
  return found;
}

// "; ..." behind the key.
std::string hint(const std::string& key, const std::string& path, const std::vector<std::string>& names,
                 const std::vector<std::string>& all) {
  const std::string nearest = nearest_name(key, names);
  if (key != "type" && key != "id" && key != "every")
    if (const auto found = elsewhere(key, path, all); !found.empty())
      return fmt::format("; the option of this name is {}", fmt::join(found, " or "));
  if (!nearest.empty() && is_near(key, nearest))
    return fmt::format("; the nearest known key is \"{}\"", join_path(parent(path), nearest));
  std::vector<std::string> others;
  for (const std::string& p : all) others.push_back(last_name(p));
  if (const std::string far = nearest_name(key, others); !far.empty() && edit_distance(key, far) <= 2)
    if (const auto found = elsewhere(far, path, all); !found.empty())
      return fmt::format("; the nearest known key is \"{}\"", fmt::join(found, "\" or \""));
  if (names.empty()) return ", no keys are known here";
  constexpr size_t kMost = 12;
  const size_t shown = std::min(names.size(), kMost);
  return fmt::format(
      "; known here: {}{}", fmt::join(names.begin(), names.begin() + static_cast<long>(shown), ", "),
      shown < names.size() ? fmt::format(" and {} more (ostro train --help-all)", names.size() - shown) : "");
}

}  // namespace

Status unknown_key(const Node& item, const std::string& path, const std::vector<std::string>& names,
                   const std::vector<std::string>& all) {
  const std::string place = item.where.empty() ? "" : item.where + ": ";
  // The table is about runs, not about files of tasks.
  const bool is_of_run =
      std::any_of(all.begin(), all.end(), [](const auto& p) { return p.starts_with("trainer."); });
  if (const ForeignKey* row = is_of_run ? find_foreign(path, item) : nullptr) {
    const std::string text = place + foreign_text(*row, path);
    if (row->kind == ForeignKey::Kind::kNone) return unsupported(text);
    if (row->kind == ForeignKey::Kind::kRenamed) return invalid_argument(text);
    log_info(text);
    return {};
  }
  return invalid_argument(
      fmt::format("{}unknown key \"{}\"{}", place, path, hint(item.key, path, names, all)));
}

}  // namespace ostro::config
