# SPDX-License-Identifier: Apache-2.0
gpuhealth_test(telemetry USES telemetry sim SOURCES captures_test.cpp clients_test.cpp discovery_test.cpp driver_module_test.cpp frame_test.cpp kfd_test.cpp parse_test.cpp
  pcie_link_test.cpp ras_test.cpp reader_test.cpp reading_rules_test.cpp sampler_test.cpp)
gpuhealth_test(readers USES telemetry telemetry_pool sim SOURCES kmsg_test.cpp reader_pool_test.cpp)
add_dependencies(test_readers gpuhealth-reader)
