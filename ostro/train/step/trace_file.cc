#include "ostro/train/step/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

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

}  // namespace

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

}  // namespace ostro::train
