# SPDX-License-Identifier: Apache-2.0
gpuhealth_test(telemetry USES telemetry sim SOURCES captures_test.cpp clients_test.cpp discovery_test.cpp driver_module_test.cpp frame_test.cpp intel_test.cpp kfd_events_test.cpp kfd_test.cpp parse_test.cpp
  pcie_link_test.cpp ras_test.cpp reader_test.cpp reading_rules_test.cpp sampler_test.cpp)
gpuhealth_test(readers USES telemetry telemetry_pool sim SOURCES kmsg_test.cpp reader_pool_test.cpp)
add_dependencies(test_readers gpuhealth-reader)

# NVML as a test needs it: one of today, one of an old driver.
foreach(which nvml nvml-old)
  add_library(standin_${which} SHARED standin_nvml.cpp)
  set_target_properties(standin_${which} PROPERTIES OUTPUT_NAME ${which} LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin/standin)
endforeach()
target_compile_definitions(standin_nvml-old PRIVATE STANDIN_OLD)
# librocm_smi64 itself, on a synthetic machine.
gpuhealth_test(sources USES telemetry telemetry_pool sim SOURCES nvml_test.cpp rocm_smi_test.cpp)
add_dependencies(test_sources gpuhealth-reader standin_nvml standin_nvml-old)
