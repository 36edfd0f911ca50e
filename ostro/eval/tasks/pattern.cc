#include "ostro/eval/tasks/pattern.h"

#include <fmt/format.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace ostro::eval {
namespace {

constexpr uint32_t kMostSteps = 10'000'000;    // of one search; about a second
constexpr uint32_t kMostMemory = 256u << 10u;  // KiB

bool is_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

// The pattern in PCRE2's words. Nothing but escapes and {,n} differs.
std::string translated(std::string_view python) {
  std::string out;
  for (size_t i = 0; i < python.size(); ++i) {
    const std::string_view rest = python.substr(i);
    if (rest.starts_with("{,") && rest.size() > 2 && rest[2] >= '0' && rest[2] <= '9') {
      out += "{0,";
      ++i;
    } else if (rest[0] != '\\' || rest.size() < 2) {
      out += rest[0];
    } else {
      const size_t digits = rest[1] == 'u' ? 4 : rest[1] == 'U' ? 8 : 0;
      if (digits > 0 && rest.size() >= 2 + digits && is_hex(rest.substr(2, digits))) {
        out += fmt::format("\\x{{{}}}", rest.substr(2, digits));
        i += 1 + digits;
      } else {
        out += '\\';
        out += rest[1] == 'Z' ? 'z' : rest[1];
        ++i;
      }
    }
  }
  return out;
}

std::string message_of(int error) {
  PCRE2_UCHAR buffer[256];
  if (pcre2_get_error_message(error, buffer, sizeof buffer) < 0) return fmt::format("error {}", error);
  return reinterpret_cast<const char*>(buffer);
}

template <typename T, void (*Free)(T*)>
struct Freed {
  void operator()(T* object) const { Free(object); }
};
using Data = std::unique_ptr<pcre2_match_data, Freed<pcre2_match_data, pcre2_match_data_free>>;
using Limits = std::unique_ptr<pcre2_match_context, Freed<pcre2_match_context, pcre2_match_context_free>>;

}  // namespace

struct Pattern::Code {
  pcre2_code* code = nullptr;
  explicit Code(pcre2_code* c) : code(c) {}
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  ~Code() { pcre2_code_free(code); }
};

Result<Pattern> Pattern::compile(const std::string& pattern) {
  const std::string words = translated(pattern);
  int error = 0;
  PCRE2_SIZE offset = 0;
  const std::unique_ptr<pcre2_compile_context, Freed<pcre2_compile_context, pcre2_compile_context_free>>
      context(pcre2_compile_context_create(nullptr));
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  pcre2_code* code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(words.data()), words.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &offset, context.get());
  if (code == nullptr) return invalid_argument(fmt::format("{} (at byte {})", message_of(error), offset));
  return Pattern(std::make_shared<Code>(code), pattern);
}

// After an empty match the next one may begin at the same place, but may not be empty, as in Python.
Result<std::vector<Pattern::Match>> Pattern::find_all(std::string_view text) const {
  std::vector<Match> out;
  const Data data(pcre2_match_data_create_from_pattern(code_->code, nullptr));
  const Limits limits(pcre2_match_context_create(nullptr));
  pcre2_set_match_limit(limits.get(), kMostSteps);
  pcre2_set_heap_limit(limits.get(), kMostMemory);
  bool was_empty = false;
  for (PCRE2_SIZE begin = 0; begin <= text.size();) {
    const int found = pcre2_match(code_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), begin,
                                  was_empty ? PCRE2_NOTEMPTY_ATSTART : 0u, data.get(), limits.get());
    if (found == PCRE2_ERROR_NOMATCH) break;
    if (found < 0)
      return invalid_argument(
          fmt::format("the pattern \"{}\" cannot be searched in a text of {} bytes: {}; write it "
                      "so that it backtracks less",
                      source_, text.size(), message_of(found)));
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(data.get());
    Match match;
    for (uint32_t g = 0; g < pcre2_get_ovector_count(data.get()); ++g)
      match.push_back(ends[2 * g] == PCRE2_UNSET
                          ? std::nullopt
                          : std::optional(text.substr(ends[2 * g], ends[2 * g + 1] - ends[2 * g])));
    out.push_back(std::move(match));
    begin = ends[1];
    was_empty = ends[0] == ends[1];
  }
  return out;
}

Result<std::string> Pattern::remove_from(const std::string& text) const {
  ASSIGN_OR_RETURN(const std::vector<Match> matches, find_all(text));
  std::string out;
  const char* done = text.data();
  for (const Match& match : matches) {
    out.append(done, match[0]->data());
    done = match[0]->data() + match[0]->size();
  }
  out.append(done, text.data() + text.size());
  return out;
}

}  // namespace ostro::eval
