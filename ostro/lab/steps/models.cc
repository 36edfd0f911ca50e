// The steps export and publish: models for other programs, and for people who check them.
#include <nlohmann/json.hpp>

#include "ostro/base/sha256.h"
#include "ostro/bundle/publish/publish.h"
#include "ostro/convert/export_model.h"
#include "ostro/io/files/file_hash.h"
#include "ostro/io/files/path.h"
#include "ostro/lab/steps/kinds.h"
#include "ostro/provenance/provenance.h"

namespace ostro::lab {
namespace {

// A text parameter that may be left out.
std::string text_or_none(const Step& step, const char* parameter) {
  const config::Node* given = step.parameters.find(parameter);
  return given == nullptr ? "" : given->text;
}

// The one store of a training without components; of others the record of the run names the stores.
std::string store_of(const Work& work) {
  const auto stores = stores_of(work.of(work.input("of")));
  const auto alone = stores.find("");
  return alone == stores.end() ? "" : work.made_by(*alone->second).folder;
}

}  // namespace

// provenance.json has the hashes of all other files.
Result<std::string> make_export(const Work& work, const std::string& folder) {
  ASSIGN_OR_RETURN(const KeptState state, state_at(work));
  convert::ExportRequest request;
  request.checkpoint = state.folder, request.to = "hf", request.out = folder;
  request.dtype = text_or_none(work.step, "dtype");
  RETURN_IF_ERROR(convert::export_model(work.context, request));
  return io::file_sha256(work.context.fs, io::join_path(folder, provenance::kProvenanceFile));
}

// The content is the model, the run and its data; sessions and programs of the record are none of it.
Result<std::string> make_bundle(const Work& work, const std::string& folder) {
  bundle::PublishRequest request;
  request.run = work.made_by(work.input("of")).folder;
  request.out = io::join_path(folder, kBundleFolder);
  request.cache = store_of(work);
  request.dtype = text_or_none(work.step, "dtype");
  request.version = work.services.version;
  if (const std::string number = text_or_none(work.step, "checkpoints"); !number.empty())
    request.checkpoints = std::stoll(number);
  if (const std::string licence = text_or_none(work.step, "licence"); !licence.empty())
    request.license = licence;
  ASSIGN_OR_RETURN(const bundle::Published published, bundle::publish(work.context, request));
  ASSIGN_OR_RETURN(const std::string provenance,
                   io::file_sha256(work.context.fs, io::join_path(request.out, provenance::kProvenanceFile)));
  nlohmann::json content = {{"head", published.manifest.chain.head},
                            {"state", published.manifest.chain.state},
                            {"provenance", provenance}};
  for (const auto& [component, ledger] : published.manifest.ledger)
    content["ledger"][component] = ledger.root;
  return sha256_hex(content.dump());
}

}  // namespace ostro::lab
