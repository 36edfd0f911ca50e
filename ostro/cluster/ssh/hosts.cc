#include "ostro/cluster/ssh/hosts.h"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <sstream>

#include "ostro/base/text_parts.h"
#include "ostro/dist/reach.h"

namespace ostro::cluster {
namespace {

constexpr int64_t kMostSlots = 1024;
constexpr size_t kMostBytesOfSlice = 256;

// The number of slots; 0 if it is none from 1 to kMostSlots.
int64_t slots_of(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value <= kMostSlots && value > 0 ? value
                                                                                                      : 0;
}

// The host of one line; `where` begins the errors.
Result<SshHost> parse_line(const std::string& line, const std::string& where) {
  std::istringstream words(line);
  SshHost host;
  words >> host.name;
  // ssh would take it for an option.
  if (host.name.starts_with("-")) return invalid_argument(fmt::format("{}: {} is no host", where, host.name));
  int64_t slots = 0;
  for (std::string word; words >> word;) {
    if (word.starts_with("slots=")) {
      slots = slots_of(std::string_view(word).substr(6));
      if (slots == 0)
        return invalid_argument(fmt::format("{}: {} is not a number from 1 to {}", where, word, kMostSlots));
    } else if (word.starts_with("devices=")) {
      host.devices = comma_parts(std::string_view(word).substr(8));
      for (const std::string& device : host.devices)
        if (device.empty()) return invalid_argument(fmt::format("{}: {} has an empty name", where, word));
    } else if (word.starts_with("slice=")) {
      host.slice = word.substr(6);
      if (host.slice.empty() || host.slice.size() > kMostBytesOfSlice)
        return invalid_argument(
            fmt::format("{}: {} is no name of 1 to {} bytes", where, word, kMostBytesOfSlice));
    } else if (word.starts_with("advertise=")) {
      host.advertise = word.substr(10);
      const auto advertised = dist::parse_advertised(host.advertise);
      if (!advertised.ok()) return advertised.error().with_context(where + ": advertise");
    } else {
      return invalid_argument(fmt::format(
          "{}: {} is neither slots=N nor devices=LIST, slice=NAME or advertise=HOST; a line is HOST "
          "[slots=N] [devices=LIST] [slice=NAME] [advertise=HOST[:PORTS]]",
          where, word));
    }
  }
  if (slots > 0 && !host.devices.empty() && slots != static_cast<int64_t>(host.devices.size()))
    return invalid_argument(fmt::format("{}: slots={}, but {} devices; name one for each worker", where,
                                        slots, host.devices.size()));
  if (host.devices.empty()) host.devices.resize(static_cast<size_t>(slots > 0 ? slots : 1));
  return host;
}

}  // namespace

Result<std::vector<SshHost>> parse_hosts(std::string_view text, const std::string& file) {
  std::vector<SshHost> hosts;
  std::map<std::string, int> lines;  // by host
  std::istringstream in{std::string(text)};
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    line = line.substr(0, line.find('#'));
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    if (line.back() == '\r') line.pop_back();
    ASSIGN_OR_RETURN(SshHost host, parse_line(line, fmt::format("{}:{}", file, number)));
    const auto [there, is_new] = lines.emplace(host.name, number);
    if (!is_new)
      return invalid_argument(
          fmt::format("{}:{}: {} stands in line {} already; give it slots=N for N workers", file, number,
                      host.name, there->second));
    hosts.push_back(std::move(host));
  }
  if (hosts.empty()) return invalid_argument(fmt::format("{}: has no host; write one in each line", file));
  return hosts;
}

}  // namespace ostro::cluster
