# SPDX-License-Identifier: Apache-2.0
gpuhealth_fuzz(clients USES telemetry SOURCES clients_fuzz.cpp)
