#include "ostro/trained/opened_model.h"

namespace ostro::trained {

Status check_weights(const checkpoint::PartReader& reader, Progress& progress) {
  const auto total = static_cast<double>(reader.bytes());
  const Status checked = reader.check(
      [&](int64_t done) { progress.show("checking weights", static_cast<double>(done) / total); });
  progress.end();
  return checked;
}

}  // namespace ostro::trained
