// choose_hold_out: chooses the documents that are held out, so that a loss can be measured on text that is
// not trained on. A pure function.
#pragma once

#include <string>
#include <vector>

#include "ostro/init/survey.h"

namespace ostro::init {

struct HoldOut {
  std::vector<std::string> train_urls, validation_urls;  // no validation_urls: `fraction` is held out
  double fraction = 0;
  int64_t held_out_bytes = 0;  // of text: exact if all was read, else an estimate
  std::string why;
};

// Of fewer than 40 text files it holds out one by name: the smallest with at least a fiftieth of the text, or
// the smallest of all if that one has more than two fifths. Otherwise it holds out a fraction of the
// documents: a twentieth, less when there is much text, and more when a twentieth would be no document. Of
// fewer than three documents it holds out none.
HoldOut choose_hold_out(const Survey& survey);

}  // namespace ostro::init
