#include "ostro/lab/places/performed.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

namespace ostro::lab {

std::string performed_text(const Performed& performed) {
  nlohmann::json out;
  if (!performed.ok()) {
    out = {{"code", static_cast<int>(performed.error().code())}, {"error", performed.error().message()}};
  } else if (*performed) {
    out = {{"content", **performed}};
  } else {
    out = {{"stopped", true}};
  }
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::optional<Performed> parse_performed(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  const auto text_at = [&](const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_string() ? std::optional(found->get<std::string>())
                                                     : std::nullopt;
  };
  if (auto content = text_at("content")) return Performed(std::move(content));
  if (json.contains("stopped")) return Performed(std::optional<std::string>());
  const auto code = json.find("code");
  if (const auto error = text_at("error"); error && code != json.end() && code->is_number_integer())
    return Performed(Error(static_cast<ErrorCode>(code->get<int>()), *error));
  return std::nullopt;
}

Status print_to(const std::string& log, LogBegin begin) {
  const int how = begin == LogBegin::kNew ? O_TRUNC : O_APPEND;
  const int file = ::open(log.c_str(), O_WRONLY | O_CREAT | how | O_CLOEXEC, 0644);
  const bool done = file >= 0 && ::dup2(file, STDOUT_FILENO) >= 0 && ::dup2(file, STDERR_FILENO) >= 0;
  const int error = errno;
  if (file >= 0) ::close(file);
  return done ? Status() : Status(io_error(fmt::format("{}: {}", log, std::strerror(error))));
}

}  // namespace ostro::lab
