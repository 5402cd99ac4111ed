// SPDX-License-Identifier: Apache-2.0
#include "telemetry/gpu_metrics.hpp"

#include <algorithm>
#include <array>

#include "telemetry/gpu_metrics_frame.hpp"

namespace gpuhealth::telemetry {
namespace {

constexpr std::array<std::string_view, 5> kStatusNames = {"ok", "truncated", "longer", "unknown-revision", "invalid"};
constexpr std::size_t kHeaderEnd = 4;

void append_value(MetricsField& field, const std::uint8_t* at, FieldType type, bool may_be_absent) {
  const auto width = width_of(type);
  auto raw = load_le(at, width);
  const bool absent = may_be_absent && raw == sentinel_of(width);
  const bool negative = is_signed(type) && (raw >> (8 * width - 1)) != 0;
  if (negative) raw |= ~sentinel_of(width);
  field.raw.push_back(raw);
  if (absent)
    field.values.emplace_back();
  else
    field.values.emplace_back(negative ? static_cast<double>(static_cast<std::int64_t>(raw))
                                       : static_cast<double>(raw));
}

void append_field(GpuMetrics& out, std::string name, std::span<const std::uint8_t> bytes, std::size_t offset,
                  FieldType type, std::size_t count) {
  const auto width = width_of(type);
  if (offset > bytes.size() || bytes.size() - offset < count * width) return;
  MetricsField field;
  field.name = std::move(name);
  field.array = count != 1;
  field.is_signed = is_signed(type);
  field.values.reserve(count);
  field.raw.reserve(count);
  for (std::size_t i = 0; i < count; ++i)
    append_value(field, bytes.data() + offset + i * width, type, offset >= kHeaderEnd);
  out.fields.push_back(std::move(field));
}

std::string indexed(std::string_view name, std::size_t index) {
  const auto bracket = name.find("[]");
  return std::string(name.substr(0, bracket + 1)) + std::to_string(index) + std::string(name.substr(bracket + 1));
}

// The rows of one repeated struct come in a block: element by element, as they lie in the file.
std::size_t append_block(GpuMetrics& out, std::span<const FieldRow> rows, std::span<const std::uint8_t> bytes) {
  std::size_t block = 0;
  while (block < rows.size() && rows[block].repeats == rows[0].repeats && rows[block].stride == rows[0].stride) ++block;
  for (std::size_t i = 0; i < rows[0].repeats; ++i) {
    for (const auto& row : rows.first(block))
      append_field(out, indexed(row.name, i), bytes, row.offset + i * row.stride, row.type, row.count);
  }
  return block;
}

void decode_struct(GpuMetrics& out, const Layout& layout, std::span<const std::uint8_t> bytes) {
  for (const auto& part : layout.parts) {
    for (std::size_t i = 0; i < part.size();) {
      const auto& row = part[i];
      if (row.repeats > 1) {
        i += append_block(out, part.subspan(i), bytes);
      } else {
        append_field(out, std::string(row.name), bytes, row.offset, row.type, row.count);
        ++i;
      }
    }
  }
}

// A second attribute of the same id must not hide the first: "name#2".
std::string unused_name(const GpuMetrics& out, std::string_view name) {
  std::string candidate(name);
  for (unsigned i = 2; out.find(candidate) != nullptr; ++i) candidate = std::string(name) + "#" + std::to_string(i);
  return candidate;
}

void decode_stream(GpuMetrics& out, std::span<const std::uint8_t> bytes) {
  append_field(out, "structure_size", bytes, 0, FieldType::U16, 1);
  append_field(out, "format_revision", bytes, 2, FieldType::U8, 1);
  append_field(out, "content_revision", bytes, 3, FieldType::U8, 1);
  append_field(out, "attr_count", bytes, 4, FieldType::S32, 1);
  AttributeWalk walk(bytes);
  unsigned skipped = 0;
  std::size_t read = 0;
  for (; const auto attribute = walk.next(); ++read) {
    if (const auto name = attribute_name(attribute->id))
      append_field(out, unused_name(out, *name), bytes, attribute->offset, attribute->type, attribute->count);
    else
      ++skipped;
  }
  const auto progress = std::to_string(read) + " of " + std::to_string(walk.stated()) + " attributes";
  if (walk.end() == AttributeWalk::End::Cut) out.note += "the stream ends after " + progress + "; ";
  if (walk.end() == AttributeWalk::End::UnknownType) out.note += "an unknown type of value after " + progress + "; ";
  if (skipped != 0) out.note += std::to_string(skipped) + " attributes of unknown ids skipped; ";
}

std::string version_text(unsigned format, unsigned content) {
  return std::to_string(format) + "." + std::to_string(content);
}

std::string why_invalid(const MetricsFrame& frame, std::size_t read, MetricsFile file) {
  if (read == 0) return "the file is empty";
  if (read < kHeaderEnd) return std::to_string(read) + " bytes are less than a header";
  if (frame.bytes.empty()) return "the header states a size of " + std::to_string(frame.structure_size);
  if (is_stream(file, frame.format, frame.content)) return "the stream states a negative number of attributes";
  return "revision " + version_text(frame.format, frame.content) + " is of no known format";
}

// What the sizes say: of the file, of the header, of the table.
std::string about_sizes(const MetricsFrame& frame, std::size_t read) {
  std::string out;
  const auto stated = std::to_string(frame.structure_size);
  if (read != frame.structure_size) {
    out += "the header states " + stated + " bytes, the file has " + std::to_string(read) + "; ";
  }
  if (frame.layout == nullptr || frame.status == MetricsStatus::UnknownRevision) return out;
  if (frame.layout->size != frame.structure_size) {
    out += "the header states " + stated + " bytes, revision " + version_text(frame.format, frame.content) + " has " +
           std::to_string(frame.layout->size) + ": only fields inside both are decoded; ";
  }
  return out;
}

std::string about_revision(const MetricsFrame& frame, MetricsFile file) {
  if (frame.status != MetricsStatus::UnknownRevision) return {};
  auto text = "revision " + version_text(frame.format, frame.content) + " is newer than all known: ";
  if (frame.stream) return text + "read as a stream of attributes; ";
  const auto* known = newest_layout(file, frame.format);
  return text + "its beginning is read as " + version_text(known->format, known->content) + "; ";
}

void close_note(std::string& note) {
  if (note.ends_with("; ")) note.resize(note.size() - 2);
}

}  // namespace

std::string_view to_string(MetricsStatus status) {
  return kStatusNames.at(static_cast<std::size_t>(status));
}

const MetricsField* GpuMetrics::find(std::string_view name) const {
  const auto at = std::ranges::find(fields, name, &MetricsField::name);
  return at == fields.end() ? nullptr : &*at;
}

std::optional<double> GpuMetrics::value(std::string_view name, std::size_t index) const {
  const auto* field = find(name);
  if (field == nullptr || index >= field->values.size()) return std::nullopt;
  return field->values[index];
}

GpuMetrics decode_gpu_metrics(std::span<const std::uint8_t> bytes, MetricsFile file) {
  const auto frame = frame_metrics(bytes, file);
  GpuMetrics out;
  out.format = frame.format;
  out.content = frame.content;
  out.structure_size = frame.structure_size;
  out.status = frame.status;
  if (frame.status == MetricsStatus::Invalid) {
    out.note = why_invalid(frame, bytes.size(), file);
    return out;
  }
  out.note = about_revision(frame, file) + about_sizes(frame, bytes.size());
  if (frame.stream)
    decode_stream(out, frame.bytes);
  else
    decode_struct(out, *frame.layout, frame.bytes);
  close_note(out.note);
  return out;
}

}  // namespace gpuhealth::telemetry
