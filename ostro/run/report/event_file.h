// event_record, scalars_event: the bytes of TensorBoard event files. They hold tensorflow.Event messages
// (tensorflow/core/util/event.proto). Only the fields that scalars need are written. Pure functions.
//
// A record is: length (u64), masked CRC-32C of those 8 bytes (u32), the message, masked CRC-32C of the
// message (u32). All numbers are little-endian.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace ostro::run {

// TensorFlow's masked checksum: the CRC rotated right by 15 bits, plus a constant. The mask keeps checksums
// strong for data that itself contains checksums.
uint32_t masked_crc32c(std::string_view bytes);

// Wraps a message into a record.
std::string event_record(std::string_view message);

// Serialized Event messages. `wall_time` is in seconds since 1970.
std::string version_event(double wall_time);
// Tells readers to drop events of `step` and later steps that are in other files.
std::string restart_event(double wall_time, int64_t step);
std::string scalars_event(double wall_time, int64_t step, const std::map<std::string, double>& scalars);

}  // namespace ostro::run
