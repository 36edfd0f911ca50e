#include "ostro/objects/web/profile_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "ostro/objects/web/http_text.h"

namespace ostro::objects {
namespace {

// The profile that this line begins; nothing for another line, "" for a section that is no profile.
std::optional<std::string_view> profile_in(std::string_view line, ProfileFile kind) {
  if (!line.starts_with('[') || !line.ends_with(']')) return std::nullopt;
  std::string_view name = trimmed(line.substr(1, line.size() - 2));
  if (kind == ProfileFile::kCredentials || name == "default") return name;
  constexpr std::string_view kWord = "profile";
  if (!name.starts_with(kWord)) return "";
  name = trimmed(name.substr(kWord.size()));
  if (name.size() > 1 && name.starts_with('"') && name.ends_with('"')) name = name.substr(1, name.size() - 2);
  return name;
}

// Calls f(line, whether it is indented) for all lines, which have no blanks at their ends.
template <typename F>
void for_lines(std::string_view text, const F& f) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    f(trimmed(text.substr(begin, end - begin)), text[begin] == ' ' || text[begin] == '\t');
    begin = end + 1;
  }
}

}  // namespace

ProfileValues profile_section(std::string_view text, ProfileFile kind, const std::string& profile) {
  ProfileValues values;
  bool inside = false, nests = false;  // nests: the last setting has no value, so indented ones belong to it
  for_lines(text, [&](std::string_view line, bool indented) {
    if (line.empty() || line[0] == '#' || line[0] == ';') return;
    if (const auto name = profile_in(line, kind)) {
      inside = *name == profile, nests = false;
      return;
    }
    const size_t equal = line.find('=');
    if (!inside || equal == std::string_view::npos || (nests && indented)) return;
    const std::string_view value = trimmed(line.substr(equal + 1));
    nests = value.empty();
    values[std::string(trimmed(line.substr(0, equal)))] = value;
  });
  return values;
}

std::string profiles_text(std::string_view text, ProfileFile kind) {
  std::string out;
  for_lines(text, [&](std::string_view line, bool) {
    if (const auto name = profile_in(line, kind); name && !name->empty())
      out += fmt::format("{}{}", out.empty() ? "" : ", ", *name);
  });
  return out.empty() ? "it has no profiles" : "it has the profiles " + out;
}

Result<S3Keys> profile_keys(const ProfileValues& values, const std::string& path,
                            const std::string& profile) {
  const auto value = [&](std::string_view name) {
    const auto found = values.find(name);
    return found == values.end() ? "" : found->second;
  };
  S3Keys keys{value("aws_access_key_id"), value("aws_secret_access_key"), value("aws_session_token")};
  if (keys.access_key.empty() != keys.secret_key.empty())
    return corrupt(fmt::format("{}: the profile {} has {}, and no {}", path, profile,
                               keys.access_key.empty() ? "aws_secret_access_key" : "aws_access_key_id",
                               keys.access_key.empty() ? "aws_access_key_id" : "aws_secret_access_key"));
  if (keys.access_key.empty()) return S3Keys();
  return keys;
}

Result<S3Keys> parse_credentials_file(std::string_view text, const std::string& path,
                                      const std::string& profile) {
  return profile_keys(profile_section(text, ProfileFile::kCredentials, profile), path, profile);
}

}  // namespace ostro::objects
