// SPDX-License-Identifier: Apache-2.0
#include "telemetry/sampler.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "telemetry/discovery.hpp"
#include "telemetry/drm_nodes.hpp"
#include "telemetry/drm_query.hpp"
#include "telemetry/intel.hpp"
#include "telemetry/metrics_readings.hpp"
#include "telemetry/parse.hpp"
#include "telemetry/pcie_link.hpp"
#include "telemetry/quirks.hpp"
#include "telemetry/ras.hpp"
#include "telemetry/reading_rules.hpp"
#include "telemetry/sampler_impl.hpp"
#include "telemetry/source_table.hpp"
#include "telemetry/source_text.hpp"
#include "telemetry/sysfs.hpp"
#include "telemetry/throttle_map.hpp"

namespace gpuhealth::telemetry {
using sampling::kNoSlot;
using sampling::Slot;
using sampling::Source;
namespace {

constexpr double kIdlePercent = 2;   // firmware reports 1 or 2 % of an idle GPU
constexpr double kLinkPercent = 20;  // below, the link is idle and its speed says nothing; the slow samples have it
constexpr std::uint32_t kRareEvery = 8;
// Added to the autosuspend delay, so that the kernel's timer, which runs late, comes first.
constexpr Duration kHoldMargin = std::chrono::seconds(2);

Fd open_if_there(const std::string& path) {
  auto fd = open_attribute(path);
  return fd ? std::move(*fd) : Fd();
}

}  // namespace

std::uint16_t Sampler::Impl::index_of(ReadingId id) {
  const auto n = static_cast<std::size_t>(id);
  const auto first_ras = static_cast<std::size_t>(ReadingId::RasFirst);
  return static_cast<std::uint16_t>(n < first_ras ? n : kPlainReadingCount + n - first_ras);
}

Sampler::Impl::Impl(const std::string& sysroot, const DeviceInfo& info, Progress* where)
    : dir(device_dir(sysroot, info.pci)), device(info), device_key(info.id()), progress(where), packed(pack(info.pci)) {
  for (const auto& row : all_readings()) {
    Slot s;
    s.reading.id = row.id;
    slots.push_back(s);
  }
  const auto hwmon = any_hwmon_dir(dir);
  chain = find_pcie_chain(dir);
  for (const auto& row : source_table()) open_source(row, hwmon);
  open_ras();
  if (device.vendor_id == kVendorIntel) intel.emplace(dir);
  if (sysroot.empty() && device.driver == "amdgpu") find_render_node();
  runtime_status = open_if_there(dir + "/power/runtime_status");
  control = open_if_there(dir + "/power/control");
  metrics_file = open_if_there(dir + "/gpu_metrics");
  level_file = open_if_there(dir + "/power_dpm_force_performance_level");
  profile_file = open_if_there(dir + "/pp_power_profile_mode");
  const auto kernel = kernel_release(sysroot);
  // Intel's drivers restart the timer with every read, whatever the kernel (xe_pm_runtime_put).
  reading_keeps_awake =
      device.vendor_id == kVendorIntel || quirk_applies(QuirkId::PollingKeepsAwake, device.family, kernel);
  gfxclk_stuck = quirk_applies(QuirkId::GfxclkStuck1200, device.family, kernel);
  if (const auto ms = parse_integer(read_text_or_empty(dir + "/power/autosuspend_delay_ms")); ms && *ms >= 0)
    autosuspend = std::chrono::milliseconds(*ms);
}

// Gives reading `id` to this source unless an earlier row has it.
void Sampler::Impl::claim(Source& source, std::size_t i, ReadingId id, const Result<Fd>& opened) {
  auto& s = slot(id);
  if (s.from_file) return;
  s.from_file = true;
  s.wakes = source.wakes;
  source.slots[i] = index_of(id);
  // A file that is there and may not be opened stays so; its errno is said from the first sample on.
  if (!opened && !source.fd && source.other_ports.empty())
    s.reading = {id, ReadingStatus::Unreadable, static_cast<std::int16_t>(opened.error().sys_errno), 0};
}

void Sampler::Impl::open_source(const SourceRow& row, const std::string& hwmon) {
  if (row.ids[0] == ReadingId::PcieReplays && quirk_applies(QuirkId::ReplayCountConstantZero, device.family)) return;
  const auto located = locate(row, dir, hwmon, chain.card_end);
  if (!located) return;
  Source source;
  source.row = &row;
  source.shown = located->shown;
  source.tier = row.tier;
  source.wakes = row.access == SourceAccess::Wakes;
  auto opened = open_attribute(located->path);
  if (opened) source.fd = std::move(*opened);
  if (row.parse == SourceParse::Aer) {
    for (std::size_t i = 1; i < chain.aer_sources.size(); ++i) {
      if (auto port = open_if_there(chain.aer_sources[i] + "/" + std::string(row.file)))
        source.other_ports.push_back(std::move(port));
    }
  }
  if (!opened && opened.error().code == ErrorCode::NotFound && source.other_ports.empty()) return;
  for (std::size_t i = 0; i < row.ids.size(); ++i) {
    if (row.ids[i] != ReadingId::PlainCount) claim(source, i, row.ids[i], opened);
  }
  const bool used = std::ranges::any_of(source.slots, [](auto s) { return s != kNoSlot; });
  if (used && (source.fd || !source.other_ports.empty())) sources.push_back(std::move(source));
}

void Sampler::Impl::open_ras() {
  for (std::size_t block = 0; block < kRasBlocks.size(); ++block) {
    Source source;
    source.shown = "ras/" + std::string(kRasBlocks[block]) + "_err_count";
    auto opened = open_attribute(dir + "/" + source.shown);
    if (!opened) {  // newer MI300 kernels count through ACA
      source.shown = "ras/aca_" + std::string(kRasBlocks[block]);
      opened = open_attribute(dir + "/" + source.shown);
    }
    if (!opened) continue;
    source.fd = std::move(*opened);
    source.tier = SourceTier::Slow;
    for (std::size_t kind = 0; kind < 3; ++kind)
      claim(source, kind, ras_reading(block, static_cast<RasKind>(kind)), opened);
    sources.push_back(std::move(source));
  }
  ras_events_file = open_if_there(dir + "/ras/event_state");
}

// A count is a query of the hardware and may print to the kernel log; the events' number is the driver's own. Corrected
// errors have none, so the counts are read now and then all the same.
bool Sampler::Impl::ras_is_due(bool rare) {
  if (!ras_events_file) return true;
  const auto got = read(ras_events_file, "ras/event_state", buffer);
  const auto events = got.sys_errno == 0 ? parse_ras_events(got.text) : std::nullopt;
  if (!events) return true;
  const bool news = ras_sequence != events->sequence;
  ras_sequence = events->sequence;
  return rare || news;
}

AttributeRead Sampler::Impl::read(const Fd& fd, std::string_view file, std::span<char> into) {
  note(file);
  const auto got = read_attribute(fd.get(), into);
  if (got.sys_errno == ENODEV) gone = true;
  return got;
}

// A missing runtime_status means that runtime power management is out of use, not that the GPU sleeps.
PowerState Sampler::Impl::read_power() {
  if (!runtime_status) return PowerState::Active;
  const auto got = read(runtime_status, "power/runtime_status", buffer);
  power_errno = got.sys_errno;
  return got.sys_errno != 0 ? PowerState::Unknown : parse_runtime_status(got.text);
}

bool Sampler::Impl::held(SteadyTime now) const {
  return now < hold_until;
}

// Up to 6.12 each read re-arms the autosuspend timer, so that a steady poll keeps an idle GPU awake for ever. An idle
// one that may sleep is therefore left alone for a little longer than that timer.
void Sampler::Impl::hold_if_idle(SteadyTime now) {
  hold_until = {};
  if (!reading_keeps_awake || autosuspend == Duration{} || !control) return;
  // Of Intel's the clock says it: it is 0 while the engines are powered down.
  const auto& busy = slot(intel ? ReadingId::ClockGfx : ReadingId::UtilizationGfx).reading;
  if (busy.status != ReadingStatus::Valid || busy.value > (intel ? 0 : kIdlePercent)) return;
  const auto got = read(control, "power/control", buffer);
  if (got.sys_errno == 0 && trimmed(got.text) == "auto") hold_until = now + autosuspend + kHoldMargin;
}

void Sampler::Impl::set_value(Slot& s, const SourceRow* row, std::optional<double> value) {
  const auto id = s.reading.id;
  if (value && id >= ReadingId::RasFirst && is_false_ras_count(static_cast<std::uint64_t>(*value))) {
    s.reading = {id, ReadingStatus::Implausible, 0, 0};
    return;
  }
  if (!value) {
    s.reading = {id, ReadingStatus::Unsupported, 0, 0};
    return;
  }
  if (row != nullptr && (*value < row->low || *value > row->high)) {
    s.reading = {id, ReadingStatus::Implausible, 0, 0};
    return;
  }
  s.reading = {id, ReadingStatus::Valid, 0, *value};
  s.worked = true;
}

void Sampler::Impl::set_failed(Slot& s, int sys_errno) {
  const bool asleep_or_reset = sys_errno == EPERM || sys_errno == EBUSY;
  if (asleep_or_reset) power = read_power();
  const auto status =
      status_of_failure({sys_errno, s.worked, power != PowerState::Active && power != PowerState::Unknown});
  s.reading = {s.reading.id, status, static_cast<std::int16_t>(sys_errno), 0};
}

std::optional<Values> Sampler::Impl::parsed(Source& source, std::string_view text) {
  if (source.last_values && source.last_text == text) return source.last_values;
  source.last_values = parse_text(source.row, text);
  source.last_text = text;
  return source.last_values;
}

// The mean power since the last look at the counter; nothing at the first one, and when the counter began anew.
std::optional<double> Sampler::Impl::power_of(Source& source, double joules) const {
  const auto before = std::exchange(source.last_energy, std::pair(joules, time));
  const auto seconds = before ? std::chrono::duration<double>(time - before->second).count() : 0;
  if (!before || seconds <= 0 || joules < before->first) return std::nullopt;
  return (joules - before->first) / seconds;
}

void Sampler::Impl::find_render_node() {
  std::vector<DeviceInfo> one = {device};
  attach_drm_nodes("", one);
  if (one.front().render_node.empty()) return;
  render_node = "/dev/dri/" + one.front().render_node;
  auto& s = slot(ReadingId::VramLosses);
  s.from_file = s.wakes = true;
}

void Sampler::Impl::ask_render_node() {
  auto& s = slot(ReadingId::VramLosses);
  note(render_node);
  const auto losses = vram_losses(render_node);
  if (losses) return set_value(s, nullptr, *losses);
  // Not there, or an older driver; a machine's rules may keep it from us.
  const int why = losses.error().sys_errno;
  const bool none = why == ENOENT || why == ENXIO || why == EINVAL || why == EACCES || why == EPERM;
  if (none && !s.worked) {
    render_node.clear();
    s.reading = {s.reading.id, ReadingStatus::Unsupported, 0, 0};
    return;
  }
  set_failed(s, why);
}

void Sampler::Impl::read_intel(bool rare) {
  const auto from = [this](const Fd& fd, std::string_view file) { return read(fd, file, buffer); };
  throttle = {};
  if (const auto reasons = intel->throttle(from)) {
    throttle.believed = *reasons;
    throttle.known = true;
  }
  if (!rare) return;
  for (const auto& counted : intel->errors(from)) {
    auto& s = slot(counted.id);
    s.from_file = s.wakes = true;
    s.reading = counted;
  }
}

// AER: errors of the link are counted at whichever end saw them; the sum is what the link did.
void Sampler::Impl::add_other_ports(const Source& source, Values& values) {
  for (const auto& port : source.other_ports) {
    const auto got = read(port, source.shown, buffer);
    const auto more = got.sys_errno == 0 ? parse_text(source.row, got.text) : std::nullopt;
    if (more && (*more)[0]) values[0] = values[0].value_or(0) + *(*more)[0];
  }
}

// A list longer than a page of memory goes on behind it.
std::string_view Sampler::Impl::all_pages(const Source& source, std::string_view first) {
  constexpr std::size_t kMost = std::size_t{1} << 20U;
  long_text = first;
  while (long_text.size() < kMost) {
    const auto got = ::pread(source.fd.get(), buffer.data(), buffer.size(), static_cast<off_t>(long_text.size()));
    if (got <= 0) break;
    long_text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return long_text;
}

void Sampler::Impl::read_source(Source& source) {
  std::optional<Values> values;
  AttributeRead got;
  if (source.fd) {
    // Of the configuration space the ids only: other registers may act when read.
    const bool config = source.row != nullptr && source.row->parse == SourceParse::AllOnes;
    got = read(source.fd, source.shown, std::span(buffer).first(config ? 4 : buffer.size()));
    const bool list = source.row != nullptr && source.row->parse == SourceParse::BadPages;
    if (got.sys_errno == 0 && list && !got.text.empty()) got.text = all_pages(source, got.text);
    if (got.sys_errno == 0) values = parsed(source, got.text);
    const bool energy = source.row != nullptr && source.row->parse == SourceParse::Energy;
    if (energy && values && (*values)[0]) (*values)[0] = power_of(source, *(*values)[0]);
  }
  const bool empty = source.fd && got.sys_errno == 0 && trimmed(got.text).empty();
  if (!source.other_ports.empty()) {
    if (!values) values.emplace();
    add_other_ports(source, *values);
  }
  const bool table = source.row != nullptr && source.row->parse == SourceParse::Dpm;
  for (std::size_t i = 0; i < source.slots.size(); ++i) {
    if (source.slots[i] == kNoSlot) continue;
    auto& s = slots[source.slots[i]];
    if (values) {
      set_value(s, source.row, (*values)[i]);
    } else if (got.sys_errno != 0) {
      set_failed(s, got.sys_errno);
    } else if (empty) {
      const auto status = status_of_empty(s.worked, table);
      s.reading = {s.reading.id, status, static_cast<std::int16_t>(status == ReadingStatus::Unreadable ? ENODATA : 0),
                   0};
    } else if (source.row == nullptr) {  // "Query currently inaccessible"
      s.reading = {s.reading.id, ReadingStatus::Unreadable, EAGAIN, 0};
    } else {
      s.reading = {s.reading.id, ReadingStatus::Implausible, 0, 0};
    }
  }
}

// In a fast sample: the table that was read has the file's number already, or the file is of no use now.
bool Sampler::Impl::spared(const Source& source, const std::optional<MetricsView>& view) {
  if (source.row == nullptr || source.slots[0] == kNoSlot) return false;
  auto& s = slots[source.slots[0]];
  const auto id = s.reading.id;
  if (id == ReadingId::PcieSpeed || id == ReadingId::PcieWidth) {
    const auto& busy = slot(ReadingId::UtilizationGfx).reading;
    return busy.status == ReadingStatus::Valid && busy.value < kLinkPercent && s.reading.status == ReadingStatus::Valid;
  }
  if (id == ReadingId::FanPercent) return s.reading.status == ReadingStatus::Valid && slot(ReadingId::FanRpm).from_file;
  if (id == ReadingId::ClockGfx && gfxclk_stuck) return false;
  const auto* row = view && s.worked ? metrics_equivalent(id, view->format(), device.family) : nullptr;
  const auto value = row != nullptr ? metrics_reading(*view, *row, device.family) : std::nullopt;
  if (!value) return false;
  s.reading = {id, ReadingStatus::Valid, 0, *value};
  return true;
}

void Sampler::Impl::read_sources(bool slow, bool awake) {
  const bool rare = slow && slow_samples++ % kRareEvery == 0;
  const auto tier = rare ? SourceTier::Rare : slow ? SourceTier::Slow : SourceTier::Fast;
  const bool has_ras = std::ranges::any_of(sources, [](const Source& s) { return s.row == nullptr; });
  const bool ras = slow && awake && has_ras && ras_is_due(rare);
  std::optional<MetricsView> view;
  if (awake && !slow && metrics_size != 0)
    view.emplace(std::span<const std::uint8_t>(metrics_buffer.data(), metrics_size));
  for (auto& source : sources) {
    if (source.tier > tier || (source.wakes && !awake)) continue;
    if (source.row == nullptr && !ras) continue;
    if (!slow && spared(source, view)) continue;
    read_source(source);
  }
}

void Sampler::Impl::read_metrics() {
  metrics_size = 0;
  metrics_errno = 0;
  if (!metrics_file) return;
  const auto got =
      read(metrics_file, "gpu_metrics", {reinterpret_cast<char*>(metrics_buffer.data()), metrics_buffer.size()});
  metrics_errno = got.sys_errno;
  metrics_size = got.text.size();
}

void Sampler::Impl::apply_metrics() {
  // A read that failed says of the table's readings what its errno says; they are not the last ones any more.
  for (const auto& row : metrics_reading_table()) {
    auto& s = slot(row.id);
    if (s.from_file) continue;
    if (metrics_errno != 0 && s.worked) {
      set_failed(s, metrics_errno);
    } else {
      s.reading = {row.id, ReadingStatus::Unsupported, 0, 0};
    }
  }
  throttle = {};
  if (metrics_size == 0) return;
  const MetricsView view({metrics_buffer.data(), metrics_size});
  for (const auto& row : metrics_reading_table()) {
    auto& s = slot(row.id);
    if (s.from_file || s.reading.status == ReadingStatus::Valid) continue;
    if (const auto value = metrics_reading(view, row, device.family)) {
      s.reading = {row.id, ReadingStatus::Valid, 0, *value};
      s.worked = true;
    }
  }
  for (const auto& share : residency.update(view))
    slot(share.id).reading = {share.id, ReadingStatus::Valid, 0, share.percent};
  decode_reasons(view);
}

void Sampler::Impl::decode_reasons(const MetricsView& view) {
  const auto value = [this](ReadingId id) -> std::optional<double> {
    const auto& r = slot(id).reading;
    return r.status == ReadingStatus::Valid ? std::optional(r.value) : std::nullopt;
  };
  ThrottleInput input;
  input.family = device.family;
  input.asic_status = view.raw(MetricsKey::ThrottleStatus);
  input.indep_status = view.raw(MetricsKey::IndepThrottleStatus);
  input.junction_celsius = value(ReadingId::TemperatureJunction);
  input.junction_critical_celsius = value(ReadingId::TemperatureJunctionCritical);
  input.power_watt = value(ReadingId::PowerAverage);
  if (!input.power_watt) input.power_watt = value(ReadingId::PowerInput);
  input.power_cap_watt = value(ReadingId::PowerCap);
  throttle = decode_throttle(input);
}

void Sampler::Impl::read_words() {
  if (level_file) {
    const auto got = read(level_file, "power_dpm_force_performance_level", buffer);
    level = got.sys_errno == 0 ? std::string(trimmed(got.text)) : std::string();
  }
  if (profile_file) {
    const auto got = read(profile_file, "pp_power_profile_mode", buffer);
    profile = got.sys_errno == 0 ? parse_power_profile(got.text).value_or("") : std::string();
  }
}

// The most that both ends of the slot link can do. Fixed; read once the GPU is awake, since the read can resume it.
void Sampler::Impl::read_link_maxima() {
  if (link_maxima_known) return;
  note("max_link_speed");
  std::optional<double> speed;
  std::optional<double> width;
  for (const auto& port : {chain.card_end, chain.platform_end}) {
    if (port.empty()) continue;
    const auto port_speed = parse_link_speed(read_text_or_empty(port + "/max_link_speed"));
    const auto port_width = parse_integer(read_text_or_empty(port + "/max_link_width"));
    if (port_speed) speed = std::min(speed.value_or(*port_speed), *port_speed);
    if (port_width && *port_width >= 1 && *port_width <= 32)
      width = std::min(width.value_or(32), static_cast<double>(*port_width));
  }
  set_value(slot(ReadingId::PcieSpeedMax), nullptr, speed);
  set_value(slot(ReadingId::PcieWidthMax), nullptr, width);
  link_maxima_known = true;
}

// Values that no single file can judge.
void Sampler::Impl::cross_check() {
  auto& memory = slot(ReadingId::TemperatureMemory).reading;
  const auto& edge = slot(ReadingId::TemperatureEdge).reading;
  // Boards without a memory sensor say exactly 0 (Navi 14 does).
  if (memory.status == ReadingStatus::Valid && memory.value == 0 && edge.status == ReadingStatus::Valid &&
      edge.value >= 10)
    memory = {memory.id, ReadingStatus::Implausible, 0, 0};
  auto& used = slot(ReadingId::VramUsed).reading;
  const auto& total = slot(ReadingId::VramTotal).reading;
  if (used.status == ReadingStatus::Valid && total.status == ReadingStatus::Valid && used.value > total.value)
    used = {used.id, ReadingStatus::Implausible, 0, 0};
  auto& busy = slot(ReadingId::UtilizationGfx).reading;
  if (busy.status == ReadingStatus::Valid && busy.value == 100 &&
      quirk_applies(QuirkId::BusyConstant100, device.family))
    busy = {busy.id, ReadingStatus::Implausible, 0, 0};
  if (!quirk_applies(QuirkId::SecondaryDieZeroPower, device.family)) return;
  auto& cap = slot(ReadingId::PowerCap).reading;
  if (cap.status != ReadingStatus::Valid || cap.value != 0) return;
  for (const auto id : {ReadingId::PowerAverage, ReadingId::PowerInput, ReadingId::PowerCap, ReadingId::PowerCapDefault,
                        ReadingId::PowerCapMax}) {
    auto& r = slot(id).reading;
    if (r.status == ReadingStatus::Valid && r.value == 0) r = {id, ReadingStatus::Unsupported, 0, 0};
  }
}

// The GPU sleeps, or does not say whether it does: its values are not the last ones any more.
void Sampler::Impl::put_aside() {
  const auto status = power == PowerState::Unknown ? ReadingStatus::Unreadable : ReadingStatus::Asleep;
  const auto why = static_cast<std::int16_t>(power == PowerState::Unknown ? power_errno : 0);
  for (auto& s : slots) {
    const bool has_value = s.from_file ? s.wakes : s.worked;
    if (has_value) s.reading = {s.reading.id, status, why, 0};
  }
  slow_samples = 0;  // all of it is read again when it wakes
  metrics_size = 0;
  throttle = {};
  level.clear();
  profile.clear();
  hold_until = {};
}

void Sampler::Impl::fill(Sample& out) const {
  out.device = device_key;
  out.power = power;
  out.readings.clear();
  out.readings.reserve(slots.size());
  for (const auto& s : slots) {
    if (s.reading.status != ReadingStatus::Unsupported) out.readings.push_back(s.reading);
  }
  out.throttle = throttle.believed;
  out.throttle_gated = throttle.gated;
  out.throttle_known = throttle.known;
  out.performance_level = level;
  out.power_profile = profile;
}

Sampler::Sampler(const std::string& sysroot, const DeviceInfo& device, Progress* progress)
    : impl_(std::make_unique<Impl>(sysroot, device, progress)) {}
Sampler::~Sampler() = default;
Sampler::Sampler(Sampler&&) noexcept = default;
Sampler& Sampler::operator=(Sampler&&) noexcept = default;

void Sampler::sample(bool slow, SteadyTime now, Sample& out) {
  auto& d = *impl_;
  const bool was_asleep = d.power != PowerState::Active;
  d.time = now;
  d.power = d.read_power();
  slow = slow || was_asleep;  // what a fast sample repeats is from before the sleep
  const bool awake = d.power == PowerState::Active;
  const bool read_all = awake && !d.held(now);
  if (read_all) d.read_metrics();
  d.read_sources(slow, read_all);
  if (read_all) {
    if (slow) {
      d.read_words();
      d.read_link_maxima();
    }
    d.apply_metrics();
    const bool rare = slow && (d.slow_samples - 1) % kRareEvery == 0;
    if (d.intel) d.read_intel(rare);
    if (rare && !d.render_node.empty()) d.ask_render_node();
    d.cross_check();
    d.hold_if_idle(now);
  } else if (!awake) {
    d.put_aside();
  }
  if (d.progress != nullptr) d.progress->idle();
  d.fill(out);
}

std::span<const std::uint8_t> Sampler::metrics() const {
  return {impl_->metrics_buffer.data(), impl_->metrics_size};
}

std::map<std::string, std::string> Sampler::sources() const {
  std::map<std::string, std::string> out;
  for (const auto& source : impl_->sources) {
    for (const auto i : source.slots) {
      if (i == kNoSlot) continue;
      if (const auto* row = find_reading(impl_->slots[i].reading.id)) out[std::string(row->name)] = source.shown;
    }
  }
  for (const auto& row : metrics_reading_table()) {
    const auto& s = impl_->slot(row.id);
    if (!s.from_file && s.worked) out[std::string(find_reading(row.id)->name)] = "gpu_metrics";
  }
  return out;
}

bool Sampler::present() const {
  return !impl_->gone;
}

}  // namespace gpuhealth::telemetry
