// Language: the invented words of all drawn corpora, and what is true of them. It depends on no seed, so what
// a model learns of a word in one corpus holds in all. Pure functions, for any thread.
#pragma once

#include <cstdint>
#include <string>

namespace ostro::drawn {

inline constexpr uint32_t kTopics = 12;
inline constexpr uint32_t kNouns = 24;       // of a topic
inline constexpr uint32_t kVerbs = 8;        // of a topic
inline constexpr uint32_t kAdjectives = 24;  // of all topics

// Words of two or three syllables. Topics and numbers are below the constants above.
std::string noun(uint32_t topic, uint32_t number);
std::string verb(uint32_t topic, uint32_t number);
std::string adjective(uint32_t number);
// A family name, for authors.
std::string name(uint32_t number);

// What a noun is made of: the number of another noun of its topic.
uint32_t made_of(uint32_t number);
// How a noun is: the number of an adjective.
uint32_t quality_of(uint32_t topic, uint32_t number);

// With a capital at its beginning.
std::string capital(std::string word);

}  // namespace ostro::drawn
