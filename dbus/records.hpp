// SPDX-License-Identifier: Apache-2.0
// The records that answers are made of. Server and client share them, so that both sides of a signature stand in one
// file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/client.hpp"
#include "core/condition.hpp"
#include "core/device.hpp"
#include "core/event.hpp"
#include "core/reading.hpp"
#include "dbus/wire.hpp"
#include "store/database.hpp"

namespace gpuhealth::dbus {

inline constexpr const char kHistorySignature[] = "a(tddd)";
inline constexpr const char kEventsSignature[] = "a(tsssss)";
inline constexpr const char kPastConditionsSignature[] = "a(ssssbsstttssa(ss))";
inline constexpr const char kComputeNodesSignature[] = "a(utusiu)";
inline constexpr const char kClientsSignature[] = "a(utxtddb)";
inline constexpr const char kReadingsSignature[] = "a(sdssi)";

void write(Writer& out, const std::vector<store::HistoryPoint>& points);
void write(Writer& out, const std::vector<Event>& events);
void write(Writer& out, const std::vector<Condition>& conditions);
void write(Writer& out, const std::vector<Reading>& readings);
void write(Writer& out, const std::vector<ComputeNode>& nodes);
void write(Writer& out, const std::vector<GpuClient>& clients);
void write(Writer& out, const std::vector<Evidence>& evidence);
void write(Writer& out, const std::vector<std::string>& texts);

// Rows with a name that this version does not know (a newer daemon's) are left out.
std::vector<store::HistoryPoint> read_history(Reader& in);
std::vector<Event> read_events(Reader& in);
std::vector<Condition> read_conditions(Reader& in);
std::vector<Reading> read_readings(Reader& in);
std::vector<ComputeNode> read_compute_nodes(Reader& in);
std::vector<GpuClient> read_clients(Reader& in);  // those fields that the bus tells
std::vector<Evidence> read_evidence(Reader& in);
std::vector<std::string> read_texts(Reader& in);

}  // namespace gpuhealth::dbus
