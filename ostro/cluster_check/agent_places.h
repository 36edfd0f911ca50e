// answer_path, answer_store, answer_read, answer_disk, set_variables: an agent's answers about places of a
// run. They take the question and return the answer, as agent.h has them; errors say what is wrong there and
// what helps.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "ostro/base/error.h"
#include "ostro/io/files/file_system.h"

namespace ostro::cluster_check {

Result<nlohmann::json> answer_path(io::FileSystem& fs, const nlohmann::json& asked);
Result<nlohmann::json> answer_store(const nlohmann::json& asked);
Result<nlohmann::json> answer_read(io::FileSystem& fs, const nlohmann::json& asked);
Result<nlohmann::json> answer_disk(io::FileSystem& fs, const nlohmann::json& asked);
// Whether a variable of the environment says how an object store is reached (docs/reference/sources.md).
bool is_store_variable(std::string_view name);
// Sets such variables; before the first path at s3://, and before there are threads that read the
// environment. Error: another variable.
Result<nlohmann::json> set_variables(const nlohmann::json& asked);

}  // namespace ostro::cluster_check
