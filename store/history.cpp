// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <optional>

#include "store/database_impl.hpp"

namespace gpuhealth::store {
namespace {

// Range of bucket starts at one level that overlap the range asked for.
struct Range {
  Minute first;
  Minute last;
};
Range starts(const HistoryQuery& query, const Level& level) {
  return {minute_of(query.since) - level.width + 1, minute_of(query.until)};
}

struct Extent {
  std::optional<Range> range;
  void include(Minute minute) {
    if (!range) range = Range{minute, minute};
    range->first = std::min(range->first, minute);
    range->last = std::max(range->last, minute);
  }
};

struct Source {
  Connection& connection;
  const Pending& pending;
  const HistoryQuery& query;
  std::int64_t device;
};

template <class Visit>
void visit_pending(const Source& source, Visit visit) {
  const Range range = starts(source.query, kLevels[0]);
  for (const auto& [minute, bucket] : source.pending.buckets) {
    if (minute < range.first || minute > range.last) continue;
    const auto device = bucket.devices.find(source.query.device);
    if (device == bucket.devices.end()) continue;
    const auto series = device->second.find(source.query.reading);
    if (series != device->second.end()) visit(minute, series->second);
  }
}

constexpr std::string_view kWhere =
    " FROM bucket WHERE level = ? AND device = ? AND start BETWEEN ? AND ? AND reading = ? ORDER BY start ";

Result<Extent> extent_of(const Source& source) {
  Extent extent;
  visit_pending(source, [&](Minute minute, const Aggregate&) { extent.include(minute); });
  for (const std::string_view end : {"ASC LIMIT 1", "DESC LIMIT 1"}) {
    Statement select(source.connection, "SELECT start" + std::string(kWhere) + std::string(end));
    for (std::size_t level = 0; level < kLevels.size(); ++level) {
      const Range range = starts(source.query, kLevels[level]);
      select.bind(level, source.device, range.first, range.last, static_cast<int>(source.query.reading));
      if (select.row()) extent.include(select.integer(0));
      if (select.failed()) return select.error();
    }
  }
  return extent;
}

// Points while they are gathered: what falls into the same stretch of time is merged, whatever its level.
struct Point {
  Minute start;
  Aggregate aggregate;
};
class Points {
 public:
  Points(Range range, std::uint32_t most)
      : first_(range.first), width_((range.last - range.first) / std::max<std::int64_t>(most, 1) + 1) {}

  void add(Minute start, const Aggregate& aggregate) {
    const auto [it, fresh] = points_.try_emplace((start - first_) / width_, Point{start, {}});
    it->second.start = std::min(it->second.start, start);
    it->second.aggregate.merge(aggregate);
  }

  [[nodiscard]] std::vector<HistoryPoint> result() const {
    std::vector<HistoryPoint> out;
    out.reserve(points_.size());
    for (const auto& [place, point] : points_) {
      const Aggregate& a = point.aggregate;
      if (a.count > 0) out.push_back({time_of(point.start), a.min, a.sum / static_cast<double>(a.count), a.max});
    }
    return out;
  }

 private:
  Minute first_;
  Minute width_;
  std::map<Minute, Point> points_;
};

Result<void> gather(const Source& source, Points& points) {
  Statement select(source.connection, "SELECT start, min, max, sum, count" + std::string(kWhere));
  for (std::size_t level = 0; level < kLevels.size(); ++level) {
    const Range range = starts(source.query, kLevels[level]);
    select.bind(level, source.device, range.first, range.last, static_cast<int>(source.query.reading));
    while (select.row())
      points.add(select.integer(0), {select.real(1), select.real(2), select.real(3), select.integer(4)});
    if (select.failed()) return select.error();
  }
  visit_pending(source, [&](Minute minute, const Aggregate& aggregate) { points.add(minute, aggregate); });
  return {};
}

}  // namespace

Result<std::vector<HistoryPoint>> Database::history(const HistoryQuery& query) const {
  if (query.since > query.until) return std::vector<HistoryPoint>{};
  Statement select(impl_->connection, "SELECT number FROM history_device WHERE device = ?");
  const std::int64_t device = select.bind(query.device).row() ? select.integer(0) : -1;
  if (select.failed()) return select.error();
  const Source source{impl_->connection, impl_->pending, query, device};
  const auto extent = extent_of(source);
  if (!extent) return tl::unexpected<Error>(extent.error());
  if (!extent->range) return std::vector<HistoryPoint>{};
  Points points(*extent->range, query.max_points);
  if (auto done = gather(source, points); !done) return tl::unexpected<Error>(done.error());
  return points.result();
}

}  // namespace gpuhealth::store
