// write_pickle: the bytes of a pickle around the elements of arrays, as CPython 3.11 writes them for the
// release's objects. A function of `tensor` alone.
#pragma once

#include <string>
#include <vector>

#include "ostro/grok/pickle/stored.h"

namespace ostro::grok {

// A file is texts[0], the elements of the weight, texts[1] and, if there are scales, their elements and
// texts[2].
struct PickleTexts {
  std::vector<std::string> texts;
  int64_t bytes = 0;  // of the whole file
};

// Makes the texts for the dtypes and shapes of `tensor` (extents from 0 to 2^31 - 1), and sets where in the
// file its elements are. Without scales it is an array, with scales a QuantizedWeight8bit.
PickleTexts write_pickle(StoredTensor& tensor);

}  // namespace ostro::grok
