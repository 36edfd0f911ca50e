// TensorBoard's event files: records of tensorflow.Event messages (tensorflow/core/util/event.proto), of
// which only what scalars need is written.
//
// A record is: length (u64), masked CRC-32C of those 8 bytes (u32), the message, its masked CRC-32C (u32),
// all little endian.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace ostro::train {

// TensorFlow's: the checksum rotated right by 15 bits plus a constant, so that checksums of data that holds
// checksums stay good.
uint32_t masked_crc32c(std::string_view bytes);

// A record around a message.
std::string event_record(std::string_view message);

// The messages. `wall_time` is in seconds since 1970.
std::string version_event(double wall_time);
// Asks readers to forget events of `step` and later that other files hold.
std::string restart_event(double wall_time, int64_t step);
std::string scalars_event(double wall_time, int64_t step, const std::map<std::string, double>& scalars);

}  // namespace ostro::train
