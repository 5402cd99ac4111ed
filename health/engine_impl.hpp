// SPDX-License-Identifier: Apache-2.0
// What the engine keeps of each device. Private to engine.cpp and inventory.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "health/detector.hpp"
#include "health/engine.hpp"
#include "health/life.hpp"
#include "health/load.hpp"
#include "health/signs.hpp"

namespace gpuhealth::health {

inline constexpr std::size_t kConditionCount = static_cast<std::size_t>(ConditionType::Count);

struct Tracked {
  std::string label;
  std::array<Life, kConditionCount> lives;

  // Of the running device; forgotten when it is removed.
  std::vector<std::unique_ptr<Detector>> detectors;  // as all_detectors()
  LoadTracker load;
  SignMemory signs;
  std::optional<ClientLook> clients;
  std::optional<Sample> second;
  std::optional<double> own_cap;      // an action's, in W
  std::optional<std::string> driver;  // at the last sample
  std::optional<SteadyTime> last;     // the last sample
  bool last_awake = false;
  std::array<Duration, 3> recent_steps{};  // between the last samples; zero: not yet

  Life& life(ConditionType type) { return lives.at(static_cast<std::size_t>(type)); }
  void forget_samples();
};

struct Engine::Impl {
  Thresholds thresholds;
  std::string boot_id;
  std::map<std::string, Tracked> devices;  // by DeviceInfo::id()

  // Raises and confirms what is a fact, not a measurement.
  void state_fact(std::vector<Change>& out, ConditionType type, const std::string& device, Verdict verdict, Now now);
  void end(std::vector<Change>& out, ConditionType type, const std::string& device, Now now, std::string_view reason,
           bool for_good);
  // Ends all but gpu-missing.
  void end_running(std::vector<Change>& out, Tracked& tracked, Now now, std::string_view reason);
  // A card gets another id when its driver is bound (only then can its unique id be read): what was said of it ends.
  void end_earlier_names(std::vector<Change>& out, const std::string& id, const PciAddress& pci, Now now);
  void judge(std::vector<Change>& out, const DetectorRow& row, Life& life, const Verdict& verdict,
             const Subject& subject, const Moment& moment) const;
};

}  // namespace gpuhealth::health
