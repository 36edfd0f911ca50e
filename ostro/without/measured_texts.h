// MeasuredText: a text whose loss is measured in the states of the runs that are compared, and which ones
// those are.
#pragma once

#include <string>
#include <vector>

#include "ostro/context/context.h"
#include "ostro/without/removal.h"

namespace ostro::without {

// A text whose loss is measured: its tokens, each predicted from those before it. The first is predicted from
// the token that stands before a text (eval::prefix_token).
struct MeasuredText {
  std::string name;
  std::vector<uint32_t> ids;
};

// The documents of a removal.
std::vector<MeasuredText> texts_of(const Removal& removal);

// What is measured in every state: the documents that were asked for, then the files of `request.texts`.
// Errors: those of reading a file; a file without tokens.
Result<std::vector<MeasuredText>> compared_texts(io::FileSystem& fs, const WithoutRequest& request,
                                                 const RemovalPlan& plan);

// The texts of each state that is measured: first that of the run itself, then those of the runs without, in
// the order in which find_effect makes them. `compared`: what compared_texts returns.
std::vector<std::vector<MeasuredText>> texts_by_state(const std::vector<MeasuredText>& compared,
                                                      const RemovalPlan& plan);

}  // namespace ostro::without
