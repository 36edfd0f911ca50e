#include "ostro/chain/config_file.h"

#include <fmt/format.h>

#include <variant>

#include "ostro/base/sha256.h"
#include "ostro/chain/chain.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"

namespace ostro::chain {
namespace {

std::string first_line(const AmendEntry& amend) {
  return fmt::format("# the configuration after the amend of step {} with the difference of SHA-256 {}\n",
                     amend.step, sha256_hex(amend.difference));
}

const AmendEntry* last_amend(const Chain& chain) {
  for (size_t i = chain.links.size(); i > 0; --i)
    if (const auto* amend = std::get_if<AmendEntry>(&chain.links[i - 1].entry)) return amend;
  return nullptr;
}

// Whether the file of an amend is there and of the chain's last one.
bool is_in_force(io::FileSystem& fs, const std::string& directory, const std::string& amended) {
  const auto there = fs.exists(amended);
  if (!there.ok() || !*there) return false;
  const auto text = fs.read_file(amended);
  const auto chain = read_chain(fs, io::join_path(directory, kChainFile));
  if (!text.ok() || !chain.ok()) return false;
  const AmendEntry* amend = last_amend(*chain);
  return amend != nullptr && text->starts_with(first_line(*amend));
}

}  // namespace

std::string config_file(io::FileSystem& fs, const std::string& directory) {
  const std::string amended = io::join_path(directory, kAmendedConfigFile);
  return is_in_force(fs, directory, amended) ? amended : io::join_path(directory, kConfigFile);
}

std::string config_in_force(io::FileSystem& fs, const std::string& path) {
  if (io::base_name(path) != kConfigFile) return path;
  const std::string directory = io::parent_path(path), amended = io::join_path(directory, kAmendedConfigFile);
  return is_in_force(fs, directory, amended) ? amended : path;
}

Status settle_config(io::FileSystem& fs, const std::string& directory) {
  const std::string amended = io::join_path(directory, kAmendedConfigFile);
  if (!is_in_force(fs, directory, amended)) return {};
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(amended));
  return io::write_file_atomically(fs, io::join_path(directory, kConfigFile),
                                   text.substr(text.find('\n') + 1));
}

std::string amended_config_text(const AmendEntry& amend, std::string_view yaml) {
  return fmt::format("{}{}", first_line(amend), yaml);
}

}  // namespace ostro::chain
