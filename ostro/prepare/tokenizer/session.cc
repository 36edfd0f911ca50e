#include "ostro/prepare/tokenizer/session.h"

#include <utility>

#include "ostro/data/options/choose_component.h"
#include "ostro/prepare/tokenizer/trained_tokenizer.h"

namespace ostro::prepare {

Result<Session> open_session(io::FileSystem& fs, const data::DataOptions& options, int64_t seq_len,
                             const std::string& component, MissingTokenizer missing,
                             const data::BuildSettings& settings) {
  ASSIGN_OR_RETURN(tokenizer::Tokenizer tokenizer, missing == MissingTokenizer::kIsTrained
                                                       ? make_tokenizer(fs, options, settings)
                                                       : open_tokenizer(fs, options));
  ASSIGN_OR_RETURN(std::vector<data::Component> components,
                   data::named_components(data::components_of(options), component));
  return Session{fs, options, std::move(tokenizer), std::move(components), seq_len, settings.threads};
}

}  // namespace ostro::prepare
