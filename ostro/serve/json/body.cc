#include "ostro/serve/json/body.h"

#include <utility>

#include "ostro/serve/json/fields.h"

namespace ostro::serve {

Body::Body(std::string_view text) {
  nlohmann::ordered_json json;
  error_ = parse_body(text, json);
  if (error_) json = nullptr;
  json_ = std::make_shared<const nlohmann::ordered_json>(std::move(json));
}

std::string Body::model() const {
  const auto found = json_->find("model");
  return found != json_->end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace ostro::serve
