// SPDX-License-Identifier: Apache-2.0
// A librocm_smi64 of the newer generation (it exports rsmi_dev_power_get) with one GPU, whose PCI id STANDIN_RSMI_PCI
// is. It disagrees about the power limit, and aborts when it is asked for gpu_metrics.
#include <cstdint>
#include <cstdlib>
#include <cstring>

extern "C" {

unsigned rsmi_init(std::uint64_t) {
  return 0;
}
unsigned rsmi_shut_down() {
  return 0;
}
unsigned rsmi_num_monitor_devices(std::uint32_t* count) {
  *count = 1;
  return 0;
}
unsigned rsmi_dev_pci_id_get(std::uint32_t, std::uint64_t* id) {
  const char* text = std::getenv("STANDIN_RSMI_PCI");
  *id = text != nullptr ? std::strtoull(text, nullptr, 0) : 0;
  return 0;
}
unsigned rsmi_dev_power_get(std::uint32_t, std::uint64_t*, int*) {
  return 2;
}
unsigned rsmi_dev_power_cap_get(std::uint32_t, std::uint32_t, std::uint64_t* microwatts) {
  *microwatts = 250'000'000;
  return 0;
}
unsigned rsmi_dev_gpu_clk_freq_get(std::uint32_t, int, void* out) {
  const std::uint32_t head[] = {1, 2, 1};
  const std::uint64_t hertz[] = {500'000'000, 777'000'000};
  std::memcpy(out, head, sizeof head);
  std::memcpy(static_cast<char*>(out) + 16, hertz, sizeof hertz);
  return 0;
}
unsigned rsmi_dev_gpu_metrics_info_get(std::uint32_t, void*) {
  std::abort();
}
}
