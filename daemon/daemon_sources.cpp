// SPDX-License-Identifier: Apache-2.0
// The vendors' libraries, each in a reader of its own: NVML reads NVIDIA's GPUs; librocm_smi64 is a second opinion of
// AMD's, or, where the configuration says so, the first.
#include "daemon/daemon_impl.hpp"

namespace gpuhealth::daemon {
namespace {

constexpr auto kSecondOpinionEvery = std::chrono::minutes(1);
constexpr unsigned kMostInitFaults = 3;
constexpr milliseconds kLibrarysOwnPatience{7000};  // rsmi_init waits five seconds for a lock

}  // namespace

void Daemon::Impl::start_nvml() {
  if (nvml) return;
  auto to = pool_options(options, config.settings);
  to.arguments = {"--source", "nvml"};
  if (!options.nvml_library.empty()) to.arguments.insert(to.arguments.end(), {"--library", options.nvml_library});
  nvml = std::make_unique<telemetry::ReaderPool>(io, std::move(to), reader_handlers(true));
  nvml->discover();
}

void Daemon::Impl::start_rocm_smi() {
  if (config.settings.telemetry_source == kSysfs) return;
  telemetry::SideReader::Options to;
  to.program = options.reader;
  to.deadline = std::max(kLibrarysOwnPatience, real(options, config.settings.sampling_deadline));
  for (auto* wait : {&to.first_retry, &to.last_retry}) *wait = real(options, wait->count());
  telemetry::SideReader::Handlers on;
  on.frame = [this](telemetry::Frame frame) { on_rocm_smi(frame); };
  on.trouble = [this](const telemetry::SideReader::Trouble& trouble) { on_rocm_smi_trouble(trouble); };
  rocm_smi = std::make_unique<telemetry::SideReader>(io, std::move(to), std::move(on));
}

void Daemon::Impl::ask_rocm_smi(SteadyTime now) {
  if (!rocm_smi || rocm_smi_refused || now < next_rocm_smi) return;
  const bool first = config.settings.telemetry_source == kRocmSmi;
  telemetry::Request request;
  request.kind = telemetry::RequestKind::Sample;
  request.tick = ticks;
  for (const auto& [id, device] : devices) {
    const bool awake = device.sample.power == PowerState::Active;
    if (!device.by_nvml && device.info.driver == "amdgpu" && device.has_sample && awake && !device.stuck &&
        now >= device.quiet_until)
      request.devices.push_back(telemetry::pack(device.info.pci));
  }
  if (request.devices.empty()) return;
  std::vector<std::string> arguments = {"--source", "rocm-smi"};
  if (!options.rocm_smi_library.empty()) arguments.insert(arguments.end(), {"--library", options.rocm_smi_library});
  for (const auto& query : rocm_smi_skip) arguments.insert(arguments.end(), {"--skip", query});
  if (!rocm_smi->ask(request, arguments)) return;  // it rests after a failure
  next_rocm_smi =
      now + (first ? Duration(milliseconds(config.settings.sampling_interval)) : Duration(kSecondOpinionEvery));
}

void Daemon::Impl::on_rocm_smi(telemetry::Frame& frame) {
  if (const auto* news = std::get_if<telemetry::DevicesFrame>(&frame); news != nullptr && !news->error.empty()) {
    event(Severity::Warning, "rocm-smi.unusable", {}, news->error + "; going on without it");
    // A lock that another program holds may be let go; a library that is not there stays so until the next start.
    rocm_smi_refused = news->error.find("/dev/shm") == std::string::npos;
    rocm_smi->stop();
    next_rocm_smi = clock.now().steady + std::chrono::minutes(10);
    return;
  }
  auto* answer = std::get_if<telemetry::SampleFrame>(&frame);
  auto* device = answer == nullptr ? nullptr : device_at(telemetry::unpack(answer->device));
  if (device == nullptr) return;
  rocm_smi_init_faults = 0;
  auto& sample = answer->sample;
  sample.device = device->info.id();
  sample.time = clock.now();
  if (config.settings.telemetry_source == kBoth) engine.on_second_opinion(device->info, sample);
  if (config.settings.telemetry_source == kRocmSmi) {
    device->rocm_smi_at = sample.time.steady;
    device->rocm_smi = std::move(sample.readings);
  }
}

// The library's readings in place of the files', where they are to count and are not old; what it does not have stays
// the files'.
void Daemon::Impl::prefer_rocm_smi(const Device& device, Sample& sample) const {
  const auto old =
      3 * milliseconds(config.settings.sampling_interval) + milliseconds(config.settings.sampling_deadline);
  if (sample.power != PowerState::Active || sample.time.steady - device.rocm_smi_at > old) return;
  for (const auto& theirs : device.rocm_smi) {
    const auto ours = std::ranges::lower_bound(sample.readings, theirs.id, {}, &Reading::id);
    if (ours != sample.readings.end() && ours->id == theirs.id && theirs.status != ReadingStatus::Unsupported)
      *ours = theirs;
  }
}

// What it was in when it ended or hung is not asked again in this run of the daemon.
void Daemon::Impl::on_rocm_smi_trouble(const telemetry::SideReader::Trouble& trouble) {
  const auto* device = device_at(telemetry::unpack(trouble.device));
  const bool named = trouble.device != telemetry::Progress::kNoDevice && device != nullptr;
  const std::string at = named ? " in " + trouble.what + " of " + device->label : std::string();
  const bool init = trouble.what == "rsmi_init";
  std::string then = "; it is started again";
  if (init && ++rocm_smi_init_faults >= kMostInitFaults) {
    rocm_smi_refused = true;
    then = "; after " + std::to_string(kMostInitFaults) + " times it is left alone";
  } else if (named && !init) {
    rocm_smi_skip.push_back(to_string(device->info.pci) + "/" + trouble.what.substr(0, trouble.what.find(' ')));
    then = "; that is not asked again";
  }
  event(Severity::Warning, trouble.hung ? "rocm-smi.hung" : "rocm-smi.ended", named ? device->info.id() : std::string(),
        "librocm_smi64: its reader " + trouble.how + at + then);
  next_rocm_smi = {};  // the reader itself rests
}

}  // namespace gpuhealth::daemon
