#include "ostro/train/step/step_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/base/log.h"
#include "ostro/base/profile.h"
#include "ostro/io/files/atomic_file.h"

namespace ostro::train {
namespace {

constexpr int kProcess = 1;

std::string json_text(const std::string& text) { return nlohmann::json(text).dump(); }

// Microseconds with three decimals, exact to the nanosecond (a double would round).
std::string microseconds(int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

// Fields of an event that all spans with the same label share, ready as JSON text.
struct LabelText {
  std::string name, details;
};

LabelText label_text(const SpanLabel& label) {
  LabelText text;
  text.name = fmt::format("\"name\":{},\"cat\":", json_text(label.name));
  for (const auto& [key, value] : label.details)
    text.details += fmt::format(",{}:{}", json_text(key), json_text(value));
  if (label.flops > 0) text.details += fmt::format(",\"flops\":{:.0f}", label.flops);
  if (label.bytes > 0) text.details += fmt::format(",\"bytes\":{:.0f}", label.bytes);
  return text;
}

void append_span(const SpanRecord& span, const LabelText& text, int64_t origin, size_t thread,
                 std::string& out) {
  const int64_t duration = span.end - span.begin;
  auto to = std::back_inserter(out);
  fmt::format_to(to, "{{\"ph\":\"X\",{}\"{}\",\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{},\"args\":{{",
                 text.name, span.part ? "part" : span.label->category, kProcess, thread,
                 microseconds(span.begin - origin), microseconds(duration));
  const size_t empty = out.size();
  if (span.leaf >= 0) fmt::format_to(to, ",\"leaf\":{}", span.leaf);
  if (span.iteration >= 0) fmt::format_to(to, ",\"iteration\":{}", span.iteration);
  if (!span.part) {
    out += text.details;
    const double ns = static_cast<double>(std::max<int64_t>(1, duration));
    if (span.label->flops > 0) fmt::format_to(to, ",\"GFLOP/s\":{:.2f}", span.label->flops / ns);
    if (span.label->bytes > 0) fmt::format_to(to, ",\"GB/s\":{:.2f}", span.label->bytes / ns);
  }
  if (out.size() > empty) out.erase(empty, 1);
  out += "}},\n";
}

void append_metadata(const char* name, size_t thread, const std::string& args, std::string& out) {
  fmt::format_to(std::back_inserter(out),
                 "{{\"ph\":\"M\",\"name\":\"{}\",\"pid\":{},\"tid\":{},\"args\":{{{}}}}},\n", name, kProcess,
                 thread, args);
}

// Sorts spans by begin, an outer span before the spans inside it. Of spans with the same begin and end, the
// one recorded last comes first: it ended last, so it is the outer one.
std::vector<const SpanRecord*> in_order(const ProfileTrack& track) {
  std::vector<const SpanRecord*> spans;
  for (const SpanRecord& span : track.spans) spans.push_back(&span);
  std::sort(spans.begin(), spans.end(), [](const SpanRecord* a, const SpanRecord* b) {
    if (a->begin != b->begin) return a->begin < b->begin;
    return a->end != b->end ? a->end > b->end : a > b;
  });
  return spans;
}

// A recorded profile in the trace event format of Chrome and Perfetto: one JSON object. "traceEvents" has a
// complete event ("ph": "X", times in microseconds since the first span) for every span, and metadata events
// with the names of the process and the threads. The training thread comes first.
std::string trace_json(const std::vector<ProfileTrack>& given) {
  std::vector<const ProfileTrack*> tracks;
  int64_t origin = std::numeric_limits<int64_t>::max();
  for (const ProfileTrack& track : given) {
    tracks.push_back(&track);
    for (const SpanRecord& span : track.spans) origin = std::min(origin, span.begin);
  }
  const auto has_steps = [](const ProfileTrack& track) {
    return std::any_of(track.spans.begin(), track.spans.end(),
                       [](const SpanRecord& s) { return s.label->category == std::string_view("step"); });
  };
  std::sort(tracks.begin(), tracks.end(), [&](const ProfileTrack* a, const ProfileTrack* b) {
    const bool first = has_steps(*a), second = has_steps(*b);
    return first != second ? first : a->thread < b->thread;
  });

  std::string out = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  append_metadata("process_name", 0, "\"name\":\"ostro\"", out);
  std::map<const SpanLabel*, LabelText> texts;
  for (size_t i = 0; i < tracks.size(); ++i) {
    append_metadata("thread_name", i, fmt::format("\"name\":{}", json_text(tracks[i]->thread)), out);
    append_metadata("thread_sort_index", i, fmt::format("\"sort_index\":{}", i), out);
    for (const SpanRecord* span : in_order(*tracks[i])) {
      auto [text, fresh] = texts.try_emplace(span->label.get());
      if (fresh) text->second = label_text(*span->label);
      append_span(*span, text->second, origin, i, out);
    }
  }
  out.replace(out.size() - 2, 2, "\n]}\n");
  return out;
}

std::optional<int64_t> number(std::string_view text) {
  int64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size() || n < 0) return std::nullopt;
  return n;
}

}  // namespace

Result<StepRange> parse_profile(const std::string& text) {
  constexpr std::string_view kPrefix = "steps=";
  const std::string_view view = text;
  const size_t colon = view.find(':');
  std::optional<int64_t> begin, end;
  if (view.starts_with(kPrefix) && colon != std::string_view::npos) {
    begin = number(view.substr(kPrefix.size(), colon - kPrefix.size()));
    end = number(view.substr(colon + 1));
  }
  if (!begin || !end)
    return invalid_argument(
        fmt::format("--profile {}: give the steps as steps=FIRST:END, two numbers; steps=10:13 profiles the "
                    "steps 10, 11 and 12",
                    text));
  if (*end <= *begin)
    return invalid_argument(
        fmt::format("--profile {}: no step is from {} on and before {}; END is the first step that is not "
                    "profiled any more, steps={}:{} one step",
                    text, *begin, *end, *begin, *begin + 1));
  return StepRange{*begin, *end};
}

Status check_profile(const StepRange& range, int64_t steps) {
  if (range.end <= steps) return Status();
  return invalid_argument(
      fmt::format("--profile steps={}:{}: trainer.num_train_steps is {}, so the last step is {} and END at "
                  "most {}",
                  range.begin, range.end, steps, steps - 1, steps));
}

StepProfile::StepProfile(io::FileSystem& fs, std::string directory, std::optional<StepRange> range)
    : fs_(fs), directory_(std::move(directory)), range_(range) {}

StepProfile::~StepProfile() {
  if (on_) write();
}

void StepProfile::reach(int64_t step) {
  if (!range_) return;
  if (step >= range_->end) {
    if (on_) return write();
    log_warning(fmt::format("no profile: steps {} to {} were done before", range_->begin, range_->end - 1));
    range_.reset();
    return;
  }
  if (on_ || step < range_->begin) return;
  on_ = start_profile();
  if (on_) return;
  log_warning("no profile: another run of this process is being profiled");
  range_.reset();
}

void StepProfile::leave(int64_t step) {
  if (on_ && step + 1 >= range_->end) write();
}

std::string StepProfile::span_name(int64_t step) const {
  return on_ ? fmt::format("ProfilerStep#{}", step) : "";
}

void StepProfile::write() {
  on_ = false;
  const std::string path = fmt::format("{}/profile-{}-{}{}.json", directory_, range_->begin, range_->end,
                                       rank_ ? fmt::format(".{}", *rank_) : "");
  const std::vector<ProfileTrack> tracks = stop_profile();
  range_.reset();
  const Status written = io::write_file_atomically(fs_, path, trace_json(tracks));
  if (written.ok())
    log_info(fmt::format("profile: {} (open it in https://ui.perfetto.dev)", path));
  else
    log_warning(fmt::format("the profile is lost: {}", written.error().message()));
}

}  // namespace ostro::train
