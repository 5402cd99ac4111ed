# SPDX-License-Identifier: Apache-2.0
gpuhealth_fuzz(actions USES actions SOURCES actions_fuzz.cpp)
