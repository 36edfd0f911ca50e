#include "ostro/run/report/event_file.h"

#include <bit>
#include <span>

#include "ostro/io/read/crc32c.h"

namespace ostro::run {
namespace {

// Protocol buffers' wire types.
enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

template <typename T>
void append_little_endian(std::string& out, T value) {
  for (size_t i = 0; i < sizeof value; ++i) out.push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

void append_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>((value & 0x7f) | 0x80));
  out.push_back(static_cast<char>(value));
}

void append_tag(std::string& out, uint32_t field, WireType type) { append_varint(out, field << 3 | type); }

void append_bytes(std::string& out, uint32_t field, std::string_view bytes) {
  append_tag(out, field, kBytes);
  append_varint(out, bytes.size());
  out.append(bytes);
}

// Event: wall_time = 1 (double), step = 2 (int64).
std::string event(double wall_time, int64_t step) {
  std::string out;
  append_tag(out, 1, kFixed64);
  append_little_endian(out, std::bit_cast<uint64_t>(wall_time));
  append_tag(out, 2, kVarint);
  append_varint(out, static_cast<uint64_t>(step));
  return out;
}

}  // namespace

uint32_t masked_crc32c(std::string_view bytes) {
  constexpr uint32_t kMaskDelta = 0xa282ead8;
  return std::rotr(io::crc32c(std::as_bytes(std::span(bytes))), 15) + kMaskDelta;
}

std::string event_record(std::string_view message) {
  std::string out;
  append_little_endian(out, static_cast<uint64_t>(message.size()));
  append_little_endian(out, masked_crc32c(out));
  out.append(message);
  append_little_endian(out, masked_crc32c(message));
  return out;
}

std::string version_event(double wall_time) {
  std::string out = event(wall_time, 0);
  append_bytes(out, 3, "brain.Event:2");  // Event.file_version
  return out;
}

std::string restart_event(double wall_time, int64_t step) {
  std::string session_log;
  append_tag(session_log, 1, kVarint);  // SessionLog.status
  append_varint(session_log, 1);        // START
  std::string out = event(wall_time, step);
  append_bytes(out, 7, session_log);  // Event.session_log
  return out;
}

std::string scalars_event(double wall_time, int64_t step, const std::map<std::string, double>& scalars) {
  std::string summary;
  for (const auto& [name, number] : scalars) {
    std::string value;
    append_bytes(value, 1, name);    // Summary.Value.tag
    append_tag(value, 2, kFixed32);  // Summary.Value.simple_value
    append_little_endian(value, std::bit_cast<uint32_t>(static_cast<float>(number)));
    append_bytes(summary, 1, value);  // Summary.value
  }
  std::string out = event(wall_time, step);
  append_bytes(out, 5, summary);  // Event.summary
  return out;
}

}  // namespace ostro::run
