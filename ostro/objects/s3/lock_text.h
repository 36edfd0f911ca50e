// LockText: what the object of a lock says: who holds it, and for how long without a word.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ostro::objects {

// The first line is the owner's text, as in the file of a local lock, or kFreeLock and that text when no
// process holds it. The second is "ostro lock 1, lease 30 s, term 4, renewal 17, process
// BOOT/SPACE/PID/START".
struct LockText {
  bool free = false;
  std::string owner;
  int64_t lease = 30;   // seconds
  int64_t term = 0;     // how often the lock was taken
  int64_t renewal = 0;  // how often this holder has renewed it
  std::string process;  // this_process() of the holder

  std::string text() const;
};

inline constexpr std::string_view kFreeLock = "free; last held by ";

// Of a text that no lock has written, all of it is the owner.
LockText parse_lock_text(std::string_view text);

// This process, among all of all machines: the boot of its kernel, its space of process numbers, its number
// there and when it began.
std::string this_process();

// Whether the process that this_process() named is there. kElsewhere: this process cannot see it, if it is.
enum class HolderState { kAlive, kGone, kElsewhere };
HolderState state_of_process(const std::string& process);

}  // namespace ostro::objects
