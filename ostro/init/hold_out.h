// choose_hold_out: chooses the documents that are held out, so that the loss on text that was not trained on
// can be seen.
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

// From fewer than 40 text files, one by name: the smallest that has a fiftieth of the text, or the smallest
// of all if that one has more than two fifths. Otherwise a fraction of the documents: a twentieth, less of
// much text, and more where it would hold out no document. Of fewer than three documents nothing is held out.
HoldOut choose_hold_out(const Survey& survey);

}  // namespace ostro::init
