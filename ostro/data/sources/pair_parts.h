// is_rejected_part, is_answer_part: the parts of a preference row in a store. Its tokens are those of two
// texts: the prompt with the answer that was preferred, then the prompt with the other one. Pure functions.
#pragma once

namespace ostro::data {

// The part that a token belongs to. The second text begins with the first token of part 2 or more.
inline constexpr int kChosenPrompt = 0;
inline constexpr int kChosenAnswer = 1;
inline constexpr int kRejectedPrompt = 2;
inline constexpr int kRejectedAnswer = 3;

inline bool is_rejected_part(float part) { return part >= kRejectedPrompt; }
// True if the token counts in the log-probability of its text.
inline bool is_answer_part(float part) { return part == kChosenAnswer || part == kRejectedAnswer; }

}  // namespace ostro::data
