#include "ostro/base/error.h"

#include <cstdio>
#include <cstdlib>

namespace ostro {

void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  std::fprintf(stderr, "%s:%d: broken invariant (%s): %s\n", file, line, condition, message.c_str());
  std::abort();
}

const char* error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument: return "invalid argument";
    case ErrorCode::kNotFound: return "not found";
    case ErrorCode::kCorrupt: return "corrupt";
    case ErrorCode::kIo: return "input/output error";
    case ErrorCode::kBusy: return "busy";
    case ErrorCode::kUnsupported: return "unsupported";
    case ErrorCode::kInternal: return "internal error";
    case ErrorCode::kDevice: return "device error";
  }
  return "unknown";
}

Error Error::with_context(std::string_view context) const {
  return Error(code_, fmt::format("{}: {}", context, message_));
}

Error invalid_argument(std::string message) { return Error(ErrorCode::kInvalidArgument, std::move(message)); }
Error not_found(std::string message) { return Error(ErrorCode::kNotFound, std::move(message)); }
Error corrupt(std::string message) { return Error(ErrorCode::kCorrupt, std::move(message)); }
Error io_error(std::string message) { return Error(ErrorCode::kIo, std::move(message)); }
Error busy(std::string message) { return Error(ErrorCode::kBusy, std::move(message)); }
Error unsupported(std::string message) { return Error(ErrorCode::kUnsupported, std::move(message)); }
Error device_error(std::string message) { return Error(ErrorCode::kDevice, std::move(message)); }

void check_ok(const Status& status) {
  OSTRO_CHECK(status.ok(), "{}: {}", error_code_name(status.error().code()), status.error().message());
}

}  // namespace ostro
