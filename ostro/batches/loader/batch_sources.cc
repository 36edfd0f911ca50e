#include "ostro/batches/loader/batch_sources.h"

#include "ostro/data/formats/row_formatter.h"

namespace ostro::batches {
namespace {

// Finds the places of rows of one component. Reads each file once.
void search_places(io::FileSystem& fs, const Batch& batch, size_t component, const data::RowFormat& format,
                   SourceCheck& files, std::vector<SequenceSource>& sources) {
  std::vector<data::RowSource> rows;
  std::vector<RowPlace*> places;
  for (size_t row = 0; row < sources.size(); ++row) {
    if (batch.components[row] != component) continue;
    for (DocumentSource& document : sources[row].documents) {
      rows.push_back(document.span.source);
      places.push_back(&document.place);
    }
  }
  std::vector<RowPlace> found = find_rows(fs, rows, data::row_fields(format), files);
  for (size_t i = 0; i < found.size(); ++i) *places[i] = std::move(found[i]);
}

}  // namespace

Result<std::vector<SequenceSource>> batch_sources(io::FileSystem& fs, const Batch& batch, const DataSet& data,
                                                  const ReaderOf& reader_of, bool search) {
  std::vector<SequenceSource> sources(static_cast<size_t>(batch.batch_size));
  for (size_t row = 0; row < sources.size(); ++row) {
    if (batch.sequences[row] < 0) continue;
    const size_t component = batch.components[row];
    sources[row].component = data.parts()[component].component.name;
    ASSIGN_OR_RETURN(std::vector<DocumentSpan> spans, reader_of(component).documents(batch.sequences[row]));
    for (DocumentSpan& span : spans) {
      RowPlace place = stored_place(span.source);
      sources[row].documents.push_back({std::move(span), std::move(place)});
    }
  }
  SourceCheck files(fs);
  for (size_t c = 0; search && c < data.parts().size(); ++c)
    search_places(fs, batch, c, data.parts()[c].component.format, files, sources);
  return sources;
}

}  // namespace ostro::batches
