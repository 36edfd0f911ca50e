// findings_json: the part of a check's JSON that all checks share. Pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "ostro/audit/verdict.h"

namespace ostro::audit {

// {"verdict": WORD, "findings": [{"verdict": WORD, "text": TEXT}, ...]}, to which a check adds its own keys.
nlohmann::ordered_json findings_json(Verdict verdict, const std::vector<Finding>& findings);
// The array "findings" alone.
nlohmann::ordered_json finding_list_json(const std::vector<Finding>& findings);

// One line. Bytes that are no UTF-8, which a stranger's record may have, become U+FFFD.
std::string json_line(const nlohmann::ordered_json& document);

}  // namespace ostro::audit
