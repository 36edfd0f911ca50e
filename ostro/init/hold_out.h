// Which documents are held out, so that the loss on text that was not trained on can be seen.
#pragma once

#include <string>
#include <vector>

#include "ostro/init/survey.h"

namespace ostro::init {

struct HoldOut {
  std::vector<std::string> train_urls, validation_urls;  // the second empty: `fraction`
  double fraction = 0;
  int64_t held_out_bytes = 0;  // of text: exact where all was read, else about
  std::string why;
};

// Few text files: one of them by name, near a twentieth of the text. Else a share of the documents, so large
// that some text is in it, and no larger than a tenth where that is enough.
HoldOut choose_hold_out(const Survey& survey);

}  // namespace ostro::init
