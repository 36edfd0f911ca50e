#include "ostro/cli/model/check_weights.h"

#include "ostro/cli/shared/progress.h"

namespace ostro::cli {

Status check_weights(const checkpoint::PartReader& reader) {
  PercentProgressLine line;
  const auto total = static_cast<double>(reader.bytes());
  const Status checked =
      reader.check([&](int64_t done) { line.show("checking weights", static_cast<double>(done) / total); });
  line.end();
  return checked;
}

}  // namespace ostro::cli
