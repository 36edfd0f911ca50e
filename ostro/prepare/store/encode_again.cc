#include "ostro/prepare/store/encode_again.h"

#include <fmt/core.h>

#include <algorithm>

#include "ostro/data/formats/formats.h"
#include "ostro/data/sources/row_reader.h"
#include "ostro/prepare/store/documents.h"

namespace ostro::prepare {
namespace {

// The row with this number, read from the beginning of its file.
Result<data::Row> find_row(io::FileSystem& fs, const data::SourceFile& source,
                           const data::RowOptions& options, int64_t number) {
  ASSIGN_OR_RETURN(const auto reader, data::open_rows(fs, source.path, source.format, options));
  while (true) {
    data::Row row;
    ASSIGN_OR_RETURN(const bool more, reader->next(row));
    if (!more || row.number > number)
      return corrupt(fmt::format("{}: has no row {}, and the store has it", source.path, number));
    if (row.number == number) return row;
  }
}

}  // namespace

Result<std::vector<std::string>> encode_again(io::FileSystem& fs, const data::DataOptions& options,
                                              const data::TokenStore& store,
                                              const tokenizer::Tokenizer& tokenizer,
                                              const std::vector<int64_t>& rows) {
  const data::Component component = data::components_of(options)[0];
  const auto* text = std::get_if<data::TextFormat>(&component.format);
  OSTRO_CHECK(component.name.empty() && text != nullptr, "documents of a store of other rows than texts");
  ASSIGN_OR_RETURN(const data::FoundSources found,
                   data::find_sources(fs, data::source_places(options, component)));
  ASSIGN_OR_RETURN(const std::vector<data::SourceFile> sources, found.all());
  ASSIGN_OR_RETURN(const std::vector<data::FileLedger>* files, store.files());
  if (files->size() != sources.size())
    return invalid_argument(
        fmt::format("the store has {} files, and the texts are {}", files->size(), sources.size()));
  const data::Preprocessing& how = store.ledger().preprocessing;
  const data::RowOptions row_options{.fields = data::row_fields(component.format)};
  tokenizer::TextEnds ends;
  ends.before.assign(how.before.begin(), how.before.end());
  const EncodeContext context{.fs = fs,
                              .sources = sources,
                              .preprocessing = how,
                              .text_key = text->text_key,
                              .text_key_option = "data.text_key",
                              .ends = std::move(ends)};
  tokenizer::Encoder encoder(tokenizer);
  data::LineParser parser;
  std::vector<std::string> places;
  const int64_t training = store.split(data::Split::kTrain).rows();
  for (const int64_t number : rows) {
    const data::TokenStream& stream =
        store.split(number < training ? data::Split::kTrain : data::Split::kValidation);
    const int64_t row = number < training ? number : number - training;
    ASSIGN_OR_RETURN(const data::RowSource source, stream.source(row));
    const auto file = static_cast<size_t>(source.ledger - files->data());
    Unit unit{.file = static_cast<int64_t>(file)};
    ASSIGN_OR_RETURN(data::Row found_row, find_row(fs, sources[file], row_options, source.document));
    unit.rows.push_back(std::move(found_row));
    ASSIGN_OR_RETURN(const EncodedUnit encoded, encode_unit(context, encoder, parser, std::move(unit)));
    ASSIGN_OR_RETURN(const std::vector<int64_t> row_ends, stream.row_ends(row, 1));
    std::vector<int32_t> ids(static_cast<size_t>(row_ends[1] - row_ends[0]));
    RETURN_IF_ERROR(stream.read(row_ends[0], ids));
    places.push_back(data::row_place(sources[file].path, sources[file].format, source.document));
    if (!std::equal(ids.begin(), ids.end(), encoded.tokens.begin(), encoded.tokens.end(),
                    [](int32_t a, uint32_t b) { return static_cast<uint32_t>(a) == b; }))
      return corrupt(fmt::format("{}: its {} ids in {} are not the {} that its text has", places.back(),
                                 ids.size(), stream.name(), encoded.tokens.size()));
  }
  return places;
}

}  // namespace ostro::prepare
