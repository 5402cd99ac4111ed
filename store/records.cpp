// SPDX-License-Identifier: Apache-2.0
// Events, conditions and devices: rows as they are, written one by one.
#include <optional>
#include <utility>

#include "store/database_impl.hpp"

namespace gpuhealth::store {
namespace {

constexpr std::string_view kConditionColumns =
    "SELECT id, type, severity, state, acknowledged, device, device_label, since, last_seen, cleared, boot_id, detail "
    "FROM condition ";

// Nothing for a row that a newer or a damaged table holds.
std::optional<Condition> condition_from(const Statement& row) {
  const auto type = condition_type_from(row.text(1));
  const auto severity = severity_from(row.text(2));
  const auto state = condition_state_from(row.text(3));
  if (!type || !severity || !state) return std::nullopt;
  Condition condition;
  condition.id = row.text(0);
  condition.type = *type;
  condition.severity = *severity;
  condition.state = *state;
  condition.acknowledged = row.integer(4) != 0;
  condition.device = row.text(5);
  condition.device_label = row.text(6);
  condition.since = wall_from_microseconds(row.integer(7));
  condition.last_seen = wall_from_microseconds(row.integer(8));
  condition.cleared = wall_from_microseconds(row.integer(9));
  condition.boot_id = row.text(10);
  condition.detail = row.text(11);
  return condition;
}

Result<void> load_evidence(Connection& connection, std::vector<Condition>& conditions) {
  Statement select(connection, "SELECT name, value FROM evidence WHERE condition = ? ORDER BY position");
  for (Condition& condition : conditions) {
    select.bind(condition.id);
    while (select.row()) condition.evidence.push_back({select.text(0), select.text(1)});
    if (select.failed()) return select.error();
  }
  return {};
}

Result<std::vector<Condition>> load_conditions(Connection& connection, Statement& select) {
  std::vector<Condition> out;
  while (select.row()) {
    if (auto condition = condition_from(select)) out.push_back(std::move(*condition));
  }
  if (select.failed()) return select.error();
  if (auto done = load_evidence(connection, out); !done) return tl::unexpected<Error>(done.error());
  return out;
}

Result<void> put_row(Connection& connection, const Condition& c) {
  Statement insert(connection, "INSERT OR REPLACE INTO condition VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  return insert
      .bind(c.id, info(c.type).name, to_string(c.severity), to_string(c.state), c.acknowledged, c.device,
            c.device_label, to_microseconds(c.since), to_microseconds(c.last_seen), to_microseconds(c.cleared),
            c.boot_id, c.detail)
      .run();
}

Result<void> put_evidence(Connection& connection, const Condition& condition) {
  Statement remove(connection, "DELETE FROM evidence WHERE condition = ?");
  if (auto done = remove.bind(condition.id).run(); !done) return done;
  Statement insert(connection, "INSERT INTO evidence VALUES(?, ?, ?, ?)");
  for (std::size_t i = 0; i < condition.evidence.size(); ++i) {
    const Evidence& evidence = condition.evidence[i];
    if (auto done = insert.bind(condition.id, i, evidence.name, evidence.value).run(); !done) return done;
  }
  return {};
}

}  // namespace

Result<void> Database::add(const Event& event) {
  Statement insert(impl_->connection,
                   "INSERT INTO event(time, type, severity, device, text, boot_id) VALUES(?, ?, ?, ?, ?, ?)");
  return insert
      .bind(to_microseconds(event.time), event.type, to_string(event.severity), event.device, event.text, event.boot_id)
      .run();
}

Result<std::vector<Event>> Database::events(WallTime since, WallTime until, std::uint32_t limit) const {
  Statement select(impl_->connection,
                   "SELECT time, type, severity, device, text, boot_id FROM event WHERE time BETWEEN ? AND ? "
                   "ORDER BY time DESC, number DESC LIMIT ?");
  select.bind(to_microseconds(since), to_microseconds(until), limit);
  std::vector<Event> out;
  while (select.row()) {
    out.push_back({wall_from_microseconds(select.integer(0)), select.text(1),
                   severity_from(select.text(2)).value_or(Severity::Info), select.text(3), select.text(4),
                   select.text(5)});
  }
  if (select.failed()) return select.error();
  return out;
}

Result<void> Database::put(const Condition& condition) {
  Transaction transaction(impl_->connection);
  if (!transaction.begun()) return transaction.begun();
  if (auto done = put_row(impl_->connection, condition); !done) return done;
  if (auto done = put_evidence(impl_->connection, condition); !done) return done;
  return transaction.commit();
}

Result<std::vector<Condition>> Database::open_conditions() const {
  Statement select(impl_->connection,
                   std::string(kConditionColumns) + "WHERE state <> 'cleared' ORDER BY since DESC, id");
  return load_conditions(impl_->connection, select);
}

Result<std::vector<Condition>> Database::conditions(WallTime since, std::uint32_t limit) const {
  Statement select(impl_->connection, std::string(kConditionColumns) +
                                          "WHERE state <> 'cleared' OR last_seen >= ?1 OR cleared >= ?1 "
                                          "ORDER BY since DESC, id LIMIT ?2");
  select.bind(to_microseconds(since), limit);
  return load_conditions(impl_->connection, select);
}

Result<void> Database::seen(const DeviceInfo& device, const std::string& label, const std::string& boot_id,
                            WallTime now) {
  Statement upsert(impl_->connection,
                   "INSERT INTO device VALUES(?1, ?2, ?3, ?4, ?5, ?5) ON CONFLICT DO UPDATE SET label = ?2, pci = ?3, "
                   "last_boot_id = ?4, last_seen = ?5");
  return upsert.bind(device.id(), label, to_string(device.pci), boot_id, to_microseconds(now)).run();
}

Result<std::vector<KnownDevice>> Database::known_devices() const {
  Statement select(impl_->connection,
                   "SELECT id, label, pci, last_boot_id, first_seen, last_seen FROM device ORDER BY pci, id");
  std::vector<KnownDevice> out;
  while (select.row()) {
    out.push_back({select.text(0), select.text(1), select.text(2), select.text(3),
                   wall_from_microseconds(select.integer(4)), wall_from_microseconds(select.integer(5))});
  }
  if (select.failed()) return select.error();
  return out;
}

Result<void> Database::forget_device(const std::string& id) {
  Statement remove(impl_->connection, "DELETE FROM device WHERE id = ?");
  return remove.bind(id).run();
}

}  // namespace gpuhealth::store
