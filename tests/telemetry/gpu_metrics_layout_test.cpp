// SPDX-License-Identifier: Apache-2.0
// The layout table against the reference, field by field.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "telemetry/gpu_metrics_table.hpp"
#include "tests/telemetry/decoder_support.hpp"

namespace gpuhealth::telemetry {
namespace {

using nlohmann::json;

json reference_layouts(const std::filesystem::path& captures) {
  std::ifstream file(captures.parent_path() / "reference" / "gpu_metrics_layouts.json");
  EXPECT_TRUE(file.is_open());
  return json::parse(file);
}

std::string key_of(MetricsFile file, unsigned format, unsigned content) {
  const std::map<MetricsFile, std::string> prefix = {{MetricsFile::GpuMetrics, ""},
                                                     {MetricsFile::GpuBoardTemperature, "gpuboard_temp_"},
                                                     {MetricsFile::BaseboardTemperature, "baseboard_temp_"},
                                                     {MetricsFile::Partition, "partition_"}};
  return prefix.at(file) + std::to_string(format) + "." + std::to_string(content);
}

struct PlainField {
  std::string name;
  unsigned offset;
  std::string type;
  unsigned count;
  std::string unit;
  auto operator<=>(const PlainField&) const = default;
};
void PrintTo(const PlainField& f, std::ostream* out) {
  *out << f.name << " @" << f.offset << " " << f.type << "[" << f.count << "] " << f.unit;
}

std::set<PlainField> fields_of(const Layout& layout) {
  const std::map<FieldType, std::string> types = {
      {FieldType::U8, "u8"}, {FieldType::U16, "u16"}, {FieldType::U32, "u32"}, {FieldType::U64, "u64"}};
  std::set<PlainField> out;
  for (const auto& part : layout.parts) {
    for (const auto& row : part) {
      for (unsigned i = 0; i < row.repeats; ++i) {
        std::string name(row.name);
        if (row.repeats > 1) name.insert(name.find(']'), std::to_string(i));
        out.insert({name, row.offset + i * row.stride, types.at(row.type), row.count, std::string(row.unit)});
      }
    }
  }
  return out;
}

std::set<PlainField> fields_of(const json& layout) {
  std::set<PlainField> out;
  for (const auto& f : layout) out.insert({f["name"], f["offset"], f["type"], f["count"], f["unit"]});
  return out;
}

TEST(GpuMetricsLayouts, EveryFieldIsAsInTheReference) {
  CAPTURES_OR_RETURN(captures);
  const auto reference = reference_layouts(captures);
  std::set<std::string> seen;
  for (const auto& layout : all_layouts()) {
    const auto key = key_of(layout.file, layout.format, layout.content);
    ASSERT_TRUE(reference.contains(key)) << key;
    EXPECT_EQ(fields_of(layout), fields_of(reference[key])) << key;
    EXPECT_EQ(layout.size, reference["_meta"]["structure_size"][key].get<unsigned>()) << key;
    EXPECT_FALSE(layout.source.empty()) << key;
    seen.insert(key);
  }
  EXPECT_EQ(seen.size(), 18U);
  EXPECT_EQ(seen.size() + 1, reference.size()) << "a layout of the reference is not in the table";
}

TEST(GpuMetricsLayouts, EveryFieldDecodesFromItsBytes) {
  CAPTURES_OR_RETURN(captures);
  const auto reference = reference_layouts(captures);
  const std::map<std::string, std::size_t> widths = {{"u8", 1}, {"u16", 2}, {"u32", 4}, {"u64", 8}};
  for (const auto& layout : all_layouts()) {
    const auto key = key_of(layout.file, layout.format, layout.content);
    TableBuilder table(layout.size, layout.format, layout.content);
    for (std::size_t i = 4; i < layout.size; ++i) table.put(i, 1, (7 * i + 3) % 251);
    const auto decoded = decode_gpu_metrics(table.bytes(), layout.file);
    EXPECT_EQ(decoded.status, MetricsStatus::Ok) << key;
    EXPECT_EQ(decoded.fields.size(), reference[key].size()) << key;
    for (const auto& f : reference[key]) {
      const auto* field = decoded.find(f["name"].get<std::string>());
      ASSERT_NE(field, nullptr) << key << " " << f["name"];
      ASSERT_EQ(field->raw.size(), f["count"].get<std::size_t>());
      EXPECT_EQ(field->array, f["count"].get<unsigned>() > 1);
      const auto width = widths.at(f["type"]);
      for (std::size_t i = 0; i < field->raw.size(); ++i) {
        std::uint64_t expected = 0;
        for (std::size_t b = width; b-- > 0;)
          expected = expected * 256 + table.bytes().at(f["offset"].get<std::size_t>() + i * width + b);
        EXPECT_EQ(field->raw[i], expected) << key << " " << f["name"];
      }
    }
  }
}

TEST(GpuMetricsLayouts, AttributeIdsAreAsInTheReference) {
  CAPTURES_OR_RETURN(captures);
  const auto ids = reference_layouts(captures)["_meta"]["gpu_metrics_1.9_and_partition_1.1"]["ids"];
  ASSERT_EQ(ids.size(), 48U);
  for (const auto& [id, name] : ids.items())
    EXPECT_EQ(attribute_name(static_cast<unsigned>(std::stoul(id))), name.get<std::string>());
  EXPECT_FALSE(attribute_name(48));
}

TEST(GpuMetricsLayouts, NoFieldLiesOutsideItsTable) {
  for (const auto& layout : all_layouts()) {
    for (const auto& f : fields_of(layout)) {
      const unsigned width = f.type == "u8" ? 1 : f.type == "u16" ? 2 : f.type == "u32" ? 4 : 8;
      EXPECT_LE(f.offset + f.count * width, layout.size) << f.name;
      EXPECT_EQ(f.offset % width, 0U) << f.name;
    }
  }
}

}  // namespace
}  // namespace gpuhealth::telemetry
