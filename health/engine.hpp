// SPDX-License-Identifier: Apache-2.0
// Judges samples: detectors say bad, good or unknown of one sample (and what came before it); the engine gives that a
// life cycle. Pure: time comes with the sample, nothing is read, nothing is written.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/client.hpp"
#include "core/clock.hpp"
#include "core/condition.hpp"
#include "core/device.hpp"
#include "core/error.hpp"
#include "core/sample.hpp"
#include "health/change.hpp"
#include "health/signs.hpp"
#include "health/thresholds.hpp"

namespace gpuhealth::health {

// A device that the machine had, as history remembers it (store::KnownDevice without the store).
struct RememberedDevice {
  std::string id;
  std::string label;
  std::string last_boot_id;
};

class Engine {
 public:
  Engine(Thresholds thresholds, std::string boot_id);
  ~Engine();
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;

  // Conditions that history holds as open. Those of this boot go on; of an earlier boot, those about a sample are
  // cleared
  // ("rebooted"), while gpu-missing stays until the device is back or acknowledged and forgotten. May come late.
  std::vector<Change> restore(std::vector<Condition> open, Now now);

  // A sample that is not later (steady time) than the last one of its device is ignored.
  std::vector<Change> on_sample(const DeviceInfo& device, const Sample& sample);

  // The devices that are there now, after discovery has settled, against those of the last boot.
  std::vector<Change> on_inventory(std::span<const DeviceInfo> present, std::span<const RememberedDevice> remembered,
                                   Now now);
  // A device vanished while running: its sample conditions end; an unexpected loss raises gpu-missing.
  std::vector<Change> on_removed(const std::string& device, const std::string& label, bool expected, Now now);
  // A read of this device does not return (stuck = true) or has returned.
  std::vector<Change> on_stuck(const DeviceInfo& device, bool stuck, const std::string& what, Now now);

  // The kernel said something of this device, `seen.at` in steady time.
  std::vector<Change> on_sign(const DeviceInfo& device, Sign sign, SignSeen seen, Now now);
  // The machine has slept: the next sample of each device does not follow the one before.
  void on_resume();
  // Who uses this device; judged with the samples that follow.
  void on_clients(const DeviceInfo& device, ClientLook look);
  // What another source says of this device; compared with the samples that follow.
  void on_second_opinion(const DeviceInfo& device, Sample sample);
  // The power limit in watts that an action of gpuhealthd has in force there; none: it was taken back.
  void on_own_power_cap(const std::string& device, std::optional<double> watts);
  // Something that was decided elsewhere (a canary's verdict): it holds, or it is over.
  std::vector<Change> on_verdict(const DeviceInfo& device, ConditionType type, bool holds, Severity severity,
                                 const std::string& detail, std::vector<Evidence> evidence, Now now);

  // NotFound for an id that is not open, InvalidInput for one that is not confirmed yet.
  Result<Change> acknowledge(const std::string& condition_id, Now now);

  void set_thresholds(Thresholds thresholds);
  [[nodiscard]] std::vector<Condition> open() const;  // raised and confirmed, worst first

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// "Radeon RX 7900 XTX at 0000:03:00.0"; without a name "AMD GPU 1002:744c at 0000:03:00.0". The engine knows a device
// whose id changed (its driver is gone, its VBIOS was flashed) by the address at the end.
std::string label_of(const DeviceInfo& device);

// What a single look says (gpuhealthctl inspect): conditions that are bad in this sample, in state Raised. Clocks,
// error rates, moved memory and a dead SMU need more than one look and are never among them.
std::vector<Condition> judge_once(const DeviceInfo& device, const Sample& sample, const Thresholds& thresholds);

}  // namespace gpuhealth::health
