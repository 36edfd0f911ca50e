#include "ostro/cluster/ray/ray_python.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

namespace ostro::cluster {
namespace {

// The probe's exit status where a package is missing.
constexpr int kNoRay = 40, kNoOstroRay = 41, kNoProgram = 127;
constexpr const char* kProbe =
    "import sys, importlib.util as u; "
    "sys.exit(40 if u.find_spec('ray') is None else 41 if u.find_spec('ostro_ray') is None else 0)";

}  // namespace

Result<std::string> ray_python(const std::string& what) {
  const char* given = std::getenv("OSTRO_PYTHON");
  const std::string python = given != nullptr && *given != '\0' ? given : "python3";
  const pid_t pid = ::fork();
  if (pid < 0) return io_error(fmt::format("cannot start {}: {}", python, std::strerror(errno)));
  if (pid == 0) {
    ::execlp(python.c_str(), python.c_str(), "-c", kProbe, nullptr);
    ::_exit(kNoProgram);
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  if (code == 0) return python;
  if (code == kNoProgram)
    return not_found(
        fmt::format("cannot start {}; `{}` needs Python 3 in PATH, or OSTRO_PYTHON names one", python, what));
  const std::string other = "or OSTRO_PYTHON names a Python that has it";
  if (code == kNoRay)
    return not_found(fmt::format("{} has no package ray; install it with `{} -m pip install ray`, {}", python,
                                 python, other));
  if (code == kNoOstroRay)
    return not_found(
        fmt::format("{} has no package ostro_ray; install it with `{} -m pip install ./python` from the "
                    "sources of ostro, {}",
                    python, python, other));
  return io_error(fmt::format("{} does not work (status {}); OSTRO_PYTHON names another one", python, code));
}

Status check_ray_resources(const std::string& option, const std::string& text, const std::string& example) {
  if (text.empty()) return {};
  const auto parsed = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  bool good = parsed.is_object();
  for (const auto& amount : parsed) good = good && amount.is_number() && amount.get<double>() >= 0;
  if (good) return {};
  return invalid_argument(
      fmt::format("{}: '{}' is no JSON object of names and amounts, as '{}'", option, text, example));
}

}  // namespace ostro::cluster
