// SPDX-License-Identifier: Apache-2.0
// Who uses the GPUs: a reader of its own, asked at a slower pace than samples.
#include "daemon/daemon_impl.hpp"

namespace gpuhealth::daemon {
namespace {

// NVIDIA's driver tells memory through its library alone; what a process spends is known from /proc.
void add_memory(ClientLook& look, const ClientLook& nvml) {
  for (const auto& told : nvml.clients) {
    const auto seen = std::ranges::find(look.clients, told.pid, &GpuClient::pid);
    if (seen == look.clients.end()) {
      look.clients.push_back(told);
      continue;
    }
    seen->vram_bytes = told.vram_bytes;
    seen->queues = told.queues;
  }
  std::ranges::sort(look.clients, {}, &GpuClient::pid);
  look.complete = look.complete && nvml.complete;
}

}  // namespace

void Daemon::Impl::start_clients() {
  telemetry::SideReader::Options to;
  to.program = options.reader;
  to.deadline = std::max(milliseconds(1500), real(options, config.settings.sampling_deadline));
  for (auto* wait : {&to.first_retry, &to.last_retry}) *wait = real(options, wait->count());
  telemetry::SideReader::Handlers on;
  on.frame = [this](const telemetry::Frame& frame) { on_clients(frame); };
  on.trouble = [this](const telemetry::SideReader::Trouble& trouble) { on_clients_trouble(trouble); };
  on.left = [this](std::uint64_t device) { clients_avoid.erase(device); };
  clients = std::make_unique<telemetry::SideReader>(io, std::move(to), std::move(on));
  next_clients = clock.now().steady + milliseconds(config.settings.sampling_clients);
}

void Daemon::Impl::look_at_clients(SteadyTime now) {
  if (config.settings.sampling_clients == 0 || now < next_clients) return;
  next_clients = now + milliseconds(config.settings.sampling_clients);
  telemetry::Request request;
  request.kind = telemetry::RequestKind::Clients;
  request.tick = ticks;
  for (const auto& [id, device] : devices) {
    const auto packed = telemetry::pack(device.info.pci);
    if (!device.stuck && now >= device.quiet_until && !clients_avoid.contains(packed))
      request.devices.push_back(packed);
  }
  if (request.devices.empty()) return;
  std::vector<std::string> arguments = {"--source", "clients"};
  if (!options.sysroot.empty()) arguments.insert(arguments.end(), {"--sysroot", options.sysroot});
  clients->ask(request, arguments);
}

void Daemon::Impl::on_clients(const telemetry::Frame& frame) {
  const auto* news = std::get_if<telemetry::ClientsFrame>(&frame);
  const auto* device = news == nullptr ? nullptr : device_at(telemetry::unpack(news->device));
  if (device == nullptr) return;
  auto look = news->look;
  if (device->by_nvml) add_memory(look, device->nvml_clients);
  look.time = clock.now().steady;
  device_at(telemetry::unpack(news->device))->used_by = look;
  bus.set_clients(device->info.id(), look.clients);
  engine.on_clients(device->info, std::move(look));
}

void Daemon::Impl::on_clients_trouble(const telemetry::SideReader::Trouble& trouble) {
  const auto* device =
      trouble.device == telemetry::Progress::kNoDevice ? nullptr : device_at(telemetry::unpack(trouble.device));
  const auto where = device == nullptr ? std::string() : " at the " + trouble.what + " on " + device->label;
  log_line(Severity::Warning, "the reader of the GPUs' processes " + trouble.how + where +
                                  (trouble.hung ? "; it is left behind" : "; it is started again"));
  if (trouble.hung && device != nullptr) clients_avoid.insert(trouble.device);
}

}  // namespace gpuhealth::daemon
