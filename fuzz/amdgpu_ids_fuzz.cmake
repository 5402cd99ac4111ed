# SPDX-License-Identifier: Apache-2.0
gpuhealth_fuzz(amdgpu_ids USES telemetry_decoders SOURCES amdgpu_ids_fuzz.cpp)
