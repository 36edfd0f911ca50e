#include "ostro/base/failpoint.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "ostro/base/check.h"

namespace ostro {
namespace {

struct Armed {
  std::string name;  // empty: none
  std::atomic<int64_t> remaining{0};

  Armed() {
    const char* text = std::getenv("OSTRO_FAILPOINT");
    if (text == nullptr || *text == '\0') return;
    const std::string_view spec(text);
    const size_t colon = spec.find(':');
    name = spec.substr(0, colon);
    int64_t count = 1;
    if (colon != std::string_view::npos) {
      const char* end = text + spec.size();
      const auto parsed = std::from_chars(text + colon + 1, end, count);
      OSTRO_CHECK(parsed.ec == std::errc() && parsed.ptr == end && count > 0,
                  "OSTRO_FAILPOINT=\"{}\" is not NAME or NAME:COUNT with COUNT >= 1", spec);
    }
    remaining = count;
  }
};

}  // namespace

void failpoint(const char* name) {
  static Armed armed;
  if (armed.name.empty()) [[likely]]
    return;
  if (armed.name != name) return;
  if (armed.remaining.fetch_sub(1) == 1) {
    ::kill(::getpid(), SIGKILL);
    ::pause();  // the signal may arrive a moment later; nothing may run after a failpoint
  }
}

}  // namespace ostro
