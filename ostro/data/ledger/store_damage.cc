#include "ostro/data/ledger/store_damage.h"

#include <fmt/core.h>

namespace ostro::data {
namespace {

std::string name_of(const StoreName& store) {
  return store.levanter_cache.empty() ? fmt::format("the token store in {}", store.folder)
                                      : fmt::format("the Levanter cache in {}", store.levanter_cache);
}

std::string advice(const StoreName& store) {
  if (!store.levanter_cache.empty())
    return fmt::format(
        "restore the file, or have the program that wrote the cache write it anew, and delete {}, which is "
        "of the cache as it was",
        store.folder);
  if (store.in_parts)
    return "restore the file, or build the store of that part again and join the parts anew";
  return fmt::format("restore the file, or delete {} and build it again from its texts", store.folder);
}

}  // namespace

bool is_damage(const Error& error) {
  return error.code() == ErrorCode::kCorrupt || error.code() == ErrorCode::kNotFound;
}

Error array_error(const StoreName& store, std::string_view array, const Error& error) {
  if (!is_damage(error)) return error.with_context(fmt::format("reading {} of {}", array, name_of(store)));
  return {error.code(),
          fmt::format("damaged {}: {}; {}", store.levanter_cache.empty() ? "token store" : "Levanter cache",
                      error.message(), advice(store))};
}

Error record_error(const StoreName& store, std::string_view file, const Error& error) {
  if (!is_damage(error)) return error.with_context(fmt::format("reading {} of {}", file, name_of(store)));
  if (store.levanter_cache.empty())
    return {error.code(),
            fmt::format("damaged token store: {}; restore the file, or delete {} and build it again",
                        error.message(), store.folder)};
  return {
      error.code(),
      fmt::format("damaged check data of {}: {}; delete {}, and `ostro data build` checks the cache again",
                  name_of(store), error.message(), store.folder)};
}

Error unfinished_error(const std::string& folder, const Error& error) {
  if (!is_damage(error)) return error.with_context(fmt::format("the unfinished token store in {}", folder));
  return {error.code(), fmt::format("damaged unfinished token store: {}; delete {} to build it again",
                                    error.message(), folder)};
}

}  // namespace ostro::data
